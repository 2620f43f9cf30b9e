"""Enumeration against the definition, and the exact bias against what it must be."""

import numpy as np
import pytest
from machines import joint_table, random_machine

from circuitsim.boltzmann import (
    EnumerationError,
    RestrictedBoltzmannMachine,
    bias,
    data_distance,
    empirical_distribution,
    expected_contrastive_divergence,
    likelihood_gradient,
    log_likelihood,
    log_partition,
    model_distribution,
    pattern_distance,
    pattern_set,
    total_variation,
    transition_matrix,
)
from circuitsim.boltzmann.enumeration import model_expectation, states
from circuitsim.boltzmann.exact import after_gibbs, largest
from circuitsim.errors import UsageError

SIZES = pytest.mark.parametrize("visible, hidden", [(1, 1), (2, 5), (6, 3), (4, 4)])


@SIZES
def test_partition_function_and_model(visible, hidden):
    machine = random_machine(visible, hidden)
    table, log_z = joint_table(machine)
    assert log_partition(machine) == pytest.approx(log_z, rel=1e-13)
    np.testing.assert_allclose(model_distribution(machine), table.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(np.exp(log_likelihood(machine, states(visible))), table.sum(axis=1), rtol=1e-12)


@SIZES
def test_model_expectations(visible, hidden):
    machine = random_machine(visible, hidden)
    table, _ = joint_table(machine)
    v, h = states(visible), states(hidden)
    found = model_expectation(machine)
    np.testing.assert_allclose(found["weights"], h.T @ table.T @ v, rtol=1e-11)
    np.testing.assert_allclose(found["visible_bias"], table.sum(1) @ v, rtol=1e-11)
    np.testing.assert_allclose(found["hidden_bias"], table.sum(0) @ h, rtol=1e-11)


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


@pytest.mark.parametrize("visible, hidden", [(3, 4), (4, 2)])
def test_exact_gradient_is_the_finite_difference_of_the_exact_likelihood(visible, hidden):
    machine = random_machine(visible, hidden)
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 2, (5, visible)).astype(float)
    shares = rng.dirichlet(np.ones(5))
    gradient = likelihood_gradient(machine, patterns, shares)
    step = 1e-5
    for name, array in machine.parameters.items():
        for index in np.ndindex(array.shape):
            kept, ends = array[index], []
            for sign in (1, -1):
                array[index] = kept + sign * step
                ends.append(shares @ log_likelihood(machine, patterns))
            array[index] = kept
            assert gradient[name][index] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-9)


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
    assert pattern_distance(machine, states(5)[5]) == pytest.approx(0.5 * np.abs(joint - table).sum(), rel=1e-12)


def test_pattern_sets():
    assert pattern_set("diag", 3).tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert sorted(map(tuple, pattern_set("1dball", 4))) == [(0, 0, 1, 1), (0, 1, 1, 0), (1, 0, 0, 1), (1, 1, 0, 0)]
    assert len(pattern_set("1dball", 6)) == 6 and (pattern_set("1dball", 6).sum(axis=1) == 3).all()
    twice = empirical_distribution(np.array([[1, 0], [1, 0], [0, 1]]))
    np.testing.assert_allclose(twice, [0, 2 / 3, 1 / 3, 0])


@pytest.mark.parametrize(
    "make, error, message",
    [
        (
            lambda: log_partition(random_machine(25, 30)),
            EnumerationError,
            "a machine with 25 visible and 30 hidden units has no layer of at most 24 units, so its states cannot be "
            "enumerated; estimate log Z with AIS instead",
        ),
        (
            lambda: model_distribution(random_machine(17, 2)),
            EnumerationError,
            "exact analysis goes through all joint states: at most 16 units in a layer and 24 in both, not 17 and 2",
        ),
        (
            lambda: after_gibbs(random_machine(13, 12), np.zeros(2**13), 1),
            EnumerationError,
            "exact analysis goes through all joint states: at most 16 units in a layer and 24 in both, not 13 and 12",
        ),
        (
            lambda: transition_matrix(random_machine(13, 2)),
            EnumerationError,
            "the transition matrix of 13 visible units is too large; at most 12",
        ),
        (
            lambda: empirical_distribution(np.zeros((1, 17))),
            EnumerationError,
            "patterns of 17 units have too many states; at most 16 units are possible",
        ),
        (
            lambda: empirical_distribution(np.full((1, 2), 0.5)),
            UsageError,
            "patterns must be rows of zeros and ones to have a distribution over binary states",
        ),
        (
            lambda: expected_contrastive_divergence(random_machine(2, 2), np.ones(4) / 4, 0),
            UsageError,
            "contrastive divergence needs at least one Gibbs step, not 0",
        ),
        (
            lambda: bias(random_machine(2, 2), np.ones(4) / 4, -1),
            UsageError,
            "the number of Gibbs steps must not be negative, not -1",
        ),
        (lambda: pattern_set("x", 2), UsageError, "there is no pattern set 'x'; there are diag, 1dball"),
        (lambda: pattern_set("diag", 0), UsageError, "patterns need at least one unit, not 0"),
    ],
)
def test_refusals(make, error, message):
    with pytest.raises(error) as caught:
        make()
    assert str(caught.value) == message
