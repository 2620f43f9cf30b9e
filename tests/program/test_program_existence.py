"""Super-nodes, loops, and the two ways of having no steady state: each names its witness."""

import pytest

import circuitsim
from circuitsim.errors import InfeasibleError, UnboundedError


def solve(text: str) -> circuitsim.OperatingPoint:
    return circuitsim.solve(circuitsim.loads("test\n" + text))


@pytest.mark.parametrize(
    ("text", "elements", "nodes"),
    [
        ("V1 a 0 1\nV2 a 0 2\nR1 a 0 1\n", {"V1", "V2"}, {"a", "0"}),
        ("V1 a 0 1\nD1 a 0\nR1 a 0 1\n", {"V1", "D1"}, {"a", "0"}),
        ("V1 a 0 1\nV2 b 0 3\nD1 b c\nD2 c a\nR1 c 0 1\n", {"V1", "V2", "D1", "D2"}, {"a", "b", "c", "0"}),
        ("V1 a a 1\nR1 a 0 1\n", {"V1"}, {"a"}),
        ("V1 a b 1\nV2 b c 1\nL1 c a 1m\nR1 a 0 1\n", {"V1", "V2", "L1"}, {"a", "b", "c"}),
    ],
)
def test_infeasible_names_the_loop(text: str, elements: set[str], nodes: set[str]) -> None:
    with pytest.raises(InfeasibleError, match="violates Kirchhoff's voltage law by") as caught:
        solve(text)
    assert set(caught.value.elements) == elements
    assert set(caught.value.nodes) == nodes
    assert caught.value.cause["kind"] == "cycle"


@pytest.mark.parametrize(
    ("text", "elements", "nodes"),
    [
        ("I1 0 a 1m\nD1 0 a\n", {"I1"}, {"a"}),
        ("I1 a 0 1m\nD1 a 0\nR1 b 0 1\n", {"I1"}, {"a"}),
        ("I1 0 a 2\nI2 b 0 1\nD1 a b\nR1 c 0 1\n", {"I1", "I2"}, {"a", "b"}),
        ("R1 a b 1\nI1 0 a 1\nR2 c 0 1\n", {"I1"}, {"a", "b"}),
        ("I1 a b 1\nR1 a 0 1\n", {"I1"}, {"b"}),
    ],
)
def test_unbounded_names_the_cut(text: str, elements: set[str], nodes: set[str]) -> None:
    with pytest.raises(UnboundedError, match="without another DC path") as caught:
        solve(text)
    assert set(caught.value.elements) == elements
    assert set(caught.value.nodes) == nodes
    assert caught.value.cause["kind"] == "cut"


def test_currents_may_take_turns_through_islands() -> None:
    """2 A into a leave half through b, half through c: a flow with choices, found by augmenting paths."""
    op = solve("I1 0 a 2\nI2 b 0 1\nI3 c 0 1\nD1 a b\nD2 a c\nD3 b c\nR1 x 0 1\n")
    assert op.current("D1") - op.current("D3") == pytest.approx(1.0)
    assert op.certificate.certified


def test_loops_close_but_for_rounding_only() -> None:
    closes = solve("V1 a b 0.1\nV2 b c 0.2\nV3 a c 0.3\nR1 a 0 1\nR2 c 0 1\n")
    assert closes.certificate.certified and not closes.unique[:3].any()
    with pytest.raises(InfeasibleError, match="by 1e-06 V"):
        solve("V1 a b 0.1\nV2 b c 0.2\nV3 a c 0.300001\nR1 a 0 1\nR2 c 0 1\n")


def test_diode_cycles_close_but_for_rounding_only() -> None:
    """a ≤ b ≤ a through diodes between floating trees whose offsets cancel but for rounding."""
    closes = solve("V1 p q 0.1\nV2 q r 0.2\nV3 s t 0.3\nD1 p s\nD2 t r\nR1 p 0 1\nR2 t 0 1\nR3 r 0 1\n")
    assert closes.certificate.certified
