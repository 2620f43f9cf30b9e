"""The experiment of the paper at small size, and the ways its result is condensed."""

import numpy as np
import pytest

from circuitsim.boltzmann import RestrictedBoltzmannMachine, bias, empirical_distribution, pattern_set, train_expected
from circuitsim.boltzmann.exact import largest
from circuitsim.boltzmann.study import MEAN_SIZE, PER_RUN, SIZE_OF_MEAN, BiasCurves, Settings, final_gaps, run_study

SMALL = Settings(runs=3, updates=200, visible=4, hidden=4)


def test_a_run_is_the_training_it_says():
    curves = run_study(SMALL, "diag")
    assert curves.updates[0] == 0 and curves.updates[-1] == 200
    rng = np.random.default_rng(np.random.SeedSequence(0).spawn(3)[2])
    first = RestrictedBoltzmannMachine(rng.uniform(-0.5, 0.5, (4, 4)), np.zeros(4), np.zeros(4))
    start = empirical_distribution(pattern_set("diag", 4))
    last = train_expected(first, start, 0.1, 1, 200)
    assert curves.largest_bias[2, 0] == pytest.approx(largest(bias(first, start, 1)))
    assert curves.largest_bias[2, -1] == pytest.approx(largest(bias(last, start, 1)), rel=1e-9)
    more = run_study(Settings(4, 200, visible=4, hidden=4), "diag")  # runs do not depend on how many there are
    np.testing.assert_allclose(more.bias[:3], curves.bias)


@pytest.mark.parametrize("patterns", ["diag", "1dball"])
def test_the_bound_holds_and_learning_brings_the_model_to_the_data(patterns):
    curves = run_study(Settings(runs=3, updates=3000), patterns)
    assert (curves.largest_bias <= curves.bound).all()
    assert (curves.older[:, 0] > 1).all()
    assert (curves.log_likelihood[:, -1] > curves.log_likelihood[:, 0] + 1).all()
    assert (curves.distance[:, -1] < 0.35).all() and (curves.delta[:, -1] > curves.delta[:, 0]).all()


def _curves(bias_values, bound):
    """Curves with one moment."""
    bound = np.array(bound, dtype=float)[:, None]
    return BiasCurves(np.array([0]), np.array(bias_values, dtype=float)[:, None, :], bound, *[bound] * 4)


def test_aggregations():
    """Two runs whose largest biases sit at different parameters and one of which changes sign."""
    curves = _curves([[0.4, 0.1], [-0.2, 0.3]], [0.5, 0.7])
    gaps = final_gaps(curves, Settings(runs=2, updates=1))
    assert gaps[PER_RUN].mean == pytest.approx(((0.5 - 0.4) + (0.7 - 0.3)) / 2)
    assert gaps[MEAN_SIZE].mean == pytest.approx(0.6 - 0.3)
    assert gaps[SIZE_OF_MEAN].mean == pytest.approx(0.6 - 0.2)


def test_spread_between_batches_and_by_bootstrap():
    rng = np.random.default_rng(0)
    bias_values, bound = rng.random((400, 3)) * 0.2, 0.5 + 0.1 * rng.standard_normal(400)
    measured = final_gaps(_curves(bias_values, bound), Settings(runs=20, updates=1, batches=20))
    redrawn = final_gaps(_curves(bias_values, bound), Settings(runs=400, updates=1))
    expected = (bound - bias_values.max(axis=1)).std() / np.sqrt(20)
    assert measured[PER_RUN].spread == pytest.approx(expected, rel=0.5)
    # 400 runs in one batch: their mean is √20 times sharper.
    assert redrawn[PER_RUN].spread == pytest.approx(expected / np.sqrt(20), rel=0.1)
    assert redrawn[PER_RUN].mean == pytest.approx(measured[PER_RUN].mean)
