"""The machine: energies, conditionals, sampling, files, refusals."""

import numpy as np
import pytest
from machines import joint_table, random_machine

from circuitsim.boltzmann import RestrictedBoltzmannMachine
from circuitsim.boltzmann.enumeration import states
from circuitsim.errors import UsageError
from circuitsim.training import CheckpointError, save_checkpoint


def test_a_machine_has_arrays_of_its_own():
    given = {"weights": np.asfortranarray(np.ones((2, 3))), "visible_bias": np.ones(3), "hidden_bias": np.ones(2)}
    machine = RestrictedBoltzmannMachine.from_parameters(given)
    other = RestrictedBoltzmannMachine.from_parameters(machine.parameters)
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
    with np.errstate(over="ignore"):
        exact = 1.0 / (1.0 + np.exp(-activation))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e3 * np.finfo(dtype).eps * max(1.0, scale))


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


def test_same_generator_same_bits_and_gibbs_leaves_its_start_alone():
    machine = random_machine(9, 6, dtype=np.float32)
    start = np.zeros((5, 9), np.float32)
    one, two = (machine.gibbs(start, np.random.default_rng(8), steps=4) for _ in range(2))
    assert one.tobytes() == two.tobytes() and one.any() and not start.any()
    # Two steps and two more are four.
    rng = np.random.default_rng(8)
    assert machine.gibbs(machine.gibbs(start, rng, 2), rng, 2).tobytes() == one.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gibbs_statistics_are_those_of_the_enumerated_distribution(dtype):
    """Chi-square of 40,000 independent chains over the 32 states of p_e T^k, for k = 1 and k = 60 (stationary)."""
    from scipy.stats import chi2

    from circuitsim.boltzmann.exact import after_gibbs, empirical_distribution, model_distribution

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
    with pytest.raises(CheckpointError, match=r"other\.npz holds no Boltzmann machine \(its model is 'x'\)$"):
        RestrictedBoltzmannMachine.load(tmp_path / "other.npz")


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: RestrictedBoltzmannMachine(np.ones(3), np.ones(3), np.ones(1)),
            "the weights must be a matrix (hidden units × visible units), not of shape (3,)",
        ),
        (
            lambda: RestrictedBoltzmannMachine(np.ones((2, 3)), np.ones(2), np.ones(2)),
            "the visible bias must have shape (3,), not (2,)",
        ),
        (
            lambda: RestrictedBoltzmannMachine(np.ones((2, 3)), np.ones(3), np.ones(3)),
            "the hidden bias must have shape (2,), not (3,)",
        ),
        (
            lambda: RestrictedBoltzmannMachine(np.full((1, 1), np.nan), np.ones(1), np.ones(1)),
            "the parameters of a Boltzmann machine must be finite",
        ),
        (
            lambda: RestrictedBoltzmannMachine.random(0, 3, np.random.default_rng(0)),
            "a Boltzmann machine needs at least one unit in each layer, not 0 and 3",
        ),
        (
            lambda: random_machine(3, 2).gibbs(np.zeros((1, 3)), np.random.default_rng(0), -1),
            "the number of Gibbs steps must not be negative, not -1",
        ),
        (
            lambda: random_machine(3, 2).hidden_probability(np.zeros((1, 2))),
            "states must have shape (samples, 3), not (1, 2)",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(UsageError) as caught:
        make()
    assert str(caught.value) == message
