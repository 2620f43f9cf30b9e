"""Circuits as modules of PyTorch, where it is installed."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
from energy_blocks import random_case

import circuitsim
from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.layered.network import DeepResistiveNetwork

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from circuitsim.torch import CircuitLayer, EnergyLayer, steady_state  # noqa: E402

F64 = torch.float64


@pytest.fixture(scope="module")
def block() -> CircuitBlock:
    case = random_case(3)
    return CircuitBlock(case.circuit, case.roles)


def test_gradcheck(block: CircuitBlock) -> None:
    x = torch.tensor(random_case(3).x, requires_grad=True)
    own = [torch.tensor(p, requires_grad=True) for p in block.parameters.values()]
    assert list(block.parameters) == ["conductance", "current"]
    assert torch.autograd.gradcheck(
        lambda x, g, i: steady_state(block, x, conductance=g, current=i), (x, *own), atol=1e-8, rtol=1e-6
    )


def test_precision_shape_and_copies(block: CircuitBlock) -> None:
    x = torch.tensor(random_case(3).x)
    layer = EnergyLayer(block)
    assert layer.conductance.dtype == torch.get_default_dtype() == torch.float32
    single = layer(x.float())
    assert single.dtype == torch.float32
    double = layer.double()
    assert double(x).dtype == F64
    np.testing.assert_allclose(single.detach().numpy(), double(x).detach().numpy(), rtol=1e-6, atol=1e-6)
    stacked = double(x.reshape(2, 3, 1, 3))
    assert stacked.shape == (2, 3, 1, 2)
    torch.testing.assert_close(stacked.reshape(6, 2), double(x), rtol=0, atol=0)
    assert double(x[0]).shape == (2,)
    assert double(x[:0]).shape == (0, 2)
    for other in (copy.deepcopy(double), pickle.loads(pickle.dumps(double))):
        torch.testing.assert_close(other(x), double(x), rtol=0, atol=0)
        with torch.no_grad():
            other.conductance.mul_(1.1)
        assert not torch.equal(other(x), double(x))
    file = io.BytesIO()
    torch.save(double.state_dict(), file)
    fresh = EnergyLayer(block, dtype=F64)
    with torch.no_grad():
        fresh.conductance.mul_(1.1)
    file.seek(0)
    fresh.load_state_dict(torch.load(file, weights_only=True))
    torch.testing.assert_close(fresh(x), double(x), rtol=0, atol=0)


def test_each_backward_pass_is_that_of_its_own_forward_pass(block: CircuitBlock) -> None:
    x = torch.tensor(random_case(3).x)
    own = torch.tensor(block.parameters["conductance"], requires_grad=True)

    def gradient(*scales: float) -> torch.Tensor:
        total = sum((steady_state(block, x, conductance=scale * own) ** 2).sum() for scale in scales)
        return torch.autograd.grad(total, own)[0]

    torch.testing.assert_close(gradient(1.0, 1.5), gradient(1.0) + gradient(1.5), rtol=1e-13, atol=0)
    # Values that autograd does not see change leave the pass as it was.
    layer, changed = EnergyLayer(block, dtype=F64), EnergyLayer(block, dtype=F64)
    layer(x).sum().backward()
    output = changed(x)
    changed.conductance.data.mul_(2.0)
    output.sum().backward()
    torch.testing.assert_close(changed.conductance.grad, layer.conductance.grad, rtol=0, atol=0)


def test_compiled_graphs_break_at_the_circuit(block: CircuitBlock) -> None:
    x = torch.tensor(random_case(3).x)
    layer = torch.nn.Sequential(EnergyLayer(block, dtype=F64), torch.nn.Tanh())
    torch.testing.assert_close(torch.compile(layer, backend="eager")(x), layer(x), rtol=0, atol=0)


def test_twice_differentiable_it_is_not(block: CircuitBlock) -> None:
    x = torch.tensor(random_case(3).x, requires_grad=True)
    first = torch.autograd.grad((EnergyLayer(block, dtype=F64)(x) ** 2).sum(), x, create_graph=True)[0]
    with pytest.raises(UsageError, match="can be differentiated once"):
        first.sum().backward()


def test_transforms_of_functions(block: CircuitBlock) -> None:
    """`torch.func`: gradients of samples one by one, Jacobians, several parameters, and transforms of these."""
    layer, x = EnergyLayer(block, dtype=F64), torch.tensor(random_case(3).x)
    own = {name: p.detach() for name, p in layer.named_parameters()}

    def loss(own: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return (torch.func.functional_call(layer, own, (x,)) ** 2).sum()

    each = torch.func.vmap(torch.func.grad(loss, argnums=(0, 1)), (None, 0))(own, x)
    for k, row in enumerate(x):
        row = row.clone().requires_grad_()
        alone = torch.autograd.grad((layer(row) ** 2).sum(), [*layer.parameters(), row])
        for one, expected in zip([*each[0].values(), each[1]], alone, strict=True):
            torch.testing.assert_close(one[k], expected, rtol=1e-13, atol=1e-15)
    every = torch.autograd.functional.jacobian(layer, x)
    torch.testing.assert_close(torch.func.jacrev(layer)(x), every, rtol=1e-13, atol=1e-15)
    rows = torch.func.vmap(torch.func.jacrev(layer))(x)
    torch.testing.assert_close(rows, torch.stack([every[k, :, k] for k in range(len(x))]), rtol=1e-13, atol=1e-15)
    twice = {name: torch.stack([p, 1.5 * p]) for name, p in own.items()}
    several = torch.func.vmap(loss, (0, None))(twice, x)
    expected = torch.stack([loss({name: p[k] for name, p in twice.items()}, x) for k in range(2)])
    torch.testing.assert_close(several, expected, rtol=0, atol=0)
    with pytest.raises(UsageError, match="can be differentiated once"):
        torch.func.grad(lambda x: torch.func.grad(lambda x: loss(own, x))(x).sum())(x)


def test_projection_and_bounds() -> None:
    circuit = circuitsim.loads("divider\nV1 in 0 1\nR1 in out 1\nR2 out 0 1\n.end")
    layer = CircuitLayer(circuit, "V1", "v(out)", "R* min=0.5 max=2", dtype=F64)
    with torch.no_grad():
        layer.conductance.copy_(torch.tensor([9.0, -1.0]))
    before = layer(torch.ones(1, 1, dtype=F64))
    assert layer.project_().conductance.tolist() == [2.0, 0.5] and "CircuitBlock, inputs=1, outputs=1" in repr(layer)
    assert [layer.trained()[name].value for name in ("R1", "R2")] == [0.5, 2.0]
    torch.testing.assert_close(layer(torch.ones(1, 1, dtype=F64)), before, rtol=0, atol=0)


def test_networks_and_kinks() -> None:
    network = DeepResistiveNetwork((4, 6, 3), rng=1, sweeps=5000, tolerance=1e-12)
    layer = EnergyLayer(network, dtype=F64)
    x = torch.randn(5, 4, dtype=F64, generator=torch.Generator().manual_seed(1))
    np.testing.assert_array_equal(layer(x).detach().numpy(), network.relax(x.numpy()).output)
    assert sorted(name for name, _ in layer.named_parameters()) == ["bias1", "bias2", "conductances0", "conductances1"]
    clamp = circuitsim.loads("clamp\nV1 in 0 0\nR1 in out 1\nVref ref 0 1\nD1 out ref ideal\n.model ideal D\n.end")
    at_kink = CircuitLayer(clamp, "V1", "v(out)", "R1")
    assert at_kink.kinks(torch.tensor([[1.0], [0.5], [2.0]])).tolist() == [1, 0, 0]


def test_errors(block: CircuitBlock) -> None:
    layer = EnergyLayer(block, dtype=F64)
    with pytest.raises(UsageError, match="the last axis must have 3 inputs"):
        layer(torch.zeros(2, 4, dtype=F64))
    with pytest.raises(UsageError, match=r"floating point, not torch.int64: convert them with x.float\(\)"):
        layer(torch.zeros(2, 3, dtype=torch.int64))
    with pytest.raises(UsageError, match=r"must be a tensor, not ndarray: convert them with torch.as_tensor\(x\)"):
        layer(np.zeros((2, 3)))
    with pytest.raises(UsageError, match="tensors of the device meta hold no values"):
        EnergyLayer(block, device="meta")(torch.zeros(2, 3, device="meta"))
    with pytest.raises(UsageError, match="the block has no parameter 'resistance', only conductance, current"):
        steady_state(block, torch.zeros(2, 3, dtype=F64), resistance=torch.ones(1))
    clash = circuitsim.loads("clash\nV1 a 0 0\nV2 b 0 1\nD1 a b ideal\n.model ideal D\nR1 a c 1\nR2 c 0 1\n.end")
    with pytest.raises(ConvergenceError, match="1 of 2 samples have no certified steady state"):
        CircuitLayer(clash, "V1", "v(c)", "R*")(torch.tensor([[0.0], [2.0]]))
