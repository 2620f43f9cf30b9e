"""``circuitsim solve``: formats, files, failures."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pandas
import pytest

from circuitsim._version import __version__
from circuitsim.certificate import TOLERANCE
from circuitsim.cli import solving

from .conftest import DIVIDER, Command

LOOP = "loop\nV1 a 0 5\nV2 a 0 6\nR1 a 0 1\n"
CUT = "cut\nI1 0 a 1m\nD1 0 a\nR1 b 0 1\nR2 b 0 1\n"
FROZEN = "frozen\nV1 1 0 1\nR1 1 2 1\nD1 2 3\nR2 3 0 1\n"
BRIDGE = "bridge\nV1 a b 10\nD1 a p\nD2 b p\nD3 0 a\nD4 0 b\nRL p 0 1k\n"
FREE = "free\nV1 in 0 1\nR1 in 0 1k\nD1 x in\nD2 x 0\nV2 p 0 1\nV3 p 0 1\nR3 p 0 1k\n"


def test_table(command: Command, deck) -> None:
    result = command("solve", deck(BRIDGE))
    assert result.code == 0
    assert result.err == ""
    lines = result.out.splitlines()
    assert lines[0] == "bridge"
    assert "p     10 V" in lines
    assert "V1       10 V    -10 mA   -100 mW" in lines
    assert "D1        0 V     10 mA      0 W   conducting" in lines
    assert "D2      -10 V      0 A       0 W   blocking" in lines
    assert "solved by active-set; 100 mW absorbed" in lines
    assert lines[-1].startswith("Certified: largest relative residual ")


def test_table_marks_what_is_not_unique(command: Command, deck) -> None:
    result = command("solve", deck(FREE))
    assert result.code == 0
    assert "anywhere in" in result.out
    assert "(-∞, 0 V]" in result.out
    assert "-500 µA *" in result.out
    assert "* not unique: the smallest currents that satisfy Kirchhoff's current law" in result.out
    assert result.err.count("warning: ") == 2


def test_json_is_strict_and_complete(command: Command, deck) -> None:
    result = command("solve", deck(FREE), "--format", "json")
    assert result.code == 0
    point = json.loads(result.out, parse_constant=pytest.fail)
    assert list(point) == [
        "schema",
        "title",
        "status",
        "warnings",
        "nodes",
        "intervals",
        "branches",
        "energy",
        "certificate",
        "solver",
    ]
    assert point["status"] == "solved"
    assert point["intervals"] == {"x": [None, 0.0]}
    assert point["branches"]["D1"]["state"] == "blocking"
    assert point["branches"]["V2"]["unique"] is False
    assert point["certificate"]["certified"] is True
    assert {name for w in point["warnings"] for name in w["names"]} == {"x", "V2", "V3"}


def test_json_holds_full_precision(command: Command, deck) -> None:
    path = deck("third\nV1 a 0 1\nR1 a b 1\nR2 b 0 2\n")
    assert json.loads(command("solve", path, "--format", "json").out)["nodes"]["b"] == 2 / 3


def test_csv_loads_into_pandas(command: Command, deck) -> None:
    result = command("solve", deck(FREE), "--format", "csv")
    frame = pandas.read_csv(io.StringIO(result.out))
    header = "kind name voltage current power state kink unique low high"
    assert list(frame.columns) == header.split()
    x = frame[(frame.kind == "node") & (frame.name == "x")].iloc[0]
    assert not x["unique"] and pandas.isna(x["low"]) and x["high"] == 0.0
    branches = frame[frame.kind == "branch"].set_index("name")
    assert branches.current["R1"] == 1e-3
    assert branches.state["D1"] == "blocking"
    assert not branches.unique["V2"]


def test_rawfile_text(command: Command, deck) -> None:
    result = command("solve", deck(), "--format", "raw")
    assert result.out == (
        "Title: divider\nDate: Thu Jan  1 00:00:00  1970\nPlotname: Operating Point\nFlags: real\n"
        f"No. Variables: 5\nNo. Points: 1\nCommand: * circuitsim {__version__}, in the form of ngspice\nVariables:\n"
        "\t0\tv(in)\tvoltage\n\t1\tv(out)\tvoltage\n\t2\ti(v1)\tcurrent\n\t3\ti(r1)\tcurrent\n\t4\ti(r2)\tcurrent\n"
        "Values:\n0\t6.0\n\t4.0\n\t-0.002\n\t0.002\n\t0.002\n"
    )


@pytest.mark.parametrize("form", ["table", "json", "csv", "raw"])
def test_the_same_deck_gives_the_same_text(command: Command, deck, form: str) -> None:
    path = deck(BRIDGE)
    assert command("solve", path, "--format", form) == command("solve", path, "--format", form)


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_standard_input(command: Command, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(DIVIDER.encode())))
    result = command("solve", "-", "--format", form)
    assert result.code == 0
    assert result.out.count("out") == 1


def test_output_goes_to_the_file_only(command: Command, deck, tmp_path: Path) -> None:
    path = deck()
    printed = command("solve", path, "--format", "json").out
    assert command("solve", path, "--format", "json", "--output", "my.json") == (0, "", "")
    assert (tmp_path / "my.json").read_text(encoding="utf-8") == printed
    assert sorted(p.name for p in tmp_path.iterdir()) == ["my.cir", "my.json"], "no temporary file stays"


def test_output_dash_is_standard_output(command: Command, deck) -> None:
    assert command("solve", deck(), "-o", "-").out.startswith("divider\n")


def test_output_to_a_device_leaves_it_a_device(command: Command, deck) -> None:
    assert command("solve", deck(), "--output", os.devnull) == (0, "", "")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_output_through_a_link_keeps_the_link(command: Command, deck, tmp_path: Path) -> None:
    path = deck()
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    assert command("solve", path, "--output", "link.txt").code == 0
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text(encoding="utf-8").startswith("divider")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--output", "my.cir", "--format", "csv"),
            "error: --output 'my.cir' would overwrite the deck; choose another name\n",
        ),
        (
            ("-o", "sub/../my.cir", "--format", "csv"),
            "error: --output 'sub/../my.cir' would overwrite the deck; choose another name\n",
        ),
        (
            ("--output", "hard.cir", "--format", "csv"),
            "error: --output 'hard.cir' would overwrite the deck; choose another name\n",
        ),
        (("--output", "sub"), "error: --output 'sub' is a folder; name a file in it\n"),
        (("--output", "no/x"), "error: --output 'no/x': there is no folder 'no'; make it first\n"),
        (("--output", ""), "error: --output needs the name of a file\n"),
        (("--plot", "x.jpg"), "error: --plot 'x.jpg': the name must end in .png, .svg or .pdf\n"),
        (("--plot", "no/x.png"), "error: --plot 'no/x.png': there is no folder 'no'; make it first\n"),
        (
            ("--plot", "x.svg", "-o", "x.svg", "--format", "csv"),
            "error: --plot and --output name the same file 'x.svg'\n",
        ),
        (
            ("--solver", "magic"),
            "error: no solver is called 'magic'; choose among auto, active-set, coordinate-descent, cvxpy:NAME\n",
        ),
        (
            ("--tolerance", "2"),
            "error: argument --tolerance: 2 is not between 0 and 1\n"
            "    hint: circuitsim solve --help shows what is possible\n",
        ),
        (
            ("--tolerance", "1K5"),
            "error: argument --tolerance: '1K5' is not a number\n"
            "    hint: circuitsim solve --help shows what is possible\n",
        ),
        (("--allow-include", "no"), "error: --allow-include 'no': there is no such folder\n"),
        (
            ("--form", "csv"),
            "error: unrecognized arguments: --form csv\n"
            "    hint: did you mean --format? circuitsim solve --help shows what is possible\n",
        ),
    ],
)
def test_bad_usage(command: Command, deck, tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    path = deck()
    (tmp_path / "sub").mkdir()
    (tmp_path / "hard.cir").hardlink_to(tmp_path / "my.cir")
    assert command("solve", path, *options) == (2, "", message)
    assert (tmp_path / "my.cir").read_text() == DIVIDER


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mi.cir", "error: no deck 'mi.cir': there is no such file; did you mean my.cir?\n"),
        ("no/my.cir", "error: no deck 'no/my.cir': there is no such file (and no folder 'no')\n"),
        ("zzz", "error: no deck 'zzz': there is no such file\n"),
    ],
)
def test_missing_deck(command: Command, deck, name: str, message: str) -> None:
    deck()
    assert command("solve", name) == (2, "", message)


def test_an_output_that_the_system_refuses(command: Command, deck, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device", ".part")

    monkeypatch.setattr("circuitsim._files.atomic_write", refuse)
    result = command("solve", deck(), "--output", "my.txt")
    assert result == (2, "", "error: cannot write 'my.txt': No space left on device\n")


def test_six_commands_at_once_write_one_file(deck, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "circuitsim", "solve", deck(), "--format", "json", "--output", "same.json"]
    running = [subprocess.Popen(words, stderr=subprocess.PIPE, text=True) for _ in range(6)]
    assert [(process.communicate(timeout=120)[1], process.returncode) for process in running] == [("", 0)] * 6
    assert json.loads((tmp_path / "same.json").read_text())["nodes"]["out"] == 4.0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["my.cir", "same.json"]


def test_an_old_output_survives_a_failure(command: Command, deck, tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("old")
    assert command("solve", deck(LOOP), "--output", "out.txt").code == 3
    assert (tmp_path / "out.txt").read_text() == "old"


@pytest.mark.parametrize(
    ("text", "status", "cause"),
    [
        (LOOP, "infeasible", {"kind": "cycle", "elements": ["V2", "V1"], "nodes": ["a", "0"]}),
        (CUT, "unbounded", {"kind": "cut", "elements": ["I1"], "nodes": ["a"]}),
    ],
)
def test_no_steady_state(command: Command, deck, text: str, status: str, cause: dict) -> None:
    path = deck(text)
    plain, spoken = command("solve", path), command("solve", path, "--format", "json")
    assert (plain.code, plain.out) == (3, "")
    assert plain.err.startswith("error: no steady state: ")
    assert spoken.code == 3
    assert spoken.err == plain.err
    told = json.loads(spoken.out)
    assert told["status"] == status
    assert told["cause"] == cause
    assert told["nodes"] == told["branches"] == told["intervals"] == {}
    assert f"error: {told['message']}\n" == spoken.err


def test_the_json_of_a_failure_has_the_keys_of_a_success(command: Command, deck) -> None:
    good = json.loads(command("solve", deck(), "--format", "json").out)
    bad = json.loads(command("solve", deck(LOOP), "--format", "json").out)
    assert set(bad) - set(good) == {"message", "cause"}
    assert set(good) <= set(bad)


def test_a_frozen_descent_is_no_answer(command: Command, deck, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the engine may not go on from it."""
    monkeypatch.setattr(sys.modules["circuitsim.analysis.convex"], "CORRECTIONS", 0)
    result = command("solve", deck(FROZEN), "--solver", "coordinate-descent", "--format", "json")
    assert result.code == 3
    told = json.loads(result.out)
    assert told["status"] == "not converged"
    assert told["cause"] is None
    assert "frozen" in result.err


def test_all_errors_of_a_deck_each_with_its_place(command: Command, deck) -> None:
    result = command("solve", deck("bad\nR1 a b 1d5\nQ1 c b e\n"))
    assert (result.code, result.out) == (2, "")
    assert result.err == (
        "error: my.cir:2:8: '1d5' is not a number\n    R1 a b 1d5\n           ^\n"
        "    hint: write the exponent with e: 1e5\n"
        "error: my.cir:3:1: Q1 is a transistor (bipolar), which is not supported\n    Q1 c b e\n    ^\n"
        "    hint: such a deck needs a program with models of them, as ngspice; or write each as what it is at its "
        "operating point: a resistor, an open, a diode and a source\n"
    )


def test_the_first_twenty_errors_then_a_count(command: Command, deck) -> None:
    result = command("solve", deck("bad\n" + "".join(f"S{k} a b c d\n" for k in range(25))))
    assert result.err.count("error: my.cir:") == 20
    assert result.err.endswith("error: … and 5 more (circuitsim check lists them all)\n")


def test_warnings_and_notes_with_their_place(command: Command, deck) -> None:
    result = command("solve", deck("warn\nV1 a 0 5 AC 1\nR1 a 0 1M\nC1 a 0 1u\n.tran 1n 1u\n"))
    assert result.code == 0
    firsts = [line for line in result.err.splitlines() if not line.startswith(" ")]
    assert firsts == [
        "warning: my.cir:3:8: R1: 1M is 1 milliohm: M is milli in SPICE",
        "note: line 2: ac has no effect at the operating point (V1)",
        "note: only the operating point is solved; circuitsim run also does .tran",
    ]
    several = command("solve", deck("t\nV1 a 0 5 AC 1\nR1 a b 1\n.options x\n.model m D(is=1f)\nD1 b 0 m\n"))
    assert several.err.startswith("3 notes (-v shows them): line 2: ") and len(several.err.splitlines()) == 1
    assert command("-v", "solve", "my.cir").err.count("note: my.cir:") == 3


def test_a_sweep_in_the_deck_is_pointed_out(command: Command, deck) -> None:
    result = command("solve", deck(DIVIDER + ".dc V1 0 1 1\n"))
    assert result.code == 0
    assert result.err == "note: only the operating point is solved; circuitsim run also does .dc\n"


def test_plot(command: Command, deck, tmp_path: Path) -> None:
    result = command("solve", deck(), "--plot", "my.svg")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("divider\n")
    assert "<svg" in (tmp_path / "my.svg").read_text(encoding="utf-8")


def test_default_tolerance_is_the_certificates() -> None:
    assert solving.TOLERANCE == TOLERANCE


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_a_power_beyond_all_doubles_is_said(command: Command, deck) -> None:
    code, out, err = command("solve", deck("large\nV1 a 0 1e308\nR1 a 0 1\n"), "--format", "json")
    assert (code, out) == (2, "")
    assert err.endswith("larger than a double can hold (1.8e308): choose smaller values of the sources\n")


def test_the_certificate_has_the_laws_of_the_circuit(command: Command, deck) -> None:
    plain = command("solve", deck(), "--explain").err
    assert "energy above the minimum" in plain and "devices off" not in plain
    smooth = command("solve", deck("t\nV1 a 0 5\nR1 a b 1k\nD1 b 0 m\n.model m D(IS=1e-14)\n"), "--explain").err
    assert "energy above the minimum" in smooth and "devices off their curves by at most" in smooth
    controlled = command("solve", deck("t\nV1 a 0 1\nR2 a c 1k\nR3 c 0 1k\nE1 b 0 c 0 2\nR1 b 0 1k\n"), "--explain").err
    assert "Kirchhoff" in controlled and "energy above" not in controlled
