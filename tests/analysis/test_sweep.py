"""Sweeps from Python: shapes, columns, marked rows, parameters of decks."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import circuitsim
from circuitsim.analysis import Status, sweep
from circuitsim.errors import ConvergenceError, InfeasibleError, TopologyError, UsageError
from circuitsim.netlist import loads


def rectifier() -> circuitsim.Circuit:
    c = circuitsim.loads("rectifier\nV1 in 0 1\nRs in a 1000\nD1 a out\nRL out 0 1000\n").circuit
    return c


def test_every_row_is_the_operating_point_of_its_values() -> None:
    c = rectifier()
    found = sweep(c, {"V1": [-2.0, 0.0, 3.0], "RL": [1e3, 2e3]})
    assert found.shape == (3, 2)
    assert len(found) == 6
    for row in range(6):
        values = {name: float(axis[row]) for name, axis in found.axes.items()}
        point = circuitsim.solve(c.with_values(values))
        for node in ("in", "a", "out"):
            assert found[f"v({node})"][row] == point[node]
        for element in c.names:
            assert found[f"i({element})"][row] == point.current(element)


def test_the_first_name_runs_fastest_and_grid_has_one_axis_a_name() -> None:
    found = sweep(rectifier(), {"V1": [1.0, 2.0, 4.0], "RL": [1e3, 3e3]}, "v(out)")
    assert found.axes["V1"].tolist() == [1, 2, 4, 1, 2, 4]
    assert found.axes["RL"].tolist() == [1e3, 1e3, 1e3, 3e3, 3e3, 3e3]
    assert found.grid("v(out)") == pytest.approx(np.outer([1.0, 2.0, 4.0], [0.5, 0.75]))
    assert (found.grid("V1") == np.array([[1.0], [2.0], [4.0]])).all()


def test_three_axes() -> None:
    found = sweep(rectifier(), {"V1": [1.0, 2.0], "RL": [1e3, 3e3, 7e3], "Rs": [1e3, 5e2]}, ["v(out)"])
    v, load, series = np.meshgrid([1.0, 2.0], [1e3, 3e3, 7e3], [1e3, 5e2], indexing="ij")
    assert found.grid("v(out)") == pytest.approx(v * load / (load + series))


def test_columns_differences_and_powers() -> None:
    found = sweep(rectifier(), {"V1": [2.0]}, "v(in,out) p(RL) p(D1) i(v1) v(out)")
    assert list(found.columns) == ["v(in,out)", "p(RL)", "p(D1)", "i(V1)", "v(out)"]
    assert [float(c[0]) for c in found.columns.values()] == pytest.approx([1.0, 1e-3, 0.0, -1e-3, 1.0])
    assert found.units == {"V1": "V", "v(in,out)": "V", "p(RL)": "W", "p(D1)": "W", "i(V1)": "A", "v(out)": "V"}


def test_columns_are_found_in_any_case_and_missing_ones_are_named() -> None:
    found = sweep(rectifier(), {"V1": [2.0]}, "v(out)")
    assert found["V(OUT)"].tolist() == [1.0]
    assert found["v1"].tolist() == [2.0]
    with pytest.raises(UsageError, match=r"^the sweep has no column 'v\(b\)'; it has V1, v\(out\)$"):
        found["v(b)"]


def test_a_resistance_may_pass_through_zero() -> None:
    found = sweep(rectifier(), {"Rs": [1e3, 0.0, 1e3]}, "v(out) i(Rs)")
    assert found["v(out)"].tolist() == [0.5, 1.0, 0.5]
    assert found["i(Rs)"].tolist() == [5e-4, 1e-3, 5e-4]


def test_points_without_a_steady_state_are_rows() -> None:
    c = rectifier()
    c.voltage_source("V2", "in", "0", 1.0)
    c.current_source("I1", "x", "0", 0.0)
    c.diode("D2", "x", "0")
    found = sweep(c, {"V2": [0.0, 1.0], "I1": [-1.0, 1.0]}, "v(out)")
    assert found.status == (Status.INFEASIBLE, Status.SOLVED, Status.INFEASIBLE, Status.UNBOUNDED)
    assert np.isnan(found["v(out)"]).tolist() == [True, False, True, True]
    assert [failure.row for failure in found.failures] == [0, 2, 3]
    assert isinstance(found.failures[0].error, InfeasibleError)
    told = found.to_dict()
    assert told["columns"]["v(out)"] == [None, 0.5, None, None]
    assert told["failures"][2]["cause"] == {"kind": "cut", "elements": ["I1"], "nodes": ["x"]}
    assert repr(found) == ("Sweep('rectifier': V2 (2) × I1 (2), 4 points, 1 columns, 3 without an operating point)")


def test_points_that_do_not_converge_are_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["circuitsim.analysis.convex"], "CORRECTIONS", 0)
    c = circuitsim.loads("t\nV1 1 0 1\nR1 1 2 1\nD1 2 3\nR2 3 0 1\n").circuit
    found = sweep(c, {"V1": [1.0]}, solver="coordinate-descent")
    assert found.status == (Status.NOT_CONVERGED,)
    assert isinstance(found.failures[0].error, ConvergenceError)


def test_parameters_of_a_deck() -> None:
    deck = loads("p\n.param r=1k\n.param twice={2*r}\nV1 a 0 6\nR1 a b {r}\nR2 b 0 {twice}\n")
    found = sweep(deck, {"V1": [3.0, 6.0], "r": [1e3, 2e3]}, "v(b) i(R1)")
    assert found["v(b)"] == pytest.approx([2, 4, 2, 4])
    assert found["i(R1)"] == pytest.approx([1e-3, 2e-3, 5e-4, 1e-3])
    slow = sweep(deck, {"twice": [1e3, 3e3]}, "v(b)")
    assert slow["v(b)"] == pytest.approx([3, 4.5])


def test_a_parameter_that_makes_a_short() -> None:
    deck = loads("p\n.param r=1k\nV1 a 0 6\nR1 a b {r}\nR2 b 0 1k\n")
    assert sweep(deck, {"r": [1e3, 0.0]}, "v(b)")["v(b)"].tolist() == [3.0, 6.0]


def test_dataframe() -> None:
    pandas = pytest.importorskip("pandas")
    frame = sweep(rectifier(), {"V1": [1.0, 2.0]}, "v(out)").to_dataframe()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.to_dict("list") == {"V1": [1.0, 2.0], "status": ["solved", "solved"], "v(out)": [0.5, 1.0]}


def test_rows_and_header_agree() -> None:
    found = sweep(rectifier(), {"V1": [1.0, 2.0]}, "v(out)")
    assert found.header == ["V1", "status", "v(out)"]
    assert list(found.rows()) == [[1.0, "solved", 0.5], [2.0, "solved", 1.0]]


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    sweep(rectifier(), {"V1": [1.0, 2.0, 3.0]}, progress=lambda done, points: told.append((done, points)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_warnings_are_kept_once() -> None:
    c = rectifier()
    c.resistor("R9", "x", "y", 1.0)
    (warning,) = sweep(c, {"V1": [1.0, 2.0]}).warnings
    assert warning.names == ("x", "y")


def test_the_circuit_stays_as_it_was() -> None:
    c = rectifier()
    sweep(c, {"V1": [7.0]})
    assert c["V1"].value == 1.0


@pytest.mark.parametrize(
    ("vary", "columns", "error", "message"),
    [
        ({}, None, UsageError, "a sweep needs at least one name to vary and one value"),
        ({"V1": []}, None, UsageError, "a sweep needs at least one name to vary and one value"),
        ({"V2": [1]}, None, UsageError, "nothing that can vary is called 'V2'"),
        ({"D1": [1]}, None, UsageError, "D1 is an ideal diode: it has no value to vary"),
        ({"V1": [1], "v1": [2]}, None, UsageError, "V1 is varied twice"),
        ({"V1": [1]}, "v(b)", UsageError, "'v(b)': no node is called 'b'"),
        ({"V1": [1]}, "i(in)", UsageError, "'i(in)': no element is called 'in'"),
        ({"V1": [1]}, "i(V1,V1)", UsageError, "'i(V1,V1)' is no quantity that can be shown"),
        ({"V1": [1]}, [], UsageError, "no columns: name at least one"),
        ({"V1": [float("nan")]}, None, TopologyError, "V1: the voltage must be finite, not nan"),
        ({"RL": [1, -1]}, None, TopologyError, "RL: the resistance must not be negative (-1 Ω)"),
        ({"V1": range(2000), "Rs": range(1, 2001)}, None, UsageError, "the sweep has 4,000,000 points of 7 columns"),
    ],
)
def test_refused(vary, columns, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        sweep(rectifier(), vary, columns)
    assert str(caught.value).startswith(message)
