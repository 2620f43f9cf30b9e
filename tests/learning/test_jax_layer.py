"""Circuits as functions of JAX, where it is installed."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from energy_blocks import random_case

from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.errors import UsageError
from circuitsim.learning import GradientProblem, ImplicitDifferentiation, SquaredError

jax = pytest.importorskip("jax", reason="JAX is not installed")
import jax.numpy as jnp  # noqa: E402

from circuitsim.jax import Layer, circuit_layer, energy_layer  # noqa: E402

CASE = random_case(3)


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.fixture
def layer() -> Layer:
    return energy_layer(CircuitBlock(CASE.circuit, CASE.roles))


def squares(layer: Layer, parameters: dict, x: object) -> object:
    return (layer.apply(parameters, x) ** 2).sum()


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_are_those_of_implicit_differentiation(layer: Layer, compiled: bool) -> None:
    def loss(parameters: dict, x: object) -> object:
        return 0.5 * ((layer.apply(parameters, x) - CASE.y) ** 2).sum(axis=1).mean()

    gradient = jax.grad(loss)
    found = (jax.jit(gradient) if compiled else gradient)(layer.parameters, jnp.asarray(CASE.x))
    free = layer.block.relax(CASE.x)
    weight = np.full(len(CASE.x), 1 / len(CASE.x))
    problem = GradientProblem(layer.block, CASE.x, CASE.y, SquaredError(), free, weight)
    expected = ImplicitDifferentiation().estimate(problem).parameters
    assert set(found) == set(expected) == {"conductance", "current"}
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-15)


def test_vmap_over_inputs_and_over_parameters(layer: Layer) -> None:
    x = jnp.asarray(CASE.x)
    batch = layer.apply(layer.parameters, x)
    rows = jax.vmap(lambda row: layer.apply(layer.parameters, row))(x)
    np.testing.assert_array_equal(rows, batch)
    whole = jax.grad(squares, argnums=(1, 2))(layer, layer.parameters, x)
    single = jax.vmap(jax.grad(squares, argnums=(1, 2)), in_axes=(None, None, 0))
    by_row = jax.vmap(lambda row: jax.grad(squares, argnums=(1, 2))(layer, layer.parameters, row))(x)
    assert single is not None
    np.testing.assert_array_equal(by_row[1], whole[1])
    for name, value in whole[0].items():
        np.testing.assert_allclose(by_row[0][name].sum(axis=0), value, rtol=1e-12)
    two = jax.tree.map(lambda own: jnp.stack([own, 1.25 * own]), layer.parameters)
    both = jax.vmap(layer.apply, in_axes=(0, None))(two, x)
    assert both.shape == (2, *batch.shape)
    np.testing.assert_array_equal(both[0], batch)
    scaled = {name: 1.25 * own for name, own in layer.parameters.items()}
    np.testing.assert_array_equal(both[1], layer.apply(scaled, x))
    each = jax.vmap(lambda own, row: layer.apply(own, row))(two, x[:2])
    np.testing.assert_array_equal(each[0], batch[0])
    gradients = jax.vmap(lambda own: jax.grad(squares, argnums=1)(layer, own, x))(two)
    np.testing.assert_array_equal(gradients["conductance"][0], whole[0]["conductance"])


@pytest.mark.parametrize("again", [copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_copies_and_pickles(layer: Layer, again: Callable[[Layer], Layer]) -> None:
    x = jnp.asarray(np.random.default_rng(0).normal(size=(3, layer.block.n_inputs)))
    moved = layer._replace(parameters=jax.tree.map(lambda own: 1.1 * own, layer.parameters))
    found = again(moved)
    assert found.block is not layer.block
    assert (found.apply(found.parameters, x) == layer.apply(moved.parameters, x)).all()


def test_single_precision(layer: Layer) -> None:
    x = jnp.asarray(CASE.x, dtype=jnp.float32)
    found = layer.apply(layer.parameters, x)
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, layer.block.relax(CASE.x).output, rtol=1e-5, atol=1e-6)


def test_decks_and_errors() -> None:
    layer = circuit_layer("netlists/learn-divider.cir")
    assert layer.apply(layer.parameters, jnp.ones((2, 5, 1))).shape == (2, 5, 1)
    with pytest.raises(UsageError, match="1 along the last axis"):
        layer.apply(layer.parameters, jnp.ones((2, 5)))
    with pytest.raises(UsageError, match="floating-point"):
        layer.apply(layer.parameters, jnp.ones((2, 1), dtype=int))
    assert layer.apply(layer.parameters, [[1.0]]).shape == (1, 1)
    own = layer.parameters["conductance"]
    for wrong in ({}, {"conductance": own[:3]}, {"conductance": own, "resistance": own}):
        with pytest.raises(UsageError, match=r"the parameters must be conductance \(5,\), not "):
            layer.apply(wrong, jnp.ones((2, 1)))
        with pytest.raises(UsageError, match=r"the parameters must be conductance \(5,\), not "):
            jax.jit(jax.grad(lambda own: layer.apply(own, jnp.ones((2, 1))).sum()))(wrong)
