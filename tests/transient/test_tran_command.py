"""``circuitsim tran``, its options, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import pytest

from circuitsim.cli import main

NETLISTS = Path(__file__).parents[2] / "netlists"
TANK = """tank with a bridge
L1 a b 10m ic=0
C1 a b 1u ic=10
D1 a p circuitsim_ideal
D2 b p circuitsim_ideal
D3 m a circuitsim_ideal
D4 m b circuitsim_ideal
R1 p m 1k
R2 m 0 1k
.model circuitsim_ideal D(is=1e-12 n=0.01)
.tran 10u 5m uic
.print tran v(a,b) v(p,m) {2*i(R1)}
.end
"""


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def tank(tmp_path: Path) -> str:
    path = tmp_path / "tank.cir"
    path.write_text(TANK)
    return str(path)


def test_columns_of_the_deck(capsys: pytest.CaptureFixture[str], tank: str) -> None:
    code, out, _ = run(capsys, "tran", tank)
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert list(rows[0]) == ["time", "v(a,b)", "v(p,m)", "{2*i(R1)}"]
    assert len(rows) == 501
    damping = 500.0
    omega = math.sqrt(1e8 - damping**2)
    for row in rows[::50]:
        t = float(row["time"])
        exact = 10.0 * math.exp(-damping * t) * (math.cos(omega * t) - damping / omega * math.sin(omega * t))
        assert float(row["v(a,b)"]) == pytest.approx(exact, abs=1e-11)
        assert float(row["{2*i(R1)}"]) == pytest.approx(2e-3 * abs(exact), abs=1e-13)


@pytest.mark.parametrize(
    "card, times",
    [
        ("1u 40u", [f"{k}e-06" for k in range(1, 10)] + [f"{k // 10}.{k % 10}e-05" for k in range(10, 41)]),
        ("3u 10u", ["3e-06", "6e-06", "9e-06", "1e-05"]),
        ("0.1m 0.5m 0.2m", ["0.0002", "0.0003", "0.0004", "0.0005"]),
    ],
)
def test_times_are_decimal_multiples_of_the_step(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, card: str, times: list[str]
) -> None:
    path = tmp_path / "filter.cir"
    path.write_text(f"filter\nV1 a 0 sin(0 1 10k)\nR1 a b 1k\nC1 b 0 1n\n.tran {card}\n.end\n")
    code, out, _ = run(capsys, "tran", str(path))
    shown = [row["time"] for row in csv.DictReader(io.StringIO(out))]
    assert code == 0 and [time for time in shown if time != "0.0"] == [time.replace(".0e", "e") for time in times]


def test_events_as_json(capsys: pytest.CaptureFixture[str], tank: str) -> None:
    code, out, _ = run(capsys, "tran", tank, "--events", "--format", "json")
    told = json.loads(out)
    assert code == 0
    assert len(told["time"]) == 16
    assert set(told["changed"][0].split()) == {"-D1", "+D2", "+D3", "-D4"}
    assert told["certificate"]["energy"] < 1e-12


def test_options_in_place_of_the_card(capsys: pytest.CaptureFixture[str], tank: str) -> None:
    _, out, _ = run(capsys, "tran", tank, "--stop", "1m", "--step", "100u", "--initial", "C1=1", "--columns", "v(a,b)")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [float(rows[0]["time"]), float(rows[-1]["time"]), len(rows)] == [0.0, 1e-3, 11]
    assert float(rows[0]["v(a,b)"]) == 1.0


def test_output_from_a_start_time(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "deck.cir"
    path.write_text(TANK.replace(".tran 10u 5m uic", ".tran 10u 5m 4m uic"))
    _, out, _ = run(capsys, "tran", str(path))
    late = list(csv.DictReader(io.StringIO(out)))
    path.write_text(TANK)
    _, out, _ = run(capsys, "tran", str(path))
    whole = list(csv.DictReader(io.StringIO(out)))
    assert [float(late[0]["time"]), float(late[-1]["time"]), len(late)] == [4e-3, 5e-3, 101]
    assert [float(row["v(a,b)"]) for row in late] == pytest.approx(
        [float(row["v(a,b)"]) for row in whole[400:]], abs=1e-13
    )


def test_a_picture(capsys: pytest.CaptureFixture[str], tank: str, tmp_path: Path) -> None:
    code, _, _ = run(capsys, "tran", tank, "--plot", str(tmp_path / "tank.svg"))
    assert code == 0
    assert "conducting" in (tmp_path / "tank.svg").read_text()


@pytest.mark.parametrize(
    "change",
    [
        ("R1 p m 1k", "R1 p m 1k\nV1 x 0 SFFM(0 1 1k 1 100)\nR3 x 0 1"),
        ("D1 a p circuitsim_ideal", "D1 a p junction\n.model junction D(is=1f n=0.01)"),
        ("R1 p m 1k", "R1 p m 1k\nE1 x 0 a b 2\nR3 x 0 1"),
    ],
)
def test_what_has_no_exact_waveforms_gets_the_implicit_method(
    capsys: pytest.CaptureFixture[str], tank: str, tmp_path: Path, change: tuple[str, str]
) -> None:
    path = tmp_path / "deck.cir"
    path.write_text(TANK.replace(*change))
    code, out, _ = run(capsys, "tran", str(path))
    assert code == 0
    _, exact, _ = run(capsys, "tran", tank)
    for row, own in zip(csv.DictReader(io.StringIO(out)), csv.DictReader(io.StringIO(exact)), strict=True):
        for name in ("v(a,b)", "v(p,m)"):
            # A junction of n = 0.01 drops 8 mV at 10 mA.
            assert float(row[name]) == pytest.approx(float(own[name]), abs=2e-2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((".tran 10u 5m uic", ""), "no .tran card"),
        ((".tran 10u 5m uic", ".tran 1n 5 uic"), "output times"),
        (("R1 p m 1k", "R1 p m 1k\nR3 x 0 1\nX1 x y bidiramp gain=2"), "X1: amplifiers are not done in time"),
    ],
)
def test_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, change: tuple[str, str], said: str) -> None:
    path = tmp_path / "deck.cir"
    path.write_text(TANK.replace(*change))
    code, out, err = run(capsys, "tran", str(path))
    assert code == 2
    assert said in err
    assert not out


def test_a_sine_across_an_ideal_diode(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Infeasible from the first time at which the source drives the diode forward: a quarter of a period."""
    path = tmp_path / "deck.cir"
    path.write_text("sine\nV1 s 0 SIN(0 1 50 0 0 90)\nD1 0 s\nC1 s 0 1u\n.tran 1m 40m uic\n.end\n")
    code, out, err = run(capsys, "tran", str(path))
    assert code == 3
    assert "after 0.005 s V1, D1 form a loop" in err
    assert [float(line.split(",")[0]) for line in out.splitlines()[1:]] == [0.0, 0.001, 0.002, 0.003, 0.004, 0.005]


@pytest.mark.parametrize("words", [("--stop", "-1"), ("--initial", "C1"), ("--initial", "R1=1"), ("--step", "x")])
def test_bad_options(capsys: pytest.CaptureFixture[str], tank: str, words: tuple[str, str]) -> None:
    code, _, err = run(capsys, "tran", tank, *words)
    assert code == 2
    assert err.startswith("error:")


def test_the_bundled_rectifier(capsys: pytest.CaptureFixture[str]) -> None:
    """The output reaches the source's peak of 10 V and decays with RC = 100 ms between 5.2 and 23 ms."""
    _, out, _ = run(capsys, "tran", str(NETLISTS / "half-wave-smoothed.cir"), "--columns", "v(out)")
    values = [float(row["v(out)"]) for row in csv.DictReader(io.StringIO(out))]
    assert max(values) == pytest.approx(10.0, rel=1e-12)
    assert values[200] / values[100] == pytest.approx(math.exp(-0.1), rel=1e-12)


@pytest.mark.parametrize("command", ["tran", "ac", "ac --poles", "solve"])
def test_couplings_of_inductors(capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str) -> None:
    """Without effect at the operating point alone."""
    deck = tmp_path / "coupled.cir"
    deck.write_text(
        "coupled\nV1 a 0 SIN(0 1 1k) ac 1\nR1 a b 1\nL1 b 0 1m\nL2 c 0 1m\nK1 L1 L2 0.9\nR2 c 0 10\n"
        ".tran 0.1m 1m\n.ac dec 3 10 1k\n.end\n"
    )
    name, *options = command.split()
    assert main([name, str(deck), *options]) == 0
    assert ("K1" in capsys.readouterr().err) == (name == "solve")
