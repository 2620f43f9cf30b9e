"""Contrastive divergence, the rules for k, expected training, log Z by annealing, and the live monitor."""

import math

import numpy as np
import pytest
from machines import joint_table, random_machine

from circuitsim.boltzmann import (
    AdaptiveSteps,
    ContrastiveDivergence,
    FixedSteps,
    RestrictedBoltzmannMachine,
    bias,
    bias_bound,
    empirical_distribution,
    estimate_log_partition,
    expected_contrastive_divergence,
    log_likelihood,
    log_partition,
    max_energy_change,
    pattern_set,
    train_expected,
)
from circuitsim.boltzmann.exact import largest
from circuitsim.boltzmann.monitor import Monitor
from circuitsim.training import SGD, Trainable, Trainer, TrainingPlan


def _learn(learner, patterns, epochs, **plan):
    Trainer(learner, [patterns], TrainingPlan(epochs, len(patterns), optimizer=SGD(0.2), **plan)).train()


@pytest.mark.parametrize("chains", [0, 20])
def test_learning_raises_the_exact_likelihood(chains):
    patterns = pattern_set("diag", 5)
    machine = RestrictedBoltzmannMachine.random(5, 6, np.random.default_rng(0), 0.1)
    learner = ContrastiveDivergence(machine, FixedSteps(3), chains)
    assert isinstance(learner, Trainable)
    before = log_likelihood(machine, patterns).mean()
    _learn(learner, np.repeat(patterns, 10, axis=0), 1500)
    after = log_likelihood(machine, patterns).mean()
    # Uniform states give −5 log 2 = −3.47, the patterns alone −log 6 = −1.79.
    assert before < -3.4 and after > -2.1


def test_persistent_chains_of_another_number_than_the_batch():
    """The mean over chains and the mean over the batch are each taken over their own number."""
    machine = random_machine(3, 2, scale=0.0)
    learner = ContrastiveDivergence(machine, FixedSteps(1), chains=4000)
    data = np.array([[1.0, 1.0, 0.0]])
    gradients, metrics = learner.gradient((data,), np.random.default_rng(0))
    assert "reconstruction" not in metrics
    # At zero parameters the model's E[h v] is 1/4, the data's 1/2 for units that are on.
    np.testing.assert_allclose(gradients["weights"], np.tile([-0.25, -0.25, 0.25], (2, 1)), atol=0.02)
    np.testing.assert_allclose(gradients["visible_bias"], [-0.5, -0.5, 0.5], atol=0.04)
    np.testing.assert_allclose(gradients["hidden_bias"], 0, atol=1e-12)


@pytest.mark.parametrize("k", [1, 3])
def test_expected_training_is_the_loop_over_expected_updates(k):
    machine = random_machine(5, 4, seed=1)
    start = empirical_distribution(pattern_set("1dball", 5))
    twin = machine
    for _ in range(30):
        update = expected_contrastive_divergence(twin, start, k)
        arrays = {name: array + 0.3 * update[name] for name, array in twin.parameters.items()}
        twin = RestrictedBoltzmannMachine(**arrays)
    trained = train_expected(machine, start, 0.3, k, 30)
    for name, array in twin.parameters.items():
        np.testing.assert_allclose(trained.parameters[name], array, atol=1e-12)


def test_adaptive_k_follows_its_rule():
    rule = AdaptiveSteps(k=2, k_max=10, nats=0.5)
    assert [rule.at(delta) for delta in (0.0, 0.9, 1.0, 1.01, 3.2, 5.0, 5.1, 1e300)] == [2, 2, 2, 3, 7, 10, 10, 10]
    machine = random_machine(4, 3)
    assert rule.steps(machine) == rule.at(max_energy_change(machine))


@pytest.mark.parametrize("patterns", ["diag", "1dball"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_adaptive_k_lowers_the_measured_bias_at_equal_gibbs_steps(patterns, seed):
    """While the weights grow: less bias on average, at its worst, and at the end, for the same number of steps."""
    start = empirical_distribution(pattern_set(patterns, 6))
    weights = np.random.default_rng(seed).uniform(-0.5, 0.5, (6, 6))
    first = RestrictedBoltzmannMachine(weights, np.zeros(6), np.zeros(6))
    rule, blocks, updates = AdaptiveSteps(k=1, k_max=20, nats=0.5), 100, 10

    def measure(steps):
        machine, sizes = first, []
        for block in range(blocks):
            k = steps(machine, block)
            sizes.append(largest(bias(machine, start, k)))
            spent.append(k)
            machine = train_expected(machine, start, 0.1, k, updates)
        return np.array(sizes)

    spent: list[int] = []
    adaptive = measure(lambda machine, block: rule.steps(machine))
    total, spent = sum(spent), []
    assert spent == [] and 5 < total / blocks < 15
    # The same total, spread evenly over the blocks: k is one of two neighbouring integers.
    fixed = measure(lambda machine, block: (block + 1) * total // blocks - block * total // blocks)
    assert sum(spent) == total
    assert adaptive.mean() < 0.8 * fixed.mean()
    assert adaptive.max() < 0.8 * fixed.max()
    assert adaptive[-1] < 0.8 * fixed[-1]


def test_annealing_finds_log_z_within_its_error_bars():
    inside = 0
    for seed in range(20):
        machine = random_machine(8, 6, seed)
        estimate = estimate_log_partition(machine, np.random.default_rng(seed), temperatures=300, chains=100)
        inside += estimate.low <= log_partition(machine) <= estimate.high
        assert estimate.low <= estimate.log_z <= estimate.high and estimate.standard_error < 0.2
        assert 20 < estimate.effective_chains <= 100
    # Three standard errors; skewed weights cost a little.
    assert inside >= 19


def test_annealing_without_weights_is_exact_from_any_start():
    machine = random_machine(5, 4)
    machine.weights[...] = 0
    rng = np.random.default_rng(0)
    mean = 1 / (1 + np.exp(-machine.visible_bias))
    estimate = estimate_log_partition(machine, rng, temperatures=400, chains=50, data_mean=mean)
    assert estimate.log_z == pytest.approx(joint_table(machine)[1], abs=1e-10)
    assert estimate.effective_chains == pytest.approx(50)


def test_annealing_too_fast_has_error_bars_that_say_so():
    machine = random_machine(12, 10, scale=3.0)
    estimate = estimate_log_partition(machine, np.random.default_rng(0), temperatures=2, chains=10)
    assert estimate.low == -math.inf and estimate.effective_chains < 3


def test_monitor_measures_what_it_says():
    patterns = pattern_set("diag", 5)
    machine = random_machine(5, 4, scale=0.3)
    row = Monitor(ContrastiveDivergence(machine, FixedSteps(2)), patterns, binary=True)(np.random.default_rng(0))
    start = empirical_distribution(patterns)
    assert row["log_likelihood"] == pytest.approx(log_likelihood(machine, patterns).mean())
    assert row["exact_bias"] == pytest.approx(largest(bias(machine, start, 2)))
    assert row["bound"] == pytest.approx(bias_bound(machine, 2, row["distance"]))
    assert row["exact_bias"] <= row["bound"] and row["vacuous"] is False
    assert row["pseudo_likelihood"] == pytest.approx(machine.pseudo_log_likelihood(patterns).mean())


def test_monitor_estimates_the_pseudo_likelihood_of_large_data():
    machine = random_machine(5, 4)
    data = np.random.default_rng(0).integers(0, 2, (3000, 5)).astype(float)
    monitor = Monitor(ContrastiveDivergence(machine), data, binary=True)
    draws = [monitor(np.random.default_rng(seed))["pseudo_likelihood"] for seed in range(30)]
    exact = machine.pseudo_log_likelihood(data).mean()
    assert len(set(draws)) == 30 and abs(np.mean(draws) - exact) < 5 * np.std(draws) / np.sqrt(30)


def test_monitor_where_little_is_known():
    def row(machine, binary=True, chains=0):
        data = np.zeros((3, machine.visible))
        return Monitor(ContrastiveDivergence(machine, chains=chains), data, binary)(np.random.default_rng(0))

    large = row(random_machine(20, 18))
    assert large["distance"] == 1.0 and large["vacuous"] is True
    assert math.isnan(large["log_likelihood"]) and math.isnan(large["exact_bias"])
    grey = row(random_machine(5, 4), binary=False)
    assert grey["distance"] == 1.0 and math.isnan(grey["log_likelihood"])
    persistent = row(random_machine(5, 4), chains=3)
    assert persistent["distance"] == 1.0 and math.isnan(persistent["exact_bias"])
    assert math.isfinite(persistent["log_likelihood"])
    wide = row(random_machine(30, 6))
    assert 0 < wide["distance"] < 1 and math.isfinite(wide["log_likelihood"]) and math.isnan(wide["exact_bias"])
