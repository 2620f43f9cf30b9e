"""Margins and kinks of diodes: exact ties against the rational oracle, scales against paths of networkx."""

import numpy as np
import pytest
from circuits import draw, sketch_of
from corpus import ties
from exact import Oracle

import circuitsim

BRIDGE = [("V", 1, 0, 6.0), ("R", 1, 2, 1.0), ("R", 2, 0, 3.0), ("R", 1, 3, 2.0), ("R", 3, 0, 6.0), ("D", 2, 3, 0.0)]


def test_kinks_are_the_exact_ties_of_random_circuits() -> None:
    kinks = others = 0
    for seed in range(150):
        sketch = draw(ties, seed, (3, 9))
        exact = Oracle(sketch.n, sketch.edges()).solve()
        if exact is None:
            continue
        point = circuitsim.solve(sketch.circuit())
        for k, (letter, a, b, _) in enumerate(sketch.parts):
            if letter != "D":
                assert np.isnan(point.margin[k]) and not point.kink[k]
            elif exact.unique[k]:
                tie = exact.current[k] == 0 and exact.voltage[a] == exact.voltage[b]
                assert point.kink[k] == tie, seed
                kinks, others = kinks + tie, others + (not tie)
    assert kinks > 10 and others > 100


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_the_scales_are_local(size: float) -> None:
    """A tie of small currents beside large ones is told by its own scale, and so is a small current that is none."""
    small = [(letter, a + 3 if a else 0, b + 3 if b else 0, value * size) for letter, a, b, value in BRIDGE]
    large = [("V", 1, 0, 1e3), ("R", 1, 2, 1e-3), ("D", 2, 0, 0.0)]
    point = circuitsim.solve(sketch_of([*large, *small]).circuit())
    assert point.kink.tolist() == [False] * 8 + [True] and point.margin[2] == 1.0
    one_sided = [*small[:2], ("R", 5, 0, small[2][3] * 2), *small[3:]]
    point = circuitsim.solve(sketch_of([*large, *one_sided]).circuit())
    assert not point.kink.any() and point.margin[8] > 1e-3


def test_blocking_diodes_have_their_loops_largest_drop_as_scale() -> None:
    elements = [("V", 1, 0, 8.0), ("R", 1, 2, 1.0), ("R", 2, 0, 3.0), ("D", 2, 1, 0.0), ("D", 3, 0, 0.0)]
    elements.append(("R", 3, 0, 1.0))
    point = circuitsim.solve(sketch_of(elements).circuit())
    assert point.margin[3] == pytest.approx(2.0 / 2.0) and not point.kink[3]  # the loop of R 1–2 alone: 2 V of 2 V
    assert point.margin[4] == 0.0 and point.kink[4]  # nothing flows in its part: either state is correct


def test_devices_and_amplifiers() -> None:
    deck = "t\nV1 a 0 {v}\nR1 a b 1\nD1 b 0 z\n.model z D(vfwd=0.75 ron=0.5)\n"
    for v, kink in ((0.5, False), (0.75, True), (1.0, False)):
        point = circuitsim.solve(circuitsim.loads(deck.format(v=v)))
        assert point.kink.tolist() == [False, False, kink]
        beside = circuitsim.solve(circuitsim.loads(deck.format(v=v) + "D2 a 0 j\n.model j D(is=1e-14)\n"))
        assert beside.kink.tolist() == [False, False, kink, False]  # a junction has no kinks, and hides no others
    amplified = "t\nV1 a 0 6\nR1 a b 1\nR2 b 0 3\nX1 b c bidiramp gain=2\nVr d 0 {v}\nD1 c d\n"
    for v, kink in ((8.0, False), (9.0, True), (10.0, False)):
        point = circuitsim.solve(circuitsim.loads(amplified.format(v=v)))
        assert point.kink.tolist() == [False] * 5 + [kink], point.margin
