"""``circuitsim sweep``: what varies, what is shown, what is refused."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pandas
import pytest

from circuitsim.cli import sweep as sweep_command

from .conftest import DIVIDER, Command

STEPPED = "s\n.param r=1k\nV1 in 0 6\nR1 in out {r}\nR2 out 0 2k\n"
LOOP = "loop\nV1 a 0 5\nV2 a 0 6\nR1 a 0 1\n"


def frame(text: str) -> pandas.DataFrame:
    """The CSV as pandas reads it."""
    return pandas.read_csv(io.StringIO(text))


def test_dc_card(command: Command, deck) -> None:
    result = command("sweep", deck(DIVIDER + ".dc V1 0 3 1.5\n"))
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        "V1,status,v(in),v(out),i(V1),i(R1),i(R2)\n"
        "0.0,solved,0.0,0.0,0.0,0.0,0.0\n"
        "1.5,solved,1.5,1.0,-0.0005,0.0005,0.0005\n"
        "3.0,solved,3.0,2.0,-0.001,0.001,0.001\n"
    )


def test_two_sources_the_first_runs_fastest(command: Command, deck) -> None:
    rows = frame(command("sweep", deck("d\nV1 a 0 1\nV2 b 0 1\nR1 a b 1\n.dc V1 0 1 1 V2 5 7 1\n")).out)
    assert rows["V1"].tolist() == [0, 1, 0, 1, 0, 1]
    assert rows["V2"].tolist() == [5, 5, 6, 6, 7, 7]
    assert rows["i(R1)"].tolist() == (rows["V1"] - rows["V2"]).tolist()


def test_step_param(command: Command, deck) -> None:
    rows = frame(command("sweep", deck(STEPPED + ".step param r list 1k 2k 4k\n"), "--columns", "v(out)").out)
    assert list(rows.columns) == ["r", "status", "v(out)"]
    assert rows["r"].tolist() == [1000, 2000, 4000]
    assert rows["v(out)"].tolist() == pytest.approx([4, 3, 2])


def test_dc_runs_inside_step(command: Command, deck) -> None:
    rows = frame(command("sweep", deck(STEPPED + ".step param r 1k 2k 1k\n.dc V1 0 6 6\n")).out)
    assert rows["V1"].tolist() == [0, 6, 0, 6]
    assert rows["r"].tolist() == [1000, 1000, 2000, 2000]
    assert rows["v(out)"].tolist() == pytest.approx([0, 4, 0, 3])


def test_vary_overrides_the_deck(command: Command, deck) -> None:
    rows = frame(command("sweep", deck(DIVIDER + ".dc V1 0 3 1\n"), "--vary", "r2=1k,2k,5k").out)
    assert rows.columns[0] == "R2"
    assert rows["v(out)"].tolist() == pytest.approx([3, 4, 5])


def test_vary_a_parameter(command: Command, deck) -> None:
    rows = frame(command("sweep", deck(STEPPED), "--vary", "R=1k:2k:0.5k").out)
    assert rows["r"].tolist() == [1000, 1500, 2000]


def test_a_parameter_named_like_an_element(command: Command, deck) -> None:
    path = deck("p\n.param r1=1k\nV1 a 0 6\nR1 a b {r1}\nR2 b 0 {r1}\n")
    element = frame(command("sweep", path, "--vary", "r1=1k,2k", "--columns", "v(b)").out)
    setting = frame(command("sweep", path, "--vary", "param:r1=1k,2k", "--columns", "v(b)").out)
    assert element["v(b)"].tolist() == pytest.approx([3, 2])
    assert list(setting.columns) == ["param:r1", "status", "v(b)"]
    assert setting["v(b)"].tolist() == pytest.approx([3, 3])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0:0.3:0.1", [0, 0.1, 0.2, 0.3]),
        ("1:-1:-0.5", [1, 0.5, 0, -0.5, -1]),
        ("0:1:0.3", [0, 0.3, 0.6, 0.9]),
        ("2:2:1", [2]),
        ("1m:3m:1m", [0.001, 0.002, 0.003]),
        (" 1 , 5 ,2", [1, 5, 2]),
        ("-5:-4:1", [-5, -4]),
    ],
)
def test_ranges(command: Command, deck, text: str, values: list[float]) -> None:
    rows = frame(command("sweep", deck(), "--vary", f"V1={text}").out)
    assert rows["V1"].tolist() == pytest.approx(values, abs=1e-15)


def test_values_are_those_a_person_writes(command: Command, deck) -> None:
    result = command("sweep", deck(), "--vary", "V1=-0.9:0.3:0.1", "--columns", "v(in)")
    written = ["-0.9", "-0.8", "-0.7", "-0.6", "-0.5", "-0.4", "-0.3", "-0.2", "-0.1", "0.0", "0.1", "0.2", "0.3"]
    assert [line.split(",")[0] for line in result.out.splitlines()[1:]] == written


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            (),
            "the deck has no .dc, no .tran, no .step and no .temp list; give --vary, for instance --vary V1=0:5:0.1\n",
        ),
        (("--vary", "V1"), "--vary 'V1': write NAME=start:stop:step or NAME=a,b,c, for instance V1=0:5:0.1\n"),
        (("--vary", "V1="), "--vary 'V1=': write NAME=start:stop:step or NAME=a,b,c, for instance V1=0:5:0.1\n"),
        (("--vary", "V1=0:1:0"), "--vary 'V1=0:1:0': the step is zero\n"),
        (("--vary", "V1=0:1:-1"), "--vary 'V1=0:1:-1': a step of -1 never leads from 0 to 1\n"),
        (("--vary", "V1=0:1:1n"), "--vary 'V1=0:1:1n': more than 1,000,000 points\n"),
        (("--vary", "V1=0:1"), "--vary 'V1=0:1': a range has three numbers, start:stop:step, not 2\n"),
        (
            ("--vary", "V1=1K5"),
            "--vary 'V1=1K5': '1K5' is not a number\n    hint: write 1.5k (the scale comes last)\n",
        ),
        (("--vary", "V1=nan"), "--vary 'V1=nan': 'nan' is not a number\n    hint: values must be finite numbers\n"),
        (("--vary", "V1=1", "--vary", "V1=2"), "--vary names one thing twice; give it one range or one list\n"),
        (("--vary", "V1=1", "--vary", "v1=2"), "V1 is varied twice\n"),
        (("--vary", "D1=1"), "D1 is an ideal diode: it has no value to vary\n"),
        (
            ("--vary", "V11=1"),
            "nothing that can vary is called 'V11': no element, no parameter of the deck; did you mean v1?\n",
        ),
        (("--vary", "R1=1k,-1"), "R1: the resistance must not be negative (-1 Ω)\n"),
        (("--vary", "V1=1", "--columns", "v(nope)"), "'v(nope)': no node is called 'nope'\n"),
        (("--vary", "V1=1", "--columns", "i(R11)"), "'i(R11)': no element is called 'R11'; did you mean r1"),
        (
            ("--vary", "V1=1", "--columns", "db(out)"),
            "'db(out)' is no quantity that can be shown; write v(node), "
            "v(a,b), i(element), p(element), or "
            "an expression of them in braces\n",
        ),
        (("--vary", "V1=1", "--columns", " "), "no columns: name at least one, for instance v(out)\n"),
        (
            ("--vary", "V1=1", "--output", "my.cir", "--format", "csv"),
            "--output 'my.cir' would overwrite the deck; choose another name\n",
        ),
        (("--vary", "V1=1", "--plot", "my.gif"), "--plot 'my.gif': the name must end in .png, .svg or .pdf\n"),
        (
            ("--vary", "V1=0:1:2u", "--vary", "I1=0:1:2u"),
            "the sweep has 250,001,000,001 points of 9 columns; at most "
            "1,000,000 points and 50,000,000 values fit: take larger steps or fewer columns\n",
        ),
    ],
)
def test_refused(command: Command, deck, words: tuple[str, ...], message: str) -> None:
    result = command("sweep", deck(DIVIDER + "D1 out x\nI1 x 0 0\nR3 x 0 1k\n"), *words)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {message}")


def test_two_dc_cards(command: Command, deck) -> None:
    result = command("sweep", deck(DIVIDER + ".dc V1 0 1 1\n.dc R1 1 2 1\n"))
    assert result == (2, "", "error: the deck has 2 .dc cards (lines 5 and 6); leave one, or give --vary\n")


@pytest.mark.parametrize(
    ("cards", "columns"),
    [
        (".print dc v(OUT) v(in,out) i(r1) p(R2)\n", ["v(out)", "v(in,out)", "i(R1)", "p(R2)"]),
        (".print v(out)\n.save V1#branch @r1[i] in\n", ["v(out)", "i(V1)", "i(R1)", "v(in)"]),
        (".print tran v(in)\n.print dc v(out)\n", ["v(out)"]),
        (".print ac vdb(in)\n", ["v(in)", "v(out)", "i(V1)", "i(R1)", "i(R2)"]),
        (".save all\n", ["v(in)", "v(out)", "i(V1)", "i(R1)", "i(R2)"]),
        ("", ["v(in)", "v(out)", "i(V1)", "i(R1)", "i(R2)"]),
    ],
)
def test_columns_of_print_and_save(command: Command, deck, cards: str, columns: list[str]) -> None:
    result = command("sweep", deck(DIVIDER + ".dc V1 0 6 6\n" + cards))
    assert result.code == 0
    assert list(frame(result.out).columns) == ["V1", "status", *columns]


def test_columns_option_comes_before_print(command: Command, deck) -> None:
    result = command("sweep", deck(DIVIDER + ".dc V1 6 6 1\n.print dc v(in)\n"), "--columns", "p(R1),v(in, out)")
    assert result.out == 'V1,status,p(R1),"v(in,out)"\n6.0,solved,0.004,2.0\n'


def test_points_without_a_steady_state(command: Command, deck) -> None:
    path = deck(LOOP)
    result = command("sweep", path, "--vary", "V2=4,5,6", "--columns", "v(a)")
    assert result.code == 3
    assert result.out == "V2,status,v(a)\n4.0,infeasible,\n5.0,solved,5.0\n6.0,infeasible,\n"
    assert result.err.splitlines()[-1] == (
        "error: 2 of 3 points have no operating point; the first, at V2=4: no steady state: the loop V2, V1 violates "
        "Kirchhoff's voltage law by 1 V; put a resistor in the loop or correct a source"
    )


def test_json(command: Command, deck) -> None:
    result = command("sweep", deck(LOOP), "--vary", "V2=4,5", "--columns", "v(a)", "--format", "json")
    assert result.code == 3
    told = json.loads(result.out, parse_constant=pytest.fail)
    assert told["axes"] == {"V2": [4.0, 5.0]}
    assert told["status"] == ["infeasible", "solved"]
    assert told["columns"] == {"v(a)": [None, 5.0]}
    (failure,) = told["failures"]
    assert failure["row"] == 0 and failure["cause"]["kind"] == "cycle"


def test_table(command: Command, deck) -> None:
    result = command("sweep", deck(), "--vary", "V1=0,3m", "--columns", "v(out) i(R1)", "--format", "table")
    assert result.out == (
        "divider\nV1 (2), 2 points, 2 columns\n\n"
        "V1    status  v(out)  i(R1)\n0 V   solved  0 V     0 A\n3 mV  solved  2 mV    1 µA\n\n"
        "certified: every point whose status is solved\n"
    )


def test_plot_and_output(command: Command, deck, tmp_path: Path) -> None:
    words = ("--vary", "V1=0:5:1", "--vary", "R1=1k,2k", "--output", "my.csv", "--plot", "my.png")
    assert command("sweep", deck(), *words) == (0, "", "")
    assert len(frame((tmp_path / "my.csv").read_text())) == 12
    assert (tmp_path / "my.png").read_bytes().startswith(b"\x89PNG")


def test_warnings_of_the_points_come_once(command: Command, deck) -> None:
    result = command("sweep", deck(DIVIDER + "R3 x y 1\n"), "--vary", "V1=0:5:1")
    assert result.code == 0
    assert result.err.count("warning: ") == 1
    assert "no path to ground from x, y" in result.err


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("seconds", "shown"), [(0.0, False), (2.0, True)])
def test_progress_of_a_long_sweep_on_a_terminal(monkeypatch: pytest.MonkeyPatch, seconds: float, shown: bool) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr("sys.stderr", Terminal())
    line = sweep_command.LateProgress("sweep")
    for done in range(1, 11):
        clock[0] += seconds
        line.update(done, 10)
    line.close()
    text = sys.stderr.getvalue()
    assert ("sweep" in text and "100.0 %" in text and text.endswith("\n")) if shown else text == ""


def test_no_progress_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr("sys.stderr", io.StringIO())
    line = sweep_command.LateProgress("sweep")
    for done in range(1, 11):
        clock[0] += 5.0
        line.update(done, 10)
    line.close()
    assert sys.stderr.getvalue() == ""


def test_a_transient_is_a_sweep_over_time(command: Command, deck) -> None:
    path = deck(
        "t\nV1 in 0 PULSE(0 4 1 1 1 1)\nR1 in out 1\nR2 out 0 1\n.tran 1 3\n.plot tran v(out) (0,5)\n.print dc v(in)\n"
    )
    rows = frame(command("sweep", path).out)
    assert rows["time"].tolist() == [0, 1, 2, 3] and rows["v(out)"].tolist() == [0, 0, 2, 2]
    assert list(rows) == ["time", "status", "v(out)"]
    assert command("solve", path).err == "note: only the operating point is solved; circuitsim run also does .tran\n"
    stored = command("sweep", deck("t\nV1 a 0 1\nC1 a 0 1u\nR1 a 0 1\n.tran 1 3\n"))
    assert stored.code == 0 and frame(stored.out)["i(C1)"].tolist() == [0, 0, 0, 0]


def test_tables_and_models_of_steps(command: Command, deck) -> None:
    path = deck(
        "t\nV1 a 0 3\nR1 a b 1\nD1 b 0 dm\n.model dm D(vfwd=1 ron=0)\n.data t V1 R1 3 1 5 2 .enddata\n"
        ".dc data=t\n.step dm:vfwd list 1 2\n.print dc v(b) i(R1)\n"
    )
    rows = frame(command("sweep", path).out)
    assert rows["V1"].tolist() == [3, 5, 3, 5] and rows["R1"].tolist() == [1, 2, 1, 2]
    assert rows["v(b)"].tolist() == [1, 1, 2, 2] and rows["i(R1)"].tolist() == [2, 2, 1, 1.5]
