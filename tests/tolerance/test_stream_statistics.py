"""Statistics against all numbers at once; intervals against scipy and their coverage."""

from importlib import import_module

import numpy as np
import pytest

from circuitsim.tolerance.montecarlo import Moments, proportion, quantile

result = import_module("circuitsim.tolerance.montecarlo")  # the package has a function of this name


def test_intervals_of_quantiles_hold_them_as_often_as_they_say() -> None:
    rng = np.random.default_rng(1)
    for n, probability in ((20, 0.5), (200, 0.05), (1000, 0.99)):
        found = [quantile(np.sort(rng.random(n)), probability, 0.9) for _ in range(2000)]
        assert np.mean([low <= probability <= high for low, _, high in found]) >= 0.885
        assert all(low <= value <= high for low, value, high in found)
    assert quantile(np.arange(3.0), 0.01, 0.95)[::2] == (-np.inf, 1.0)


def test_quantiles_are_of_the_first_samples_and_moments_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result, "EXACT", 100)
    monkeypatch.setattr(result, "HELD", 0)
    summary, numbers = result.Summary(1, 1, [], []), np.random.default_rng(2).random((300, 1))
    for part in np.array_split(numbers, 7):
        summary.add(result.Block(part, Moments.of(part, part), 0, 0.0))
    np.testing.assert_array_equal(np.concatenate(summary.held), numbers[:100])
    assert (summary.least, summary.most, summary.samples) == (numbers.min(), numbers.max(), 300)


def test_proportions_are_those_of_scipy() -> None:
    from scipy.stats import binomtest

    for successes, trials in ((0, 10), (10, 10), (3, 17), (99_990, 100_000)):
        expected = binomtest(successes, trials).proportion_ci(0.99, method="exact")
        low, value, high = proportion(successes, trials, 0.99)
        assert (low, high) == pytest.approx((expected.low, expected.high), rel=1e-9)
        assert value == successes / trials
