"""What all commands share: help, usage errors, exit codes, streams, and how little is imported."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import circuitsim.cli as cli
from circuitsim.cli import COMMANDS, main
from circuitsim.cli.streams import escaped

from .conftest import DIVIDER, Command

HEAVY = ("scipy", "numba", "networkx", "matplotlib", "pandas", "cvxpy", "concurrent", "multiprocessing")
DECK_COMMANDS = ("solve", "check", "graph", "convert", "sweep")


def python(code: str, *words: str, **more) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a fresh interpreter."""
    environment = {**os.environ, "PYTHONWARNINGS": "error", **more.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=120, env=environment, **more
    )


@pytest.mark.parametrize("words", [(), *((name,) for name in COMMANDS)])
def test_help(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(" ".join(["usage: circuitsim", *words]))


@pytest.mark.parametrize("name", DECK_COMMANDS)
def test_help_teaches_by_examples(capsys: pytest.CaptureFixture[str], name: str) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    assert f"  circuitsim {name} " in capsys.readouterr().out.partition("\nexamples:\n")[2]


@pytest.mark.parametrize(
    ("words", "beginning", "end"),
    [
        ((), "error: the following arguments are required: COMMAND\n", "circuitsim --help shows what is possible\n"),
        (("slove",), "error: argument COMMAND: invalid choice: 'slove'", "circuitsim --help shows what is possible\n"),
        (("solve",), "error: the following arguments are required: DECK\n", "solve --help shows what is possible\n"),
        (("solve", "x", "--format", "xml"), "error: argument --format: invalid choice: 'xml'", "possible\n"),
        (("check", "x", "--format", "csv"), "error: argument --format: invalid choice: 'csv'", "possible\n"),
        (("solve", "x", "--bogus"), "error: unrecognized arguments: --bogus\n", "possible\n"),
    ],
)
def test_bad_usage(command: Command, words: tuple[str, ...], beginning: str, end: str) -> None:
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert err.startswith(beginning)
    assert err.endswith(end)
    assert "usage:" not in err


@pytest.mark.parametrize("name", DECK_COMMANDS)
def test_every_deck_command_names_a_missing_deck(command: Command, name: str, tmp_path: Path) -> None:
    result = command(name, tmp_path / "none.cir")
    assert result.code == 2
    assert result.err == f"error: no deck {str(tmp_path / 'none.cir')!r}: there is no such file\n"


@pytest.mark.parametrize("name", DECK_COMMANDS)
@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xfe", b"\xff\n\xfe\n", b"t\nR1 a a\n", b"t\n.op\n", b"t\n}{\n+\n"])
def test_no_bytes_give_a_traceback(command: Command, tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / "x.cir").write_bytes(data)
    result = command(name, tmp_path / "x.cir")
    assert result.code == 2
    assert result.err.startswith("error: ")
    assert "Traceback" not in result.err


def test_interruption(command: Command, deck, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("circuitsim.netlist.load", interrupt)
    monkeypatch.setattr("circuitsim.cli.deck.check_folders", interrupt)
    assert command("solve", deck()) == (130, "", "interrupted\n")


def test_internal_error(command: Command, deck, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("oops")

    monkeypatch.setattr("circuitsim.cli.deck.check_folders", fail)
    path = deck()
    assert command("solve", path) == (1, "", "error: internal: RuntimeError: oops (--debug shows where)\n")
    for words in (("--debug", "solve", path), ("solve", path, "--debug")):
        with pytest.raises(RuntimeError, match="oops"):
            main(list(words))


def test_unreadable_deck(command: Command, deck, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "my.cir")

    monkeypatch.setattr("circuitsim.cli.deck.check_folders", refuse)
    assert command("solve", deck()) == (2, "", "error: Permission denied (my.cir)\n")


def test_commands_start_without_heavy_modules() -> None:
    code = "import sys\nfrom circuitsim.cli import main\ntry: main(['--help'])\nfinally: print(sorted(sys.modules))"
    loaded = python(code).stdout.splitlines()[-1]
    assert not [name for name in (*HEAVY, "numpy") if f"'{name}'" in loaded]


@pytest.mark.parametrize("words", [["solve"], ["solve", "--format", "csv"], ["check"], ["convert"]])
def test_small_decks_need_no_heavy_modules(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "my.cir").write_text(DIVIDER + "".join(f"D{k} out n{k}\nRn{k} n{k} 0 1k\n" for k in range(7)))
    code = (
        "import sys, json\nfrom circuitsim.cli import main\ncode = main(sys.argv[1:])\n"
        "print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)"
    )
    result = python(code, words[0], str(tmp_path / "my.cir"), *words[1:])
    status, loaded = json.loads(result.stderr.splitlines()[-1])
    assert status == 0
    assert "numpy" in loaded or words == ["convert"]
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    lines = "".join(f"R{k} a 0 1k\n" for k in range(5000))
    (tmp_path / "my.cir").write_text(f"many\nV1 a 0 1\n{lines}")
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "circuitsim", "solve", str(tmp_path / "my.cir")],
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=120,
        )
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_stream_that_cannot_show_a_sign_gets_its_number(tmp_path: Path) -> None:
    (tmp_path / "my.cir").write_text("µ\nV1 ä 0 1u\nR1 ä 0 1\n", encoding="utf-8")
    code = "import sys\nfrom circuitsim.cli import main\nsys.exit(main(sys.argv[1:]))"
    result = python(code, "solve", str(tmp_path / "my.cir"), env={"PYTHONIOENCODING": "ascii"})
    assert result.returncode == 0
    assert "\\xe4" in result.stdout


def test_hash_seed_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "my.cir").write_text("b\nV1 a b 10\nD1 a p\nD2 b p\nD3 0 a\nD4 0 b\nRL p 0 1k\nR2 p q 1\nD5 q 0\n")
    code = "import sys\nfrom circuitsim.cli import main\nsys.exit(main(sys.argv[1:]))"
    texts = {
        python(code, "solve", str(tmp_path / "my.cir"), "--format", "json", env={"PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2", "3")
    }
    assert len(texts) == 1 and next(iter(texts)).startswith("{")


def test_streams_of_other_kinds_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert cli.main(["solve"]) == 2
    assert sys.stderr.getvalue().startswith("error: ")


STEERING = "\x1b[31m\x07\x9b\u202e\r"
SHOWN = r"\x1b[31m\x07\x9b\u202e\r"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("solve", f"no{STEERING}.cir"), 2),
        (("solve", "my.cir", f"--no{STEERING}"), 2),
        ((f"no{STEERING}",), 2),
        (("solve", "my.cir", "--output", f"no{STEERING}/x"), 2),
        (("solve", "my.cir", "--solver", f"no{STEERING}"), 2),
        (("train", f"no{STEERING}"), 2),
        (("train", "rbm", "--config", f"no{STEERING}"), 2),
        (("train", "circuit", "my.cir", "--data", f"no{STEERING}.csv"), 2),
        (("sweep", "my.cir", "--vary", f"no{STEERING}=1"), 2),
        (("data", "fetch", f"no{STEERING}"), 2),
        (("solve", "my.cir"), 0),
        (("check", "my.cir"), 0),
        (("graph", f"{STEERING}.cir", "--output", f"{STEERING}.svg"), 2),
        (("check", f"{STEERING}.cir"), 2),
    ],
)
def test_nothing_printed_steers_the_terminal(command: Command, deck, words: tuple[str, ...], code: int) -> None:
    deck(f"title {STEERING[:-1]}\nV1 in 0 6\nR1 in 0 1k\nR2 in x 1k\n")
    Path(f"{STEERING}.cir").write_text(f"title\nR1 {STEERING} 0 1k\n")
    result = command(*words)
    assert result.code == code
    assert result.out + result.err
    assert not set(result.out + result.err) & set(STEERING) - set("[31m")


def test_control_characters_are_shown_as_python_writes_them() -> None:
    assert escaped(f"a{STEERING}b\n\tµΩ…") == f"a{SHOWN}b\n\tµΩ…"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no device that is always full")
@pytest.mark.parametrize("resistors", [1, 3000])
def test_a_full_standard_output_is_named(tmp_path: Path, resistors: int) -> None:
    lines = "".join(f"R{k} a 0 1k\n" for k in range(resistors))
    (tmp_path / "my.cir").write_text(f"many\nV1 a 0 1\n{lines}")
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "circuitsim", "solve", str(tmp_path / "my.cir")],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=120,
        )
    assert (ended.returncode, ended.stderr) == (2, b"error: No space left on device (standard output)\n")


def test_too_little_memory_is_said(command: Command, deck, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("Unable to allocate 8 TiB")

    monkeypatch.setattr("circuitsim.cli.deck.check_folders", fail)
    message = "error: not enough memory: Unable to allocate 8 TiB; ask for less at a time\n"
    assert command("solve", deck()) == (2, "", message)
