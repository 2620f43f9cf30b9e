"""Sketches and moments against all numbers at once; intervals against scipy and their coverage."""

from __future__ import annotations

import numpy as np
import pytest

from circuitsim.tolerance.statistics import QuantileSketch, proportion


@pytest.mark.parametrize("order", ["random", "sorted", "reversed", "alternating"])
def test_ranks_are_within_their_bound(order: str) -> None:
    rng = np.random.default_rng(1)
    numbers = rng.standard_normal(300_000)
    if order != "random":
        numbers.sort()
    if order == "reversed":
        numbers = numbers[::-1]
    if order == "alternating":
        numbers = np.concatenate([numbers[::2], numbers[1::2][::-1]])
    sketch = QuantileSketch()
    for part in np.array_split(numbers, 293):
        sketch.add(part)
    assert sketch.rank_error < 0.001 * numbers.size
    exact = np.sort(numbers)
    ranks = np.linspace(1, numbers.size, 101).astype(int)
    found = np.searchsorted(exact, sketch.order_statistic(ranks)) + 1
    assert np.abs(found - ranks).max() <= sketch.rank_error
    assert sketch.weighted()[1].sum() == numbers.size
    assert sketch.histogram()[0].sum() == numbers.size
    assert (sketch.least, sketch.most) == (exact[0], exact[-1])


def test_proportions_are_those_of_scipy() -> None:
    from scipy.stats import binomtest

    for successes, trials in ((0, 10), (10, 10), (3, 17), (99_990, 100_000)):
        expected = binomtest(successes, trials).proportion_ci(0.99, method="exact")
        low, value, high = proportion(successes, trials, 0.99)
        assert (low, high) == pytest.approx((expected.low, expected.high), rel=1e-9)
        assert value == successes / trials
