"""Tables, CSV, JSON and rawfiles as text."""

from __future__ import annotations

import doctest
import math
import shutil
import subprocess
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from circuitsim._version import __version__
from circuitsim.cli.output import FORMATS
from circuitsim.formats.columns import csv, quantity, table
from circuitsim.formats.rawfile import Variable, rawfile
from circuitsim.formats.strict_json import dumps

from .conftest import DIVIDER, Command
from .test_consistent_options import parsers


@pytest.mark.parametrize("module", ["formats.columns", "analysis.probes", "analysis.sweep"])
def test_examples_in_docstrings(module: str) -> None:
    failed, attempted = doctest.testmod(import_module(f"circuitsim.{module}"))
    assert (failed, attempted > 0) == (0, True)


def test_csv_quotes_what_needs_it_and_leaves_out_what_is_not_there() -> None:
    text = csv(["a", "b,c"], [['say "x"', 1.0], [" x", None], ["two\nlines", math.nan], ["", True]])
    assert text == 'a,"b,c"\n"say ""x""",1.0\n" x",\n"two\nlines",\n,true\n'


def test_csv_reads_back_to_the_same_doubles() -> None:
    numbers = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -0.0, 123456789.123456789]
    lines = csv(["x"], [[x] for x in numbers]).splitlines()[1:]
    assert [float(line).hex() for line in lines] == [x.hex() for x in numbers]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (math.nan, "-"), (-0.0, "0 V"), (4.7e6, "4.7 MV"), (-2.5e-10, "-250 pV"), (1 / 3, "333.333 mV")],
)
def test_quantity(value: float | None, text: str) -> None:
    assert quantity(value, "V") == text


def test_table_without_rows_is_its_header() -> None:
    assert table(["a", "bb"], []) == ["a  bb"]


def test_names_that_are_numbers_are_not_moved() -> None:
    assert table(["node", "v"], [["1", "1 V"], ["1000", "10 V"]]) == ["node  v", "1      1 V", "1000  10 V"]


def test_json_has_no_infinity() -> None:
    with pytest.raises(ValueError, match="larger than a double can hold"):
        dumps({"x": math.inf})
    assert dumps({"µ": [1.5, None]}) == '{\n "\\u00b5": [\n  1.5,\n  null\n ]\n}\n'


def test_rawfile_of_several_points() -> None:
    text = rawfile(
        "two\nlines",
        "DC transfer characteristic",
        [
            Variable("v-sweep", "voltage", [0.0, 1.0]),
            Variable("v(out)", "voltage", [0.5, 1e-30]),
        ],
    )
    assert text == (
        "Title: two lines\nDate: Thu Jan  1 00:00:00  1970\nPlotname: DC transfer characteristic\nFlags: real\n"
        f"No. Variables: 2\nNo. Points: 2\nCommand: * circuitsim {__version__}, in the form of ngspice\n"
        "Variables:\n\t0\tv-sweep\tvoltage\n\t1\tv(out)\tvoltage\nValues:\n0\t0.0\n\t0.5\n1\t1.0\n\t1e-30\n"
    )


def test_rawfile_columns_must_be_of_one_length() -> None:
    with pytest.raises(ValueError, match="all of one length"):
        rawfile("t", "Operating Point", [Variable("a", "voltage", [1.0]), Variable("b", "voltage", [])])


STEPPED = """\
Title: two axes
Date: Thu Jan  1 00:00:00  1970
Plotname: DC transfer characteristic
Flags: real
No. Variables: 4
No. Points: 4
Command: * circuitsim {version}, in the form of ngspice
Variables:
\t0\tv1\tvoltage
\t1\tr2\tres-sweep
\t2\tv(out)\tvoltage
\t3\t{{v(out)/2}}\tnotype
Values:
0\t0.0
\t1000.0
\t0.0
\t0.0
1\t4.0
\t1000.0
\t2.0
\t1.0
2\t0.0
\t3000.0
\t0.0
\t0.0
3\t4.0
\t3000.0
\t3.0
\t1.5
"""


def test_rawfile_of_a_sweep(command: Command, deck) -> None:
    path = deck("two axes\nV1 in 0 1\nR1 in out 1k\nR2 out 0 1k\n")
    words = ("sweep", path, "--vary", "V1=0,4", "--vary", "R2=1k,3k", "--columns", "v(out) {v(out) / 2}")
    found = command(*words, "--format", "raw")
    assert (found.code, found.out) == (0, STEPPED.format(version=__version__))


def test_spicelib_reads_the_rawfile_of_a_sweep(command: Command, deck, tmp_path: Path) -> None:
    spicelib = pytest.importorskip("spicelib", reason="the reader of rawfiles is not installed")
    words = ("sweep", deck(), "--vary", "V1=0:3:1", "--format", "raw", "--output", "my.raw")
    assert command(*words).code == 0
    found = spicelib.RawRead(str(tmp_path / "my.raw"))
    assert found.dialect == "ngspice" and found.get_trace_names()[0] == "v1"
    assert found.get_trace("v(out)").get_wave().tolist() == pytest.approx([0.0, 2 / 3, 4 / 3, 2.0])


@pytest.mark.parametrize("analysis", ["sweep", "ac"])
def test_a_binary_rawfile_holds_the_numbers_of_the_ascii_one(command: Command, deck, tmp_path: Path, analysis) -> None:
    path = deck("own\nV1 in 0 1 AC 1\nR1 in out 1k\nC1 out 0 1u\n.dc V1 0 3 1\n.ac dec 3 1 1k\n")
    assert (
        command(analysis, path, "--output", "a.raw").code
        == command(analysis, path, "--output", "b.raw", "--binary").code
    )
    head, _, body = (tmp_path / "b.raw").read_bytes().partition(b"Binary:\n")
    own_head, _, text = (tmp_path / "a.raw").read_text().partition("Values:\n")
    assert head.decode() == own_head
    cells = [float(cell) for line in text.splitlines() for cell in line.split("\t")[-1].split(",")]
    assert np.frombuffer(body, "<f8").tolist() == cells
    refused = command(analysis, path, "--format", "raw", "--binary")
    assert refused.code == 2 and "--output FILE.raw" in refused.err
    spicelib = pytest.importorskip("spicelib", reason="the reader of rawfiles is not installed")
    assert "v(out)" in spicelib.RawRead(str(tmp_path / "b.raw")).get_trace_names()


def test_rawfile_of_waveforms(command: Command, deck, tmp_path: Path) -> None:
    path = deck("charge\nV1 in 0 1\nR1 in out 1k\nC1 out 0 1u ic=0\n.tran 1m 2m uic\n")
    assert command("tran", path, "--columns", "v(out) i(C1)", "--format", "raw", "--output", "my.raw").code == 0
    lines = (tmp_path / "my.raw").read_text().splitlines()
    assert lines[2] == "Plotname: Transient Analysis" and "\t0\ttime\ttime" in lines and "\t2\ti(c1)\tcurrent" in lines
    cells = [float(line.split("\t")[1]) for line in lines[lines.index("Values:") + 1 :]]
    held = 1.0 - np.exp([0.0, -1.0, -2.0])
    assert cells[1::3] == pytest.approx(held, abs=1e-9) and cells[::3] == pytest.approx([0.0, 1e-3, 2e-3])
    refused = command("tran", path, "--format", "raw", "--events")
    assert refused.code == 2 and "rawfiles hold waveforms" in refused.err


def test_formats_have_one_set_of_names() -> None:
    """Every command with ``--format`` writes JSON, and names its formats as all others do."""
    found = {
        parser.prog: action.choices
        for parser in parsers()
        for action in parser._actions
        if "--format" in action.option_strings
    }
    assert len(found) > 12
    assert {name for name, choices in found.items() if not {"json"} <= set(choices) <= set(FORMATS)} == set()


@pytest.mark.ngspice
@pytest.mark.skipif(shutil.which("ngspice") is None, reason="ngspice is not installed")
def test_ngspice_loads_the_rawfile(command: Command, deck, tmp_path: Path) -> None:
    path = deck("loads\nV1 in 0 6\nR1 in Out 1k\nR2 Out 0 2k\nX1 in s\n.subckt s a\nR1 a m 1\nR2 m 0 2\n.ends\n")
    assert command("solve", path, "--format", "raw", "--output", "my.raw").code == 0
    (tmp_path / "load.cir").write_text(
        "load\n.control\nset numdgt=12\nload my.raw\nprint v(out) i(r1) i(v1) v(x1.m)\n.endc\n.end\n"
    )
    ended = subprocess.run(
        ["ngspice", "-b", "load.cir"], capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False
    )
    shown = dict(line.split(" = ") for line in ended.stdout.splitlines() if " = " in line and "(" in line)
    values = {name.strip(): float(value) for name, value in shown.items()}
    assert values == pytest.approx({"v(out)": 4.0, "i(r1)": 2e-3, "i(v1)": -2.002, "v(x1.m)": 4.0})


@pytest.mark.parametrize(
    ("ending", "given", "expected"),
    [
        (".json", (), "json"),
        (".CSV", (), "csv"),
        (".raw", (), "raw"),
        (".txt", (), "table"),
        ("", (), "table"),
        (".dat", ("--format", "csv"), "csv"),
    ],
)
def test_the_ending_of_the_output_chooses_the_format(
    ending: str, given: tuple[str, ...], expected: str, command: Command, deck: Callable[[str], str], tmp_path: Path
) -> None:
    path, out = deck(DIVIDER), tmp_path / f"result{ending}"
    assert command("solve", path, "--output", out, *given).code == 0
    assert out.read_text() == command("solve", path, "--format", expected).out
