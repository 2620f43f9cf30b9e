"""Circuits as modules of PyTorch and functions of JAX, where these are installed, beside their own derivatives."""

import copy
import io
import pickle
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from energy_blocks import random_case

import circuitsim
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.layered.network import DeepResistiveNetwork

CASE = random_case(3)
BLOCK, X = CASE.block(), CASE.x


class Library(NamedTuple):
    """A layer of the block, its transforms of functions, and what is written otherwise in each library."""

    transforms: Any
    layer: Any
    parameters: dict[str, Any]
    apply: Callable[[Any, Any, Any], Any]
    array: Callable[..., Any]
    stack: Callable[..., Any]
    compiled: Callable[..., Any]
    scaled: Callable[[Any, float], Any]


@pytest.fixture(params=["torch", "jax"])
def library(request: pytest.FixtureRequest) -> Iterator[Library]:
    imported = pytest.importorskip(request.param)
    if request.param == "jax":
        from circuitsim.jax import energy_layer

        def replaced(layer: Any, factor: float) -> Any:
            return layer._replace(parameters={name: factor * own for name, own in layer.parameters.items()})

        def applied(layer: Any, own: Any, x: Any) -> Any:
            return layer.apply(layer.parameters if own is None else own, x)

        with imported.enable_x64(True):
            layer, numbers = energy_layer(BLOCK), imported.numpy
            yield Library(
                imported, layer, layer.parameters, applied, numbers.asarray, numbers.stack, imported.jit, replaced
            )
        return
    from circuitsim.torch import EnergyLayer

    def multiplied(layer: Any, factor: float) -> Any:
        made = copy.deepcopy(layer)
        for own in made.parameters():
            own.data.mul_(factor)
        return made

    def called(layer: Any, own: Any, x: Any) -> Any:
        return layer(x).detach() if own is None else imported.func.functional_call(layer, own, (x,))

    layer = EnergyLayer(BLOCK, dtype=imported.float64)
    own = {name: array.detach() for name, array in layer.named_parameters()}
    compiled = lambda function: imported.compile(function, backend="eager")  # noqa: E731
    yield Library(imported.func, layer, own, called, imported.as_tensor, imported.stack, compiled, multiplied)


def test_derivatives_and_their_transforms_are_those_of_the_block(library: Library) -> None:
    """Gradients at once, sample by sample and compiled; Jacobians; several sets of parameters."""
    transforms, own, x = library.transforms, library.parameters, library.array(X)
    free = BLOCK.relax(X)

    def output(own: Any, x: Any) -> Any:
        return library.apply(library.layer, own, x)

    def squares(own: Any, x: Any) -> Any:
        return (output(own, x) ** 2).sum()

    gradient = transforms.grad(squares, (0, 1))
    rows = transforms.vmap(gradient, (None, 0))(own, x)
    by_row = [BLOCK.implicit(free, X, 2.0 * free.output, unit) for unit in np.eye(len(X))]
    for found in (gradient(own, x), library.compiled(gradient)(own, x), rows):
        assert set(found[0]) == {"conductance", "current"}
        np.testing.assert_allclose(found[1], by_row[0][1], rtol=1e-12, atol=1e-15)
    for name, each in rows[0].items():
        expected = [parameters[name] for parameters, _ in by_row]
        np.testing.assert_allclose(each, expected, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(gradient(own, x)[0][name], np.sum(expected, axis=0), rtol=1e-12, atol=1e-14)
    jacobian = np.asarray(transforms.vmap(transforms.jacrev(output, 1), (None, 0))(own, x))
    np.testing.assert_allclose((2.0 * free.output[:, :, None] * jacobian).sum(axis=1), rows[1], rtol=1e-12, atol=1e-14)
    both = {name: library.stack([array, 1.25 * array]) for name, array in own.items()}
    several, steep = (transforms.vmap(f, (0, None))(both, x) for f in (output, transforms.grad(squares)))
    each = transforms.vmap(output, (0, 0))(both, x[:2])
    for k, scale in enumerate((1.0, 1.25)):
        block = BLOCK.at({name: scale * array for name, array in BLOCK.parameters.items()})
        state = block.relax(X)
        np.testing.assert_allclose(several[k], state.output, rtol=1e-12)
        np.testing.assert_allclose(each[k], state.output[k], rtol=1e-12)
        exact = block.implicit(state, X, 2.0 * state.output, np.ones(len(X)))[0]
        np.testing.assert_allclose(steep["conductance"][k], exact["conductance"], rtol=1e-12)


def test_shapes_precision_copies_and_pickles(library: Library) -> None:
    layer, whole = library.layer, library.apply(library.layer, None, library.array(X))
    for rows, shape in ((6, (2, 3, 1, 3)), (2, (2, 3)), (0, (0, 3))):
        found = library.apply(layer, None, library.array(X[:rows].reshape(shape)))
        assert found.shape == (*shape[:-1], 2)
        np.testing.assert_allclose(found.reshape(-1, 2), whole[:rows])
    assert library.apply(layer, None, library.array(X[0])).shape == (2,)
    single = library.apply(layer, None, library.array(X.astype(np.float32)))
    assert str(single.dtype).endswith("float32")
    np.testing.assert_allclose(single, whole, rtol=1e-5, atol=1e-6)
    moved = library.scaled(layer, 1.1)
    for again in (copy.deepcopy(moved), pickle.loads(pickle.dumps(moved))):
        assert again.block is not layer.block
        x = library.array(X)
        np.testing.assert_array_equal(library.apply(again, None, x), library.apply(moved, None, x))
        assert not np.allclose(library.apply(library.scaled(again, 1.1), None, x), library.apply(moved, None, x))


def test_arguments_of_jax() -> None:
    jax = pytest.importorskip("jax")
    from circuitsim.jax import circuit_layer

    layer, ones = circuit_layer("netlists/learn-divider.cir"), jax.numpy.ones
    assert layer.apply(layer.parameters, [[1.0]]).shape == (1, 1)
    for x, message in ((ones((2, 5)), "1 along the last axis"), (ones((2, 1), dtype=int), "floating-point")):
        with pytest.raises(UsageError, match=message):
            layer.apply(layer.parameters, x)
    own = layer.parameters["conductance"]
    for wrong in ({}, {"conductance": own[:3]}, {"conductance": own, "resistance": own}):
        with pytest.raises(UsageError, match=r"the parameters must be conductance \(5,\), not "):
            jax.jit(jax.grad(lambda own: layer.apply(own, ones((2, 1))).sum()))(wrong)


def test_modules_of_torch() -> None:
    """State dictionaries, passes of their own, one derivative, parameters within bounds, kinks, wrong arguments."""
    torch = pytest.importorskip("torch")
    from circuitsim.torch import CircuitLayer, EnergyLayer, steady_state

    x, file = torch.tensor(X, requires_grad=True), io.BytesIO()
    assert EnergyLayer(BLOCK).conductance.dtype == torch.get_default_dtype()
    layer, fresh = (EnergyLayer(BLOCK, dtype=torch.float64) for _ in range(2))
    layer.conductance.data.mul_(1.1)
    torch.save(layer.state_dict(), file)
    file.seek(0)
    fresh.load_state_dict(torch.load(file, weights_only=True))
    torch.testing.assert_close(fresh(x), layer(x), rtol=0, atol=0)
    own = torch.tensor(BLOCK.parameters["conductance"], requires_grad=True)

    def gradient(*scales: float) -> Any:
        total = sum((steady_state(BLOCK, x, conductance=scale * own) ** 2).sum() for scale in scales)
        return torch.autograd.grad(total, own)[0]

    torch.testing.assert_close(gradient(1.0, 1.5), gradient(1.0) + gradient(1.5), rtol=1e-13, atol=0)
    # Values that autograd does not see change leave the pass as it was.
    outputs = layer(x), fresh(x)
    fresh.conductance.data.mul_(2.0)
    for output in outputs:
        output.sum().backward()
    torch.testing.assert_close(fresh.conductance.grad, layer.conductance.grad, rtol=0, atol=0)
    first = torch.autograd.grad((layer(x) ** 2).sum(), x, create_graph=True)[0]
    with pytest.raises(UsageError, match="can be differentiated once"):
        first.sum().backward()

    divider = circuitsim.loads("divider\nV1 in 0 1\nR1 in out 1\nR2 out 0 1\n.end")
    bounded = CircuitLayer(divider, "V1", "v(out)", "R* min=0.5 max=2")
    bounded.conductance.data.copy_(torch.tensor([9.0, -1.0]))
    before = bounded(torch.ones(1, 1))
    assert bounded.project_().conductance.tolist() == [2.0, 0.5] and "inputs=1, outputs=1" in repr(bounded)
    assert [bounded.trained()[name].value for name in ("R1", "R2")] == [0.5, 2.0]
    torch.testing.assert_close(bounded(torch.ones(1, 1)), before)

    network = DeepResistiveNetwork((4, 6, 3), rng=1, sweeps=5000, tolerance=1e-12)
    assert {name for name, _ in EnergyLayer(network).named_parameters()} == set(network.parameters)
    clamp = circuitsim.loads("clamp\nV1 in 0 0\nR1 in out 1\nVref ref 0 1\nD1 out ref ideal\n.model ideal D\n.end")
    at_kink = CircuitLayer(clamp, "V1", "v(out)", "R1")
    assert at_kink.kinks(torch.tensor([[1.0], [0.5], [2.0]])).tolist() == [1, 0, 0]

    clash = circuitsim.loads("clash\nV1 a 0 0\nV2 b 0 1\nD1 a b ideal\n.model ideal D\nR1 a c 1\nR2 c 0 1\n.end")
    for call, given, error, message in (
        (layer, torch.zeros(2, 4), UsageError, "the last axis must have 3 inputs"),
        (layer, torch.zeros(2, 3, dtype=torch.int64), UsageError, r"floating point.*x.float\(\)"),
        (layer, np.zeros((2, 3)), UsageError, r"must be a tensor, not ndarray.*torch.as_tensor\(x\)"),
        (EnergyLayer(BLOCK, device="meta"), torch.zeros(2, 3, device="meta"), UsageError, "device meta hold no values"),
        (lambda x: steady_state(BLOCK, x, resistance=x), torch.zeros(2, 3), UsageError, "no parameter 'resistance'"),
        (CircuitLayer(clash, "V1", "v(c)", "R*"), torch.tensor([[0.0], [2.0]]), ConvergenceError, "1 of 2 samples"),
    ):
        with pytest.raises(error, match=message):
            call(given)
