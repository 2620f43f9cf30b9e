"""What commands print where something is closed, outside, unsolvable, tiny, or named like a formula."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from circuitsim.cli import main

NETLISTS = Path(__file__).parents[2] / "netlists"


def written(folder, *lines):
    path = folder / "my.cir"
    path.write_text("\n".join(("t", *lines, "")))
    return str(path)


@pytest.mark.parametrize("stem", ["boost-converter", "buck-boost-converter", "flyback-converter", "relay-flyback"])
def test_the_control_node_of_a_switch_is_no_dangling_node(stem, capsys):
    assert main(["check", str(NETLISTS / f"{stem}.cir")]) == 0
    assert "only: no current can flow there" not in capsys.readouterr().err


CHARGING = ("V1 a 0 PULSE(0 1 1u 1u 1u 1 2)", "R1 a b 1k", "C1 b 0 1n", ".tran 1u 20u")


def test_a_measurement_outside_the_run_fails_alone(tmp_path, capsys):
    cards = (".meas tran late FIND v(b) AT=15u", ".meas tran top MAX v(b)", ".meas tran both PARAM='late+top'")
    deck = written(tmp_path, *CHARGING, *cards)
    assert main(["tran", deck, "--stop", "10u", "--format", "json"]) == 0
    out, said = capsys.readouterr()
    found = json.loads(out)
    assert found["measurements"]["late"] is None and found["measurements"]["both"] is None
    assert found["measurements"]["top"] > 0.9 and len(found["time"]) > 10
    assert "late FIND v(b) AT=15u': 15u lies outside the run" in said
    assert main(["tran", deck, "--stop", "10u", "--vary", "R1=1k,2k", "--format", "csv"]) == 0
    assert "15u lies outside the run" in capsys.readouterr().err
    assert main(["tran", deck, "--stop", "10u", "--measure", "late FIND v(b) AT=15u"]) == 2
    wrong = written(tmp_path, *CHARGING, ".meas tran late FIND v(zzz) AT=15u")
    assert main(["tran", wrong, "--stop", "10u"]) == 2


def test_a_report_without_a_steady_state_says_so(tmp_path, capsys):
    deck = written(tmp_path, "V1 a 0 1", "V2 a 0 2", "R1 a 0 1")
    assert main(["report", deck, "--output", str(tmp_path / "r.html")]) == 3
    out, said = capsys.readouterr()
    assert out.strip() == str(tmp_path / "r.html") and said.startswith("error: no steady state: the loop V2, V1")


@pytest.mark.skipif(sys.platform == "win32", reason="closes a descriptor with a shell")
@pytest.mark.parametrize(("closed", "more", "code"), [(">&-", "", 2), ("2>&-", "", 0), (">&-", "--output o.csv", 0)])
def test_closed_streams_are_no_internal_error(closed, more, code, tmp_path):
    written(tmp_path, "V1 a 0 1", "R1 a 0 1")
    command = f"{sys.executable} -m circuitsim solve my.cir {more} {closed}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert "internal" not in done.stderr and "Traceback" not in done.stderr
    if code:
        assert "Bad file descriptor" in done.stderr and "standard output" in done.stderr
    if more:
        assert "a" in (tmp_path / "o.csv").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ["solve"],
        ["solve", "--drops"],
        ["sweep", "--vary", "V1=1,2"],
        ["sensitivity", "--observe", "v(+1+cmd|x)"],
        ["montecarlo", "--samples", "20", "--tol", "R*=1%", "--observe", "v(-2+3)"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_no_cell_of_csv_begins_a_formula(words, tmp_path, capsys):
    deck = written(tmp_path, "V1 @SUM 0 -5", "R1 @SUM +1+cmd|x 1k", "R2 +1+cmd|x -2+3 1k", "R3 -2+3 0 1k")
    code = main([words[0], deck, *words[1:], "--format", "csv"])
    out, said = capsys.readouterr()
    assert code == 0, said
    cells = [cell for row in csv.reader(out.splitlines()) for cell in row]
    assert len(cells) > 3
    for cell in cells:
        if cell[:1] in ("=", "+", "-", "@"):
            float(cell)


def test_numbers_far_below_their_scale_are_zero_for_people_alone(tmp_path, capsys):
    deck = written(tmp_path, "V1 a 0 1", "R1 a 0 1k", "I1 0 b 1e-108", "R2 b 0 1k")
    assert main(["solve", deck]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["b", "0", "V"] in rows and ["R2", "0", "V", "0", "A", "0", "W"] in rows
    assert main(["solve", deck, "--format", "json"]) == 0
    assert 0 < json.loads(capsys.readouterr().out)["nodes"]["b"] < 1e-100
    assert main(["solve", deck, "--format", "csv"]) == 0
    assert "1e-105" in capsys.readouterr().out
    assert main(["sweep", deck, "--vary", "V1=1,2", "--columns", "v(a) i(R2) v(b)", "--format", "table"]) == 0
    assert "fA" not in capsys.readouterr().out
    assert main(["solve", str(NETLISTS / "nanoampere-beside-kiloampere.cir")]) == 0
    assert " nA" in capsys.readouterr().out
