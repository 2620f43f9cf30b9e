"""The bounds: what they are made of, and that no machine breaks them."""

from itertools import product

import numpy as np
import pytest
from machines import random_machine

from circuitsim.boltzmann import (
    RestrictedBoltzmannMachine,
    bias,
    bias_bound,
    data_distance,
    max_energy_change,
    mixing_factor,
    model_distribution,
    older_bound,
    pattern_distance,
    total_variation,
)
from circuitsim.boltzmann.bounds import distinct
from circuitsim.boltzmann.enumeration import states
from circuitsim.boltzmann.exact import largest
from circuitsim.errors import UsageError

SCALES, BIASES = [0.0, 1e-3, 0.02, 0.1, 0.3, 1.0, 3.0, 10.0], [0.0, 0.1, 1.0, 5.0]
STARTS = {
    "single": lambda size, rng: np.eye(size)[rng.integers(size)],
    "few": lambda size, rng: np.bincount(rng.integers(size, size=3), minlength=size) / 3,
    "dense": lambda size, rng: np.full(size, 1 / size),
    "random": lambda size, rng: rng.dirichlet(np.full(size, 0.3)),
}


def test_no_machine_breaks_either_bound():
    for seed in range(4000):
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

    def sigma(x):
        return 1 / (1 + np.exp(-x))

    alpha = (np.abs(machine.weights).sum(axis=0) + np.abs(machine.visible_bias)).max()
    beta = (np.abs(machine.weights).sum(axis=1) + np.abs(machine.hidden_bias)).max()
    value = 8 * (1 - 8 * 4 * sigma(-alpha) ** 3 * sigma(-beta) ** 2) ** 5
    assert older_bound(machine, 5) == pytest.approx(value, rel=1e-12)
    # It grows to 2^m where the newer one stays below one.
    large = random_machine(3, 2, scale=20)
    assert older_bound(large, 1) == pytest.approx(8.0) and bias_bound(large, 1) <= 1.0
    assert older_bound(random_machine(2000, 2), 1) == np.inf


def test_single_pattern_bound_is_the_batch_bound_of_one_pattern():
    machine = random_machine(4, 3)
    pattern = states(4)[9]
    assert pattern_distance(machine, pattern) == data_distance(machine, pattern[None], np.ones(1))
    rows, shares = distinct(np.array([[1, 0], [0, 0], [1, 0]]))
    assert rows.tolist() == [[0, 0], [1, 0]] and shares == pytest.approx([1 / 3, 2 / 3])


def test_refusals():
    with pytest.raises(UsageError) as caught:
        mixing_factor(1.0, 12, -1)
    assert str(caught.value) == "no bound for -1 steps of 12 units with Δ = 1.0"
