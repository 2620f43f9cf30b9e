"""Sketches and moments against all numbers at once; intervals against scipy and their coverage."""

from __future__ import annotations

import numpy as np
import pytest

from circuitsim.tolerance.statistics import KEPT, Moments, QuantileSketch, proportion


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


def test_few_numbers_are_exact() -> None:
    numbers = np.random.default_rng(0).random(KEPT - 1)
    sketch = QuantileSketch()
    sketch.add(numbers)
    assert sketch.rank_error == 0
    assert sketch.order_statistic(np.array([0, 1, 77, numbers.size + 1])).tolist() == [
        -np.inf,
        numbers.min(),
        np.sort(numbers)[76],
        np.inf,
    ]


def test_proportions_are_those_of_scipy() -> None:
    from scipy.stats import binomtest

    for successes, trials in ((0, 10), (10, 10), (3, 17), (99_990, 100_000)):
        expected = binomtest(successes, trials).proportion_ci(0.99, method="exact")
        low, value, high = proportion(successes, trials, 0.99)
        assert (low, high) == pytest.approx((expected.low, expected.high), rel=1e-9)
        assert value == successes / trials


def test_moments_merge() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((5000, 3))
    y = 1e6 + np.stack([x[:, 0] + 2.0 * x[:, 1], x[:, 2] ** 2], axis=1)
    moments = Moments.of(y[:0], x[:0])
    for part in np.array_split(np.arange(5000), 7):
        moments = moments.plus(Moments.of(y[part], x[part]))
    moments = moments.plus(Moments.of(y[:0], x[:0]))
    assert moments.mean == pytest.approx(y.mean(axis=0), rel=1e-12)
    assert moments.deviation == pytest.approx(y.std(axis=0, ddof=1), rel=1e-9)
    shares = moments.contributions()
    assert shares[:, 0] == pytest.approx([0.2, 0.8, 0.0], abs=0.02)
    assert shares[:, 1].sum() < 0.02
