"""Enumeration against the definition, the exact bias against what it must be, and bounds that no machine breaks."""

from itertools import product

import numpy as np
import pytest
from helpers import slopes
from machines import joint_table, random_machine
from scipy.special import expit

from circuitsim.boltzmann import (
    RestrictedBoltzmannMachine,
    bias,
    bias_bound,
    data_distance,
    empirical_distribution,
    expected_contrastive_divergence,
    likelihood_gradient,
    log_likelihood,
    log_partition,
    max_energy_change,
    mixing_factor,
    model_distribution,
    older_bound,
    pattern_set,
    total_variation,
    transition_matrix,
)
from circuitsim.boltzmann.exact import after_gibbs, distinct, largest, model_expectation, states

SIZES = pytest.mark.parametrize("visible, hidden", [(1, 1), (2, 5), (6, 3), (4, 4)])


@SIZES
def test_partition_function_and_model(visible, hidden):
    machine = random_machine(visible, hidden)
    table, log_z = joint_table(machine)
    assert log_partition(machine) == pytest.approx(log_z, rel=1e-13)
    np.testing.assert_allclose(model_distribution(machine), table.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(np.exp(log_likelihood(machine, states(visible))), table.sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("visible, hidden", [(13, 40), (40, 13)])
def test_enumeration_in_blocks_is_enumeration_from_either_side(visible, hidden):
    """13 units take 8 blocks. A chain of two machines' worth of structure: hidden units beyond the 13 are uncoupled."""
    machine = random_machine(visible, hidden, scale=0.3)
    if hidden > visible:
        machine.weights[13:] = 0
        small = RestrictedBoltzmannMachine(machine.weights[:13], machine.visible_bias, machine.hidden_bias[:13])
        rest = np.logaddexp(0, machine.hidden_bias[13:]).sum()
    else:
        machine.weights[:, 13:] = 0
        small = RestrictedBoltzmannMachine(machine.weights[:, :13], machine.visible_bias[:13], machine.hidden_bias)
        rest = np.logaddexp(0, machine.visible_bias[13:]).sum()
    assert log_partition(machine) == pytest.approx(log_partition(small.swapped()) + rest, rel=1e-13)
    found, reference = model_expectation(machine), model_expectation(small.swapped())
    np.testing.assert_allclose(found["weights"][:13, :13], reference["weights"].T, rtol=1e-10)


def test_extreme_weights_do_not_overflow():
    machine = random_machine(4, 3, scale=1.0)
    large = RestrictedBoltzmannMachine(machine.weights * 300, machine.visible_bias, machine.hidden_bias)
    assert log_partition(large) == pytest.approx(joint_table(large)[1], rel=1e-13)
    assert model_distribution(large).sum() == pytest.approx(1.0, rel=1e-9)


@SIZES
def test_exact_gradient_is_that_of_the_exact_likelihood(visible, hidden):
    machine, rng = random_machine(visible, hidden), np.random.default_rng(0)
    patterns, shares = rng.integers(0, 2, (5, visible)).astype(float), rng.dirichlet(np.ones(5))
    gradient = likelihood_gradient(machine, patterns, shares)
    for name, array in machine.parameters.items():
        found = slopes(lambda: shares @ log_likelihood(machine, patterns), array, 1e-5)
        np.testing.assert_allclose(gradient[name], found, rtol=0, atol=1e-9)


@SIZES
def test_transition_matrix(visible, hidden):
    machine = random_machine(visible, hidden)
    table, _ = joint_table(machine)
    forth, back = table / table.sum(axis=1, keepdims=True), (table / table.sum(axis=0)).T
    matrix = transition_matrix(machine)
    np.testing.assert_allclose(matrix, forth @ back, rtol=1e-11)
    # Detailed balance: the chain on v alone is reversible.
    flow = model_distribution(machine)[:, None] * matrix
    np.testing.assert_allclose(flow, flow.T, rtol=1e-10)
    start = np.random.default_rng(1).dirichlet(np.ones(2**visible))
    np.testing.assert_allclose(after_gibbs(machine, start, 3), start @ np.linalg.matrix_power(matrix, 3), rtol=1e-10)


@SIZES
def test_bias_is_expected_update_minus_exact_gradient(visible, hidden):
    machine = random_machine(visible, hidden)
    rng = np.random.default_rng(2)
    start = rng.dirichlet(np.ones(2**visible))
    gradient = likelihood_gradient(machine, states(visible), start)
    for k in (1, 3):
        update, wrong = expected_contrastive_divergence(machine, start, k), bias(machine, start, k)
        for name in gradient:
            np.testing.assert_allclose(update[name] - gradient[name], wrong[name], atol=1e-13)


def test_expected_update_is_the_mean_of_sampled_ones():
    from circuitsim.boltzmann import ContrastiveDivergence, FixedSteps

    machine = random_machine(4, 3)
    patterns = pattern_set("diag", 4)
    expected = expected_contrastive_divergence(machine, empirical_distribution(patterns), 2)
    learner, rng = ContrastiveDivergence(machine, FixedSteps(2)), np.random.default_rng(0)
    draws = [
        {name: -array.copy() for name, array in learner.gradient((np.repeat(patterns, 50, axis=0),), rng)[0].items()}
        for _ in range(400)
    ]
    for name, array in expected.items():
        sampled = np.array([draw[name] for draw in draws])
        error = sampled.std(axis=0) / np.sqrt(len(draws))
        assert (np.abs(sampled.mean(axis=0) - array) < 5 * error + 1e-12).all()


def test_no_bias_where_the_start_is_the_model_or_the_weights_are_zero():
    machine = random_machine(5, 4)
    for k in (1, 2, 7):
        assert largest(bias(machine, model_distribution(machine), k)) < 1e-14
    machine.weights[...] = 0
    # Without weights one step forgets all.
    assert largest(bias(machine, empirical_distribution(pattern_set("diag", 5)), 1)) < 1e-14


def test_bias_vanishes_with_k():
    machine = random_machine(5, 4, scale=0.7)
    start = empirical_distribution(pattern_set("1dball", 5))
    sizes = [largest(bias(machine, start, k)) for k in (0, 1, 4, 16, 200)]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > 0.1 and sizes[-1] < 1e-12


def test_distances():
    machine = random_machine(5, 4)
    patterns = pattern_set("diag", 5)
    shares = np.full(6, 1 / 6)
    model = model_distribution(machine)
    exact = total_variation(empirical_distribution(patterns), model)
    assert data_distance(machine, patterns, shares) == pytest.approx(exact, rel=1e-12)
    # Theorem 3's start: v fixed, h from p(h | v), against the model of both; the distance is that on v alone.
    table, _ = joint_table(machine)
    row = table[5] / table[5].sum()
    joint = np.zeros_like(table)
    joint[5] = row
    assert data_distance(machine, states(5)[5][None], np.ones(1)) == pytest.approx(
        0.5 * np.abs(joint - table).sum(), rel=1e-12
    )


def test_pattern_sets():
    assert pattern_set("diag", 3).tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert sorted(map(tuple, pattern_set("1dball", 4))) == [(0, 0, 1, 1), (0, 1, 1, 0), (1, 0, 0, 1), (1, 1, 0, 0)]
    assert len(pattern_set("1dball", 6)) == 6 and (pattern_set("1dball", 6).sum(axis=1) == 3).all()
    twice = empirical_distribution(np.array([[1, 0], [1, 0], [0, 1]]))
    np.testing.assert_allclose(twice, [0, 2 / 3, 1 / 3, 0])


SCALES, BIASES = [0.0, 1e-3, 0.02, 0.1, 0.3, 1.0, 3.0, 10.0], [0.0, 0.1, 1.0, 5.0]
STARTS = {
    "single": lambda size, rng: np.eye(size)[rng.integers(size)],
    "few": lambda size, rng: np.bincount(rng.integers(size, size=3), minlength=size) / 3,
    "dense": lambda size, rng: np.full(size, 1 / size),
    "random": lambda size, rng: rng.dirichlet(np.full(size, 0.3)),
}


def test_no_machine_breaks_either_bound():
    for seed in range(2000):
        rng = np.random.default_rng(seed)
        (visible, hidden), scale, bias_scale = rng.integers(1, 7, 2), rng.choice(SCALES), rng.choice(BIASES)
        k, start = int(rng.choice([1, 2, 3, 10])), str(rng.choice([*STARTS, "model"]))
        machine = RestrictedBoltzmannMachine(
            scale * rng.standard_normal((hidden, visible)),
            bias_scale * rng.standard_normal(visible),
            bias_scale * rng.standard_normal(hidden),
        )
        model = model_distribution(machine)
        distribution = model if start == "model" else STARTS[start](len(model), rng)
        # Energies of a hundred leave round-off of a hundred units in the exponents; a bound of exactly 0 shows it.
        wrong = largest(bias(machine, distribution, k)) - 1e-12
        distance = total_variation(distribution, model)
        assert wrong <= bias_bound(machine, k, distance), seed
        assert wrong <= bias_bound(machine, k), seed
        assert wrong <= older_bound(machine, k), seed


def test_delta_is_the_largest_change_of_energy_by_one_unit():
    for seed in range(20):
        machine = random_machine(3, 4, seed)
        most = 0.0
        for layer in (machine, machine.swapped()):
            others = states(layer.hidden)
            for unit, other in product(range(layer.visible), others):
                off, on = np.zeros((1, layer.visible)), np.zeros((1, layer.visible))
                on[0, unit] = 1
                change = layer.energy(on, other[None]) - layer.energy(off, other[None])
                most = max(most, abs(float(change[0])))
        assert max_energy_change(machine) == pytest.approx(most, rel=1e-12)


def test_mixing_factor():
    assert mixing_factor(0.0, 12, 1) == 0.0
    assert mixing_factor(0.1, 12, 3) == pytest.approx((1 - np.exp(-1.2)) ** 3, rel=1e-14)
    assert mixing_factor(5.0, 12, 0) == 1.0
    # Where 1 − exp(−40) rounds badly, a huge k still shows.
    assert mixing_factor(4.0, 10, 10**17) == pytest.approx(np.exp(-(10**17) * np.exp(-40.0)), rel=1e-12)


def test_older_bound_is_its_formula():
    machine = random_machine(3, 2, scale=0.05)
    alpha = (np.abs(machine.weights).sum(axis=0) + np.abs(machine.visible_bias)).max()
    beta = (np.abs(machine.weights).sum(axis=1) + np.abs(machine.hidden_bias)).max()
    value = 8 * (1 - 8 * 4 * expit(-alpha) ** 3 * expit(-beta) ** 2) ** 5
    assert older_bound(machine, 5) == pytest.approx(value, rel=1e-12)
    # It grows to 2^m where the newer one stays below one.
    large = random_machine(3, 2, scale=20)
    assert older_bound(large, 1) == pytest.approx(8.0) and bias_bound(large, 1) <= 1.0
    assert older_bound(random_machine(2000, 2), 1) == np.inf


def test_repeated_patterns_add_up():
    rows, shares = distinct(np.array([[1, 0], [0, 0], [1, 0]]))
    assert rows.tolist() == [[0, 0], [1, 0]] and shares == pytest.approx([1 / 3, 2 / 3])
