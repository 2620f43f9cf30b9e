"""`CircuitBlock`: envelope theorem, implicit derivatives against finite differences, clamping, bounds, reuse."""

from __future__ import annotations

import numpy as np
import pytest
from random_circuits import random_case
from slow_batch import slow_batched

from circuitsim.blocks import EnergyBlock, Nudge
from circuitsim.blocks.circuit import CircuitBlock, branch_products, combined
from circuitsim.circuit.elements import DIODE
from circuitsim.errors import UnboundedError, UsageError
from circuitsim.netlist.roles import Roles, make_roles

SEEDS = range(4)


def make(seed: int, **options) -> tuple:
    case = random_case(seed, **options)
    return case, CircuitBlock(case.circuit, case.roles, 1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_batch_solver_and_the_slow_one_agree(seed: int) -> None:
    """Free, nudged either way and clamped states, responses and the limit of stiffness, after values have changed."""
    case, fast = make(seed)
    slow = CircuitBlock(case.circuit, case.roles, 1e-10, slow_batched)
    rng = np.random.default_rng(seed)
    for name, theta in fast.parameters.items():
        slow.parameters[name][:] = theta[:] = theta * rng.uniform(0.5, 2.0, theta.size)
    limit = fast.stiffness_limit()
    assert limit == pytest.approx(slow.stiffness_limit(), rel=1e-9)
    pull = rng.normal(size=(6, 2))
    for nudge in (None, Nudge(pull), Nudge(pull, 0.7), Nudge(0.1 * pull, -0.5 * limit)):
        a, b = (block.relax(case.x, nudge) for block in (fast, slow))
        np.testing.assert_allclose(a.voltages, b.voltages, atol=1e-9)
        # Loops of conducting diodes leave their own currents open.
        unique = case.circuit.arrays().kind != DIODE
        np.testing.assert_allclose(a.current[:, unique], b.current[:, unique], atol=1e-9)
        np.testing.assert_allclose(a.output, b.output, atol=1e-9)
        warm = fast.relax(case.x, nudge, fast.relax(case.x))
        np.testing.assert_allclose(a.voltages, warm.voltages, atol=1e-12)
    free = fast.relax(case.x)
    wanted = free.output + 0.1 * rng.normal(size=(6, 2))
    np.testing.assert_allclose(fast.clamp(case.x, wanted).voltages, slow.clamp(case.x, wanted).voltages, atol=1e-9)
    weight = np.full(6, 1 / 6)
    found = [block.implicit(block.relax(case.x), case.x, pull, weight) for block in (fast, slow)]
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-9)
    for name in fast.parameters:
        np.testing.assert_allclose(found[0][0][name], found[1][0][name], atol=1e-9)


def test_a_sample_without_a_steady_state_is_not_ok() -> None:
    from circuitsim import Circuit

    circuit = Circuit("a current into a reverse diode")
    circuit.current_source("I1", "0", "a", 1.0)
    circuit.diode("D1", "a", "0")
    circuit.resistor("R1", "a", "b", 1.0)
    block = CircuitBlock(circuit, make_roles(circuit, "I1", "a", "R1"))
    assert block.relax(np.array([[1.0], [-1.0], [2.0]])).certified.tolist() == [True, False, True]


def test_a_stiffness_that_is_too_negative_is_refused_by_name() -> None:
    case, block = make(0)
    limit = block.stiffness_limit()
    assert block.relax(case.x, Nudge(np.zeros((6, 2)), -0.99 * limit)).certified.all()
    with pytest.raises(UnboundedError, match="leaves no convex energy"):
        block.relax(case.x, Nudge(np.zeros((6, 2)), -1.01 * limit))


def central(function, point: np.ndarray, step: float) -> np.ndarray:
    """Derivative of a vector-valued function of a vector by central differences: (…, point)."""
    columns = []
    for k in range(point.size):
        ends = []
        for sign in (1.0, -1.0):
            moved = point.copy()
            moved[k] += sign * step * max(1.0, abs(point[k]))
            ends.append(function(moved))
        columns.append((ends[0] - ends[1]) / (2 * step * max(1.0, abs(point[k]))))
    return np.stack(columns, axis=-1)


def test_it_is_an_energy_block() -> None:
    case, block = make(0)
    assert isinstance(block, EnergyBlock)
    assert (block.n_inputs, block.n_outputs) == (3, 2)
    assert list(block.parameters) == ["conductance", "current"]
    state = block.relax(case.x)
    assert state.certified.all() and state.residual.max() < 1e-10 and state.output.shape == (6, 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_free_states_are_the_operating_points_and_have_conducting_free_diodes(seed: int) -> None:
    import circuitsim

    case, block = make(seed)
    state = block.relax(case.x)
    assert state.closed.any()
    op = circuitsim.solve(case.circuit.with_values(dict(zip(case.roles.inputs, case.x[2].tolist()))))
    np.testing.assert_allclose(state.voltages[2], op.voltages, atol=1e-12)
    assert block.energy(state, case.x)[2] == pytest.approx(op.energy, rel=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_least_energy_has_the_explicit_derivatives(seed: int) -> None:
    """Envelope theorem: d(min F)/dθ = ∂E/∂θ and d(min F)/dx = ∂E/∂x, with a nudge in place."""
    case, block = make(seed, batch=1)
    nudge = Nudge(np.array([[0.1, -0.2]]), 0.3)
    state = block.relax(case.x, nudge)
    nothing = combined([state], [0.0])
    for name, theta in block.parameters.items():

        def least(point: np.ndarray, name: str = name) -> np.ndarray:
            moved = block.at(block.parameters | {name: point})
            there = moved.relax(case.x, nudge)
            tilt = (nudge.linear * there.output).sum(1) + 0.15 * (there.output**2).sum(1)
            return moved.energy(there, case.x) + tilt

        found = block.parameter_difference(state, nothing, case.x, np.ones(1))[name]
        np.testing.assert_allclose(found, central(least, theta, 1e-5)[0], rtol=1e-6, atol=1e-8)

    def least_at(x: np.ndarray) -> np.ndarray:
        there = block.relax(x[None], nudge)
        return block.energy(there, x[None]) + (nudge.linear * there.output).sum(1) + 0.15 * (there.output**2).sum(1)

    found = block.input_difference(state, nothing, case.x)[0]
    np.testing.assert_allclose(found, central(least_at, case.x[0], 1e-5)[0], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
def test_implicit_derivatives(seed: int) -> None:
    case, block = make(seed, batch=3)
    cotangent = np.random.default_rng(seed).normal(size=(3, 2))
    weight = np.array([0.2, 0.5, 0.0])
    parameters, inputs = block.implicit(block.relax(case.x), case.x, cotangent, weight)
    for name, theta in block.parameters.items():

        def loss(point: np.ndarray, name: str = name) -> np.ndarray:
            out = block.at(block.parameters | {name: point}).relax(case.x).output
            return weight @ (cotangent * out).sum(axis=1)

        np.testing.assert_allclose(parameters[name], central(loss, theta, 1e-6), rtol=1e-5, atol=1e-8)

    for b in range(3):

        def loss_at(x: np.ndarray, b: int = b) -> np.ndarray:
            return cotangent[b] @ block.relax(x[None]).output[0]

        np.testing.assert_allclose(inputs[b], central(loss_at, case.x[b], 1e-6), rtol=1e-5, atol=1e-8)


def test_clamping_holds_the_outputs_and_nothing_else_changes() -> None:
    case, block = make(1)
    free = block.relax(case.x)
    clamped = block.clamp(case.x, free.output, free)
    np.testing.assert_allclose(clamped.voltages, free.voltages, atol=1e-11)
    assert clamped.current.shape == free.current.shape
    wanted = free.output + 0.1
    np.testing.assert_allclose(block.clamp(case.x, wanted, free).output, wanted, atol=1e-11)
    again = block.at({name: 1.5 * p for name, p in block.parameters.items()})
    moved = again.relax(case.x)
    np.testing.assert_allclose(again.clamp(case.x, moved.output).voltages, moved.voltages, atol=1e-11)


def test_the_solver_is_made_once_for_each_set_of_parameters() -> None:
    case, block = make(0, batch=1)
    block.relax(case.x)
    first = block._current()
    block.relax(case.x, Nudge(np.zeros((1, 2))))
    assert block._current() is first
    block.parameters["conductance"][0] *= 2
    assert block._current() is not first


def test_projection_and_bounds() -> None:
    case, block = make(0)
    assert block.at_bound() == 0
    block.parameters["conductance"][:2] = [-3.0, 1e9]
    block.parameters["current"][:] = 100.0
    block.project()
    low, high = block.bounds["conductance"]
    assert block.parameters["conductance"][0] == low[0] == 1e-3
    assert block.parameters["conductance"][1] == high[1] == 1e3
    assert block.parameters["current"].tolist() == [9.0]
    assert block.at_bound() == 3
    trained = block.trained()
    # Bounds are kept in ohm, where 1/(1/R) is not always R: the trained circuit is within them to the last bit.
    assert all(a.minimum <= trained[a.name].value <= a.maximum for a in case.roles.trainable)
    assert trained["Rfloat"].value == 1e3
    assert case.circuit["Ib"].value == 0.05


def test_roles_must_be_complete() -> None:
    case = random_case(0)
    for given in (Roles(), make_roles(case.circuit, inputs="V1", outputs="n0")):
        with pytest.raises(UsageError, match="the circuit has no"):
            CircuitBlock(case.circuit, given)


def test_a_nudge_that_follows_is_refused() -> None:
    case, block = make(0, batch=1)
    with pytest.raises(UsageError, match="FollowingCurrent"):
        block.relax(case.x, Nudge(np.zeros((1, 2)), follow=lambda output: output))


def test_the_kernel_equals_its_twin() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 7, 20), rng.integers(0, 7, 20)
    left, right, weight = rng.normal(size=(4, 7)), rng.normal(size=(4, 7)), np.array([0.1, 0.0, -2.0, 1.0])
    np.testing.assert_allclose(
        branch_products(first, second, left, right, weight),
        weight @ ((left[:, first] - left[:, second]) * (right[:, first] - right[:, second])),
        rtol=1e-12,
        atol=1e-14,
    )
