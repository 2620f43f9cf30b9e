"""The machine: energies, conditionals, sampling, files, refusals."""

import numpy as np
import pytest
from machines import joint_table, random_machine
from scipy.special import expit
from scipy.stats import chi2

from circuitsim.boltzmann import (
    AdaptiveSteps,
    ContrastiveDivergence,
    EnumerationError,
    RestrictedBoltzmannMachine,
    bias,
    empirical_distribution,
    estimate_log_partition,
    expected_contrastive_divergence,
    log_partition,
    mixing_factor,
    model_distribution,
    pattern_set,
    train_expected,
    transition_matrix,
)
from circuitsim.boltzmann.exact import after_gibbs, states
from circuitsim.boltzmann.study import Settings
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.training import CheckpointError, save_checkpoint

PAIR = random_machine(2, 2)


def test_a_machine_has_arrays_of_its_own():
    given = {"weights": np.asfortranarray(np.ones((2, 3))), "visible_bias": np.ones(3), "hidden_bias": np.ones(2)}
    machine = RestrictedBoltzmannMachine(**given)
    other = RestrictedBoltzmannMachine(**machine.parameters)
    for array in machine.parameters.values():
        array += 1
    assert all((array == 1).all() for array in [*given.values(), *other.parameters.values()])


def test_energy_and_free_energy_agree_with_the_joint_distribution():
    machine = random_machine(4, 3)
    table, log_z = joint_table(machine)
    v, h = states(4), states(3)
    for i, pattern in enumerate(v):
        energy = machine.energy(np.tile(pattern, (len(h), 1)), h)
        np.testing.assert_allclose(np.exp(-energy - log_z), table[i], rtol=1e-12)
    np.testing.assert_allclose(np.exp(-machine.free_energy(v) - log_z), table.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(np.exp(-machine.swapped().free_energy(h) - log_z), table.sum(axis=0), rtol=1e-12)


def test_conditionals_are_those_of_the_joint_distribution():
    machine = random_machine(4, 3)
    table, _ = joint_table(machine)
    v, h = states(4), states(3)
    np.testing.assert_allclose(machine.hidden_probability(v), table @ h / table.sum(1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(machine.visible_probability(h), table.T @ v / table.sum(0)[:, None], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [0.1, 1.0, 300.0])
def test_conditionals_of_large_layers_are_logistic(dtype, scale):
    """Sparse and grey states; activations from where exp underflows to where it overflows."""
    machine, rng = random_machine(345, 150, scale=scale, dtype=dtype), np.random.default_rng(1)
    v = ((rng.random((9, 345)) < 0.3) * rng.choice([1.0, 0.37], (9, 345))).astype(dtype)
    activation = v.astype(float) @ machine.weights.T.astype(float) + machine.hidden_bias
    found = machine.hidden_probability(v)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expit(activation), rtol=0, atol=1e3 * np.finfo(dtype).eps * max(1.0, scale))


def test_pseudo_likelihood_is_the_product_of_conditionals():
    machine = random_machine(4, 3)
    p = joint_table(machine)[0].sum(axis=1)
    v = states(4)
    index = np.arange(16)
    exact = sum(np.log(p / (p + p[index ^ (1 << j)])) for j in range(4))
    np.testing.assert_allclose(machine.pseudo_log_likelihood(v), exact, rtol=1e-10)
    # One term drawn for all: unbiased.
    draws = [machine.pseudo_log_likelihood(v, np.random.default_rng(s)) for s in range(4000)]
    error = np.std(draws, axis=0) / np.sqrt(len(draws))
    assert (np.abs(np.mean(draws, axis=0) - exact) < 5 * error).all()


def test_gibbs_leaves_its_start_alone_and_two_steps_and_two_more_are_four():
    machine, start = random_machine(9, 6, dtype=np.float32), np.zeros((5, 9), np.float32)
    whole, rng = machine.gibbs(start, np.random.default_rng(8), steps=4), np.random.default_rng(8)
    assert whole.any() and not start.any()
    np.testing.assert_array_equal(machine.gibbs(machine.gibbs(start, rng, 2), rng, 2), whole)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gibbs_statistics_are_those_of_the_enumerated_distribution(dtype):
    """Chi-square of 40,000 independent chains over the 32 states of p_e T^k, for k = 1 and k = 60 (stationary)."""
    machine = random_machine(5, 4, seed=3, dtype=dtype)
    start = np.zeros((40_000, 5), dtype)
    for steps, seed in ((1, 0), (60, 1)):
        found = empirical_distribution(machine.gibbs(start, np.random.default_rng(seed), steps))
        expected = after_gibbs(machine, empirical_distribution(start[:1]), steps)
        if steps == 60:
            np.testing.assert_allclose(expected, model_distribution(machine), rtol=1e-3)
        statistic = len(start) * ((found - expected) ** 2 / expected).sum()
        assert chi2.ppf(1e-4, 31) < statistic < chi2.ppf(1 - 1e-4, 31)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_save_and_load(tmp_path, dtype):
    machine = random_machine(4, 3, dtype=dtype)
    machine.save(tmp_path / "m.npz")
    loaded = RestrictedBoltzmannMachine.load(tmp_path / "m.npz")
    for name, array in machine.parameters.items():
        assert loaded.parameters[name].dtype == dtype and loaded.parameters[name].tobytes() == array.tobytes()
    save_checkpoint(tmp_path / "other.npz", {}, {"model": "x"})
    with pytest.raises(
        CheckpointError, match=r"other\.npz is of another run or model: it holds the model 'x', not 'rbm'$"
    ):
        RestrictedBoltzmannMachine.load(tmp_path / "other.npz")


RNG, HALF = np.random.default_rng(0), np.ones(4) / 4


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: RestrictedBoltzmannMachine(np.ones(3), np.ones(3), np.ones(1)), "must be a matrix .*not of shape .3"),
        (lambda: RestrictedBoltzmannMachine(np.ones((2, 3)), np.ones(2), np.ones(2)), "visible bias must have shape"),
        (lambda: RestrictedBoltzmannMachine(np.ones((2, 3)), np.ones(3), np.ones(3)), "hidden bias must have shape"),
        (lambda: RestrictedBoltzmannMachine(np.full((1, 1), np.nan), np.ones(1), np.ones(1)), "must be finite"),
        (lambda: PAIR.gibbs(np.zeros((1, 2)), RNG, -1), "Gibbs steps must not be negative, not -1"),
        (lambda: PAIR.hidden_probability(np.zeros((1, 3))), "states must have shape .samples, 2., not .1, 3"),
        (lambda: log_partition(random_machine(25, 30)), "no layer of at most 24 units.*estimate log Z with AIS"),
        (lambda: model_distribution(random_machine(17, 2)), "at most 16 units in a layer and 24 in both, not 17 and 2"),
        (lambda: after_gibbs(random_machine(13, 12), np.zeros(2**13), 1), "24 in both, not 13 and 12"),
        (lambda: transition_matrix(random_machine(13, 2)), "of 13 visible units is too large; at most 12"),
        (lambda: empirical_distribution(np.zeros((1, 17))), "17 units have too many states; at most 16"),
        (lambda: empirical_distribution(np.full((1, 2), 0.5)), "patterns must be rows of zeros and ones"),
        (lambda: expected_contrastive_divergence(PAIR, HALF, -1), "Gibbs steps must not be negative, not -1"),
        (lambda: bias(PAIR, HALF, -1), "Gibbs steps must not be negative, not -1"),
        (lambda: mixing_factor(1.0, 12, -1), "no bound for -1 steps of 12 units"),
        (lambda: pattern_set("x", 2), "no pattern set 'x'; there are diag, 1dball"),
        (lambda: AdaptiveSteps(nats=0), "nats of one adaptive Gibbs step must be positive, not 0"),
        (
            lambda: ContrastiveDivergence(PAIR).gradient((np.zeros((2, 3)),), RNG),
            "shape .samples, 2., not .2",
        ),
        (lambda: train_expected(PAIR, HALF, 0.1, 0, 1), "k ≥ 1, updates ≥ 0 and rate ≥ 0, not 0, 1 and 0.1"),
        (lambda: train_expected(PAIR, np.ones(3) / 3, 0.1, 1, 1), "must have 4 entries, not shape .3"),
        (lambda: train_expected(PAIR, np.array([0, 1.0, 0, 0]), 1e4, 1, 50), "expected CD-k diverged"),
        (lambda: estimate_log_partition(PAIR, RNG, chains=1), "at least 1 temperature and 2 chains, not 1000 and 1"),
        (lambda: estimate_log_partition(PAIR, RNG, data_mean=np.ones(3)), "mean must have shape .2,., not .3"),
        *((lambda name=name: Settings(**{name: -1}), f"{name} must be at least") for name in ("updates", "k", "seed")),
        (lambda: Settings(runs=1), "runs must be at least 2, not 1"),
    ],
)
def test_refusals(make, message):
    with pytest.raises((UsageError, ConvergenceError, EnumerationError), match=message):
        make()
