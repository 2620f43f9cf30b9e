"""Sweeps from Python: shapes, columns, marked rows, parameters of decks, measurements."""

import math

import numpy as np
import pytest
from helpers import loaded

import circuitsim
from circuitsim.analysis import Status, sweep
from circuitsim.errors import ConvergenceError, DeckWarning, InfeasibleError, UsageError
from circuitsim.measurements import measure_sweep
from circuitsim.netlist import loads

CARDS = "V1 in 0 1\nRs in a 1k\nD1 a out\nRL out 0 1k"


def rectifier(more: str = "") -> circuitsim.Circuit:
    return circuitsim.loads(f"rectifier\n{CARDS}\n{more}\n").circuit


def test_every_row_is_the_operating_point_of_its_values() -> None:
    """The first name runs fastest, the grid has an axis a name, the circuit stays as it was, progress is told."""
    told: list[tuple[int, int]] = []
    c = rectifier()
    vary = {"V1": [-2.0, 0.0, 3.0], "RL": [1e3, 2e3], "Rs": [1e3, 5e2]}
    found = sweep(c, vary, progress=lambda done, points: told.append((done, points)))
    assert found.shape == (3, 2, 2) and len(found) == 12 and told == [(k, 12) for k in range(1, 13)]
    assert found.axes["V1"][:6].tolist() == [-2, 0, 3, -2, 0, 3]
    for row in range(12):
        point = circuitsim.solve(c.with_values({name: float(axis[row]) for name, axis in found.axes.items()}))
        for column in found.columns:
            name = column[2:-1]
            assert found[column][row] == (point[name] if column[0] == "v" else point.current(name))
    v, load, series = np.meshgrid(*vary.values(), indexing="ij")
    assert found.grid("v(out)") == pytest.approx(np.maximum(v, 0.0) * load / (load + series))
    assert (found.grid("V1") == np.array([-2.0, 0.0, 3.0]).reshape(3, 1, 1)).all() and c["V1"].value == 1.0


def test_columns_and_tables() -> None:
    found = sweep(rectifier(), {"V1": [2.0]}, "v(in,out) p(RL) p(D1) i(v1) v(out)")
    assert list(found.columns) == ["v(in,out)", "p(RL)", "p(D1)", "i(V1)", "v(out)"]
    assert [float(c[0]) for c in found.columns.values()] == pytest.approx([1.0, 1e-3, 0.0, -1e-3, 1.0])
    assert found.units == {"V1": "V", "v(in,out)": "V", "p(RL)": "W", "p(D1)": "W", "i(V1)": "A", "v(out)": "V"}
    assert found["V(OUT)"].tolist() == [1.0] and found["v1"].tolist() == [2.0]
    with pytest.raises(UsageError, match=r"^the sweep has no 'v\(b\)'; it has V1, v\(in,out\)"):
        found["v(b)"]
    with pytest.raises(UsageError, match="V1 must be a list of numbers, at least 1"):
        sweep(rectifier(), {"V1": []})
    found = sweep(rectifier("R9 x y 1"), {"V1": [1.0, 2.0]}, "v(out)")
    assert found.header == ["V1", "status", "v(out)"]
    assert list(found.rows()) == [[1.0, "solved", 0.5], [2.0, "solved", 1.0]]
    assert found.to_dataframe().to_dict("list") == {"V1": [1.0, 2.0], "status": ["solved"] * 2, "v(out)": [0.5, 1.0]}
    (warning,) = found.warnings  # kept once
    assert warning.names == ("x", "y")


def test_points_without_an_operating_point_are_rows() -> None:
    c = rectifier("V2 in 0 1\nI1 x 0 0\nD2 x 0")
    found = sweep(c, {"V2": [0.0, 1.0], "I1": [-1.0, 1.0]}, "v(out)")
    assert found.status == (Status.INFEASIBLE, Status.SOLVED, Status.INFEASIBLE, Status.UNBOUNDED)
    assert np.isnan(found["v(out)"]).tolist() == [True, False, True, True]
    assert [failure.row for failure in found.failures] == [0, 2, 3]
    assert isinstance(found.failures[0].error, InfeasibleError)
    told = found.to_dict()
    assert told["columns"]["v(out)"] == [None, 0.5, None, None]
    assert told["failures"][2]["cause"] == {"kind": "cut", "elements": ["I1"], "nodes": ["x"]}
    assert repr(found) == ("Sweep('rectifier': V2 (2) × I1 (2), 4 points, 1 columns, 3 without an operating point)")
    beyond = sweep(loaded("I1 0 a 1\nR1 a 0 1e200"), {"I1": [1.0, 1e200]})
    assert beyond.status == (Status.SOLVED, Status.NOT_CONVERGED)
    assert isinstance(beyond.failures[0].error, ConvergenceError)


@pytest.mark.parametrize(
    ("cards", "vary", "column", "expected"),
    [
        (CARDS, {"Rs": [1e3, 0.0, 1e3]}, "v(out)", [0.5, 1.0, 0.5]),  # a resistance may pass through zero
        (CARDS, {"Rs": [1e3, 0.0, 1e3]}, "i(Rs)", [5e-4, 1e-3, 5e-4]),
        (".param r=1k\nV1 a 0 6\nR1 a b {r}\nR2 b 0 {2*r}", {"V1": [3, 6], "r": [1e3, 2e3]}, "i(R1)", [1, 2, 0.5, 1]),
        (".param r=1k two={2*r}\nV1 a 0 6\nR1 a b {r}\nR2 b 0 {two}", {"two": [1e3, 3e3]}, "v(b)", [3, 4.5]),
        (".param r=1k\nV1 a 0 6\nR1 a b {r}\nR2 b 0 1k", {"r": [1e3, 0.0]}, "v(b)", [3.0, 6.0]),
    ],
)
def test_resistances_and_parameters_of_decks(cards: str, vary: dict, column: str, expected: list[float]) -> None:
    found = sweep(loads(f"t\n{cards}\n"), vary, column)[column]
    assert found / (1e-3 if "param" in cards and column[0] == "i" else 1.0) == pytest.approx(expected)


CLAMP = """clamp at 2 V
V1 in 0 0
R1 in out 1k
R2 out 0 1k
D1 out k ideal
V2 k 0 2
.model ideal D
.dc V1 -1 9 0.5
.meas dc knee WHEN i(D1)=1n RISE=1
.meas dc half FIND v(in) WHEN v(out)=0.777
.meas dc top MAX v(out)
.meas dc slope DERIV v(out) AT=1
.meas dc mean AVG v(out) FROM=0 TO=4
.meas dc span PARAM='knee-half'
.meas dc far FIND v(out) AT=20
"""


def test_measurements_of_a_clamp() -> None:
    """What cannot be measured fails alone; a falling sweep crosses in its own order."""
    deck = circuitsim.loads(CLAMP)
    with pytest.warns(DeckWarning, match="20 lies outside -1 to 9"):
        found = circuitsim.run(deck)["meas"]
    knee = 4.0 + 1e-6
    expected = {"knee": knee, "half": 1.554, "top": 2.0, "slope": 0.5, "mean": 1.0, "span": knee - 1.554}
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-9) and found["far"] is None
    down = circuitsim.sweep(deck, V1=np.arange(9.0, -1.5, -0.5).tolist())
    crossings = measure_sweep(deck, down, ["x WHEN v(out)=1 FALL=1", "y WHEN v(out)=1 RISE=1"])
    assert crossings == {"x": pytest.approx(2.0), "y": None}
    with pytest.raises(UsageError, match="a sweep of one quantity"):
        measure_sweep(deck, circuitsim.sweep(deck, V1=[0, 1], V2=[1, 2]), ["top MAX v(out)"])


def test_measurements_at_each_step() -> None:
    """The last one is measured at one of the values alone."""
    deck = circuitsim.loads(CLAMP.replace("V2 k 0 2", "V2 k 0 {v}\n.param v=2\n.step param v list 2 1 9"))
    measured = circuitsim.run(deck)["dc"].measured
    assert measured["v"].tolist() == [2.0, 1.0, 9.0]
    assert measured["knee"][:2] == pytest.approx([4.0 + 1e-6, 2.0 + 1e-6], rel=1e-9) and np.isnan(measured["knee"][2])
    assert measured["top"] == pytest.approx([2.0, 1.0, 4.5], rel=1e-9) and np.isnan(measured["far"]).all()
    assert [str(one.message).partition(" is ")[0] for one in measured.warnings] == ["far", "knee"]


def test_a_crossing_between_points_is_a_root_of_the_circuit_itself() -> None:
    deck = circuitsim.loads("diode\nV1 a 0 0\nD1 a 0 dm\n.model dm D(IS=1e-14 N=1)\n.dc V1 0.3 0.9 0.3\n")
    on = measure_sweep(deck, circuitsim.sweep(deck), ["on WHEN i(D1)=1m"])["on"]
    thermal = 1.380649e-23 * 300.15 / 1.602176634e-19  # ngspice's constants, of 2010, differ by 3e-7
    assert on == pytest.approx(thermal * math.log1p(1e-3 / 1e-14), rel=1e-6)
    assert circuitsim.solve(deck.circuit.with_values({"V1": on})).current("D1") == pytest.approx(1e-3, rel=1e-7)


def test_numbers_may_be_spice_text_and_what_varies_takes_several() -> None:
    deck = circuitsim.loads("d\nV1 a 0 1\nR1 a 0 1k\n")
    assert sweep(deck, columns="i(R1)", R1=["500", "2k"])["i(R1)"].tolist() == [2e-3, 5e-4]
    assert circuitsim.transient(deck, "1m").stop == 1e-3
    for values in ("0:10:5", 5):
        with pytest.raises(UsageError, match="what varies takes several values"):
            sweep(deck, R1=values)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="stop= in Python"):
        circuitsim.transient(deck)
    for text in (b"d\nR1 a 0 1\n", "divider.cir"):
        with pytest.raises(UsageError, match="load reads files"):
            circuitsim.loads(text)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no solver is called 'magic'"):
        circuitsim.solve(circuitsim.loads("g\nV1 a 0 1\nR1 a 0 1k\nE1 b 0 a 0 2\nR2 b 0 1k\n"), "magic")
