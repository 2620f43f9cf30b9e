"""Several operating points, none, branches and jumps: against hand results."""

import pytest
from helpers import solved

import circuitsim
from circuitsim.analysis.operating_point import Uniqueness
from circuitsim.errors import NoOperatingPointError

SCHMITT = """Schmitt trigger
V1 in 0 {}
X1 p in out limited_opamp gain=1e5 low=-10 high=10
R1 out p 1k
R2 p 0 1k
"""


@pytest.mark.parametrize("volts", [-4.9, 0.0, 4.9])
def test_schmitt_trigger_has_several(volts: float) -> None:
    point = circuitsim.solve(circuitsim.loads(SCHMITT.format(volts)))
    assert point.uniqueness is Uniqueness.SEVERAL
    assert point.other is not None and point.other.certificate.certified
    # The three are at the two limits and, unstable, at out = 1e5 (out / 2 − in).
    middle = volts / (0.5 - 1e-5)
    for one in (point, point.other):
        assert min(abs(one["out"] - v) for v in (10.0, -10.0, middle)) <= 1e-8
    assert abs(point["out"] - point.other["out"]) > 1e-3
    assert [w.kind for w in point.warnings] == ["several"] and "v(out) is" in point.warnings[0].message


@pytest.mark.parametrize(("volts", "out"), [(-5.1, 10.0), (5.1, -10.0)])
def test_schmitt_trigger_beyond_its_thresholds(volts: float, out: float) -> None:
    point = circuitsim.solve(circuitsim.loads(SCHMITT.format(volts)))
    assert point["out"] == out
    assert point.uniqueness is Uniqueness.UNIQUE


def test_a_sweep_follows_the_branch_and_says_where_it_jumps() -> None:
    values = [-6.0, -3.0, 0.0, 3.0, 4.9, 5.1, 3.0, 0.0, -4.9, -5.1]
    swept = circuitsim.sweep(circuitsim.loads(SCHMITT.format(0)), {"V1": values}, "v(out)")
    assert swept["v(out)"].tolist() == [10.0] * 5 + [-10.0] * 4 + [10.0]
    jumps = [warning.message for warning in swept.warnings if warning.kind == "jump"]
    assert len(jumps) == 2 and "V1 = 5.1:" in jumps[0] and "V1 = -5.1:" in jumps[1]


def test_a_start_chooses_the_branch() -> None:
    ready = circuitsim.prepared(circuitsim.loads(SCHMITT.format(0)))
    low, high = ready.solve({"V1": 6.0}), ready.solve({"V1": -6.0})
    assert ready.solve({"V1": 1.0}, start=low)["out"] == -10.0
    assert ready.solve({"V1": 1.0}, start=high)["out"] == 10.0
    assert ready.solve({"V1": 6.0}, start=high).warnings[-1].kind == "jump"


def test_a_branch_is_followed_through_states_of_other_diodes() -> None:
    """On both branches V2 opens and closes D3, which moves the threshold: no jump."""
    ready = circuitsim.prepared(circuitsim.loads(SCHMITT.format(0) + "V2 x 0 -20\nR3 x y 1k\nD3 y p\n"))
    for out, blocking, conducting in ((10.0, -20.0, 8.0), (-10.0, -20.0, -1.0)):
        start = ready.solve({"V1": -out}, start=None)
        before = ready.solve({"V2": blocking}, start=start)
        after = ready.solve({"V2": conducting}, start=before)
        again = ready.solve({"V2": blocking}, start=after)
        assert (before.state("D3"), after.state("D3"), again.state("D3")) == ("blocking", "conducting", "blocking")
        assert after["p"] == pytest.approx((out + conducting) / 3.0) and after.uniqueness is Uniqueness.SEVERAL
        for point in (before, after, again):
            assert point["out"] == out and "jump" not in [warning.kind for warning in point.warnings]


def test_flip_flop_of_two_inverting_amplifiers() -> None:
    point = solved(
        "X1 0 a b limited_opamp gain=4 low=-5 high=5\nX2 0 b a limited_opamp gain=4 low=-5 high=5\nR1 a 0 1k\nR2 b 0 1k"
    )
    assert point.uniqueness is Uniqueness.SEVERAL and point.other is not None
    assert {point["a"], point.other["a"]} <= {0.0, 5.0, -5.0}


def test_output_that_is_left_open_is_not_called_unique() -> None:
    """A diode without a load behind an ideal op-amp: its output may have any voltage up to the input's."""
    point = circuitsim.solve(circuitsim.loads("t\nV1 in 0 1\nR1 in 0 1k\nD1 d o\nE1 d 0 OPAMP in o\n"))
    assert point["o"] == 1.0 and point.uniqueness is Uniqueness.UNKNOWN


@pytest.mark.parametrize(("volts", "points"), [(1.0, 2), (-1.0, 0)])
def test_negative_resistance_with_a_diode(volts: float, points: int) -> None:
    """−1 kΩ behind a diode and 500 Ω: i = 0, or i = −v/500 (the diode conducts for v < 0)... by enumeration."""
    circuit = circuitsim.loads(f"negative resistance\nV1 in 0 {-volts}\nR1 in a 500\nD1 a b\nG1 b 0 b 0 -1m\n")
    # Blocked: b has no current, so v(b) = 0, and v(a) = −volts must be ≤ 0. Conducting: i = (v_in − v_b)/500 = −v_b/1k,
    # so v_b = 2 v_in and i = −v_in/500 = volts/500 must be ≥ 0.
    if not points:
        with pytest.raises(NoOperatingPointError) as caught:
            circuitsim.solve(circuit)
        assert caught.value.proven and {"D1", "G1", "R1"} <= set(caught.value.elements)
        return
    point = circuitsim.solve(circuit)
    assert point.uniqueness is Uniqueness.SEVERAL and point.other is not None
    assert sorted([point.current("D1"), point.other.current("D1")]) == pytest.approx([0.0, volts / 500.0], rel=1e-9)


def test_without_controlled_sources_there_is_no_verdict() -> None:
    shown = circuitsim.solve(circuitsim.loads("divider\nV1 a 0 1\nR1 a 0 1k\n")).to_dict()
    assert "uniqueness" not in shown
