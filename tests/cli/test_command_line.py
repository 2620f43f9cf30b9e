"""What a session of text does not show: helps, options of all commands, exceptions, terminals, imports, pages."""

import io
import json
import math
import re
import subprocess
import sys
from argparse import SUPPRESS, Action, _SubParsersAction
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from circuitsim._moved import MOVED
from circuitsim.cli import COMMANDS, EPILOG, READING, below, build_parser, main
from circuitsim.cli.common import FORMATS, unraised
from circuitsim.cli.tools import _failure
from circuitsim.errors import UsageError
from circuitsim.formats import csv
from circuitsim.training import TrainingPlan

from .conftest import DIVIDER, Command

PARSERS = [
    parser
    for command in COMMANDS
    for own in [next(a for a in build_parser(command)._actions if isinstance(a, _SubParsersAction)).choices[command]]
    for parser in (own, *below(own))
]
OPTIONS = defaultdict[str, list[Action]](list)
for parser in PARSERS:
    for action in parser._actions:
        if action.option_strings and action.help != SUPPRESS:
            OPTIONS[action.option_strings[0]].append(action)


def test_options_say_what_they_are_and_mean_the_same_everywhere() -> None:
    for name, uses in OPTIONS.items():
        for action in uses:
            text = (action.help or "").replace("(default)", "").replace("%(default)", "")
            assert text and "default" not in text, name  # defaults stand in brackets
            assert action.nargs == 0 or action.metavar or action.choices, f"{name}: no word for its value"
    for name in ("--dask", "--checkpoint", "--lib", "-I"):
        assert len({action.help for action in OPTIONS[name]}) == 1, name
    for name in ("--seed", "--seeds", "--workers", "--top", "--samples", "--epochs", "--threads"):
        assert {action.metavar for action in OPTIONS[name]} == {"N"}, name
    assert all({"json"} <= set(action.choices or ()) <= set(FORMATS) for action in OPTIONS["--format"])
    for parser in PARSERS:  # those that read a deck read it alike
        deck = any(action.dest == "deck" and not action.option_strings for action in parser._actions)
        assert not deck or {line.split()[0] for line in READING} <= parser._option_string_actions.keys(), parser.prog


def test_a_help_fits_on_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    for parser in PARSERS:
        lines = parser.format_help().splitlines()
        assert len(lines) <= 45 and max(map(len, lines)) <= 100, parser.prog


def test_the_first_steps_of_the_help(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = EPILOG.partition("first steps:\n")[2].splitlines()
    steps = [line.strip().split("  ")[0].split()[1:] for line in lines if "COMMAND" not in line]
    assert len(steps) >= 3 and [command(*words).code for words in steps] == [0] * len(steps)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (RuntimeError("oops"), 1, "error: internal: RuntimeError: oops (--debug shows where)\n"),
        (PermissionError(13, "Permission denied", "my.cir"), 2, "error: -: Permission denied\n"),
        (MemoryError("8 TiB"), 2, "error: not enough memory: 8 TiB; ask for less at a time\n"),
    ],
)
def test_exceptions_have_their_exit_codes(
    command: Command, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, said: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=SimpleNamespace(read=fail)))
    assert command("solve", "-") == (code, "", said)
    if code == 130:
        with pytest.raises(KeyboardInterrupt):  # one command of several ends them
            _failure(["solve", "-"])
    if code == 1:
        with pytest.raises(RuntimeError, match="oops"):
            command("solve", "-", "--debug")
        unraised(SimpleNamespace(exc_type=KeyboardInterrupt))
        assert command("solve", "-") == (130, "", "interrupted\n")


def test_run_shows_where_an_internal_error_is(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("oops")

    monkeypatch.setattr("circuitsim.cli.circuits.printed", fail)
    monkeypatch.chdir(tmp_path)
    Path("one.cir").write_text("one\nR1 a 0 1\n.op\n", encoding="utf-8")
    assert command("run", "one.cir")[::2] == (1, "error: internal: RuntimeError: oops (--debug shows where)\n")
    with pytest.raises(RuntimeError, match="oops"):
        command("--debug", "run", "one.cir")


def test_run_says_what_a_sweep_ignores_in_no_other_analysis(command: Command, tmp_path: Path) -> None:
    Path(tmp_path, "s.cir").write_text("t\nV1 a 0 SIN(5 2 50)\nR1 a 0 1\n.dc V1 0 1 1\n.tran 1m 2m\n", encoding="utf-8")
    assert command("run", str(tmp_path / "s.cir"))[::2] == (0, "")


HEAVY = {"scipy", "numba", "networkx", "matplotlib", "pandas", "cvxpy", "concurrent", "multiprocessing"}


@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "solve my.cir",
        "solve my.cir --format csv",
        "check my.cir",
        "convert my.cir",
        "tran my.cir --stop 1m",
        "train drn --help",
    ],
)
def test_small_decks_need_no_heavy_modules(deck: Any, words: str) -> None:
    deck(DIVIDER + "".join(f"D{k} out n{k}\nRn{k} n{k} 0 1k\n" for k in range(7)))
    code = (
        "import sys, json\nfrom circuitsim.cli import main\ntry: main(sys.argv[1:])\n"
        "finally: print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words.split()], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in json.loads(done.stderr.splitlines()[-1])}
    assert not loaded & (HEAVY | ({"numpy"} if words in ("--help", "convert my.cir") else set()))


@pytest.mark.parametrize("name", ["solve", "check", "graph", "convert", "sweep"])
@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xfe", b"\xff\n\xfe\n", b"t\nR1 a a\n", b"t\n.op\n", b"t\n}{\n+\n"])
def test_no_bytes_give_a_traceback(command: Command, tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / "x.cir").write_bytes(data)
    result = command(name, tmp_path / "x.cir")
    assert result.code == 2 and result.err.startswith("error: ") and "Traceback" not in result.err


@pytest.mark.parametrize("data", [bytes(range(256)), b"x = " + b"[" * 50_000, b"epochs = " + b"9" * 5000])
def test_no_options_give_a_traceback(command: Command, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "my.toml").write_bytes(data)
    result = command("train", "rbm", "--config", tmp_path / "my.toml")
    assert (result.code, result.out) == (2, "") and str(tmp_path) in result.err


def test_csv_quotes_what_needs_it_and_keeps_doubles() -> None:
    rows = [['say "x"', 1 / 3], [" x", None], ["two\nlines", math.nan], ["", True], ["a,b", 5e-324]]
    text = 'a,"b,c"\n"say ""x""",0.3333333333333333\n" x",\n"two\nlines",\n,true\n"a,b",5e-324\n'
    assert csv(["a", "b,c"], rows) == text


STEERING = "\x1b[31m\x07\x9b\u202e\r"
LINES = """
solve no@.cir
solve my.cir --no@
no@
solve my.cir --output no@/x
solve my.cir --solver no@
train no@
train rbm --config no@
train circuit my.cir --data no@.csv
sweep my.cir --vary no@=1
data fetch no@
solve my.cir
check my.cir
graph @.cir --output @.svg
check @.cir
"""


@pytest.mark.parametrize("line", LINES.split("\n")[1:-1])
def test_nothing_printed_steers_the_terminal(command: Command, deck: Any, line: str) -> None:
    deck(f"title {STEERING[:-1]}\nV1 in 0 6\nR1 in 0 1k\nR2 in x 1k\n*! input V1\n*! output v(x)\n*! trainable R1\n")
    Path(f"{STEERING}.cir").write_text(f"title\nR1 {STEERING} 0 1k\n")
    result = command(*(word.replace("@", STEERING) for word in line.split(" ")))
    shown = result.out + result.err
    assert result.code == (0 if line in ("solve my.cir", "check my.cir") else 2)
    assert r"\x1b[31m\x07\x9b\u202e" in shown and not set(shown) & set(STEERING) - set("[31m")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("words", "variables", "coloured"),
    [
        ([], {}, True),
        ([], {"NO_COLOR": "1"}, False),
        ([], {"TERM": "dumb"}, False),
        (["--color", "never"], {}, False),
        (["--color=always"], {"NO_COLOR": "1"}, True),
    ],
)
def test_messages_have_colours_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, words: list[str], variables: dict[str, str], coloured: bool
) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert main(["solve", "nothing\x1b[31m.cir", *words]) == 2
    assert terminal.getvalue().startswith("\x1b[1;31merror\x1b[0m: " if coloured else "error: ")
    assert "\\x1b[31m" in terminal.getvalue() and "\x1b[31m" not in terminal.getvalue()  # of a name: escaped


@pytest.mark.parametrize(
    ("seconds", "terminal", "words", "told"),
    [
        (2, True, [], "100.0 %"),
        (2, True, ["-q"], ""),
        (2, False, [], ""),
        (70, False, [], "%"),
        (70, False, ["-q"], ""),
    ],
)
def test_progress_of_a_long_sweep(
    deck: Any, monkeypatch: pytest.MonkeyPatch, seconds: int, terminal: bool, words: list[str], told: str
) -> None:
    clock = iter(range(0, 10**9, seconds))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    monkeypatch.setattr("sys.stderr", stream := Terminal() if terminal else io.StringIO())
    assert main([*words, "sweep", deck(), "--vary", "V1=0:9:1", "--output", "my.csv"]) == 0
    assert told in stream.getvalue() and ("%" in stream.getvalue()) is bool(told)


@pytest.mark.parametrize("name", ["epochs", "batch", "seed", "evaluate_every"])
@pytest.mark.parametrize("value", [True, 1.5, "3", None])
def test_a_plan_takes_whole_numbers_only(name: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"^{name} must be a whole number, not "):
        TrainingPlan(**{"epochs": 1, "batch": 1, name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("old", MOVED)
def test_what_went_says_what_to_write_now(command: Command, deck: Any, old: str) -> None:
    """Commands and options exit with 2 and the hint, Python names raise it."""
    first, *more = old.split()
    module, _, name = first.rpartition(".")
    if first == "circuitsim":
        code, out, err = command(*(word.replace("COMMAND", "solve") for word in more), deck())
        assert (code, out) == (2, "") and MOVED[old] in err
    else:
        with pytest.raises(AttributeError, match=re.escape(MOVED[old])):
            getattr(import_module(module), name)


def test_the_page_has_what_went() -> None:
    page = (Path(__file__).parents[2] / "docs/analyses.md").read_text(encoding="utf-8")
    rows = [f"| `{old}` | {now} |" for old, now in MOVED.items()]
    assert len(rows) <= 60 and "\n".join(rows) in page


LEARNING = """V1 in 0 6
X1 in out 0 pair
.include low.inc
*! input V1
*! output v(out)
*! trainable x1.rtop min=100 max=10k
"""


def test_decks_that_learn_take_libraries_folders_and_cards_without_a_title(command: Command, deck: Any) -> None:
    Path("parts").mkdir()
    Path("parts/low.inc").write_text(".param low=1k\n")
    Path("my.lib").write_text(".subckt pair a b c\nRtop a b 2k\nRlow b c {low}\n.ends\n")
    Path("my.csv").write_text("V1,v(out)\n6,3\n3,1.5\n")
    more = "--lib my.lib -I parts --allow-include parts --no-title --compare"
    result = command("train", "circuit", deck(LEARNING), "--data", "my.csv", *more.split())
    assert result.code == 0, result.err


@pytest.mark.parametrize("analysis", ["sweep", "ac"])
def test_a_binary_rawfile_holds_the_numbers_of_the_ascii_one(command: Command, deck: Any, analysis: str) -> None:
    path = deck("own\nV1 in 0 1 AC 1\nR1 in out 1k\nC1 out 0 1u\n.dc V1 0 3 1\n.ac dec 3 1 1k\n")
    assert not any(command(analysis, path, "--output", *more).code for more in (["a.raw"], ["b.raw", "--binary"]))
    head, _, body = Path("b.raw").read_bytes().partition(b"Binary:\n")
    own, _, text = Path("a.raw").read_text().partition("Values:\n")
    cells = [float(cell) for line in text.splitlines() for cell in line.split("\t")[-1].split(",")]
    assert head.decode() == own and np.frombuffer(body, "<f8").tolist() == cells
    spicelib = pytest.importorskip("spicelib", reason="the reader of rawfiles is not installed")
    assert "v(out)" in spicelib.RawRead("b.raw").get_trace_names()
