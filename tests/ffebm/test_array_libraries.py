"""Blocks and stages in another array library: torch tensors on the processor, where torch is installed."""

from __future__ import annotations

import numpy as np
import pytest

from circuitsim.ffebm import (
    Activation,
    BatchNorm,
    Chain,
    Chaining,
    Conv2d,
    ConvolutionalHopfieldBlock,
    DeepHopfieldBlock,
    Flatten,
    Linear,
    MaxPool,
    Normalise,
    Readout,
    ResistiveBlock,
    SoftPool,
    Sweeps,
)

torch = pytest.importorskip("torch", reason="torch is not installed")


def make(**options: object) -> Chain:
    sweeps = Sweeps(40, 12)
    return Chain(
        [
            Normalise(255.0, (0.4, 0.5), (0.3, 0.2), (8, 8, 2)),
            Conv2d(2, 3, bias=True),
            MaxPool(),
            BatchNorm(3),
            ConvolutionalHopfieldBlock((4, 4, 3), [4], [True], clamped=False, sweeps=sweeps, variance=0.02),
            Conv2d(4, 4),
            SoftPool(),
            Activation("tanh"),
            Flatten(),
            Linear(4, 6),
            DeepHopfieldBlock([6, 5], bias=0.5, sweeps=sweeps),
            Linear(5, 3),
            Activation("ernoult"),
            ResistiveBlock([6, 4], inputs=3, sweeps=sweeps),
            Readout(4, 3),
        ],
        dtype=np.float64,
        seed=2,
        **options,
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "rule", [Chaining(), Chaining(form="implicit"), Chaining(last="elastic"), Chaining("bp"), Chaining("implicit")]
)
@pytest.mark.parametrize("loss", ["cross-entropy", "mse"])
def test_torch_tensors_give_the_same_gradients(rule: Chaining, loss: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(256, size=(6, 128), dtype=np.uint8), rng.integers(3, size=6)
    ours, theirs = make(rule=rule, loss=loss), make(rule=rule, loss=loss).convert(torch.asarray)
    expected, numbers = ours.gradient((x, y), rng)
    found, others = theirs.gradient((torch.asarray(x), torch.asarray(y)), rng)
    assert expected is not None
    assert found is not None
    for name, array in expected.items():
        assert isinstance(found[name], torch.Tensor), name
        np.testing.assert_allclose(found[name].numpy(), array, atol=1e-11, err_msg=name)
    assert others["loss"] == pytest.approx(numbers["loss"], rel=1e-12)
    np.testing.assert_allclose(theirs.output(torch.asarray(x)).numpy(), ours.output(x), atol=1e-12)
    np.testing.assert_allclose(theirs.predict(torch.asarray(x)), ours.predict(x), atol=1e-12)


def test_a_chain_of_numpy_arrays_takes_tensors() -> None:
    rng = np.random.default_rng(0)
    chain = Chain([Linear(4, 5), DeepHopfieldBlock([5]), Readout(5, 3)])
    x, y = rng.normal(size=(20, 4)).astype(np.float32), rng.integers(0, 3, 20)
    tensors = torch.asarray(x), torch.asarray(y)
    assert chain.score(*tensors) == chain.score(x, y)
    np.testing.assert_array_equal(chain.predict(tensors[0]), chain.predict(x))
    found, others = chain.gradient(tensors, rng)[0], chain.gradient((x, y), rng)[0]
    assert found is not None
    assert others is not None
    for name, array in others.items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("sweeps", [1, 3, 12])
def test_convolutional_sweeps_are_those_of_torch(sweeps: int) -> None:
    """The same alternation written with torch's convolutions, pooling and unpooling."""
    functional = torch.nn.functional
    block = ConvolutionalHopfieldBlock(
        (8, 8, 6), [8, 5], [True, False], [7], sweeps=Sweeps(sweeps, sweeps), variance=2e-2, dtype=np.float64
    )
    x = np.random.default_rng(2).normal(size=(3, block.n_inputs))
    kernels = [torch.from_numpy(block.parameters[f"weights{k}"].transpose(3, 2, 0, 1).copy()) for k in (1, 2)]
    # Rows of the dense weights are in the order rows, columns, channels; torch has channels first.
    dense = torch.from_numpy(block.parameters["weights3"].reshape(4, 4, 5, 7).transpose(2, 0, 1, 3).reshape(80, 7))
    first = torch.from_numpy(x.reshape(3, 8, 8, 6).transpose(0, 3, 1, 2).copy())
    a, b, c, d = (torch.zeros(3, *s, dtype=torch.float64) for s in ((6, 8, 8), (8, 4, 4), (5, 4, 4), (7,)))
    places = None
    for _ in range(sweeps):
        back = (
            0
            if places is None
            else functional.conv_transpose2d(functional.max_unpool2d(b, places, 2), kernels[0], padding=1)
        )
        a = (first + back).clamp(0, 1)
        c = (functional.conv2d(b, kernels[1], padding=1) + (d @ dense.T).reshape(3, 5, 4, 4)).clamp(0, 1)
        pooled, places = functional.max_pool2d(functional.conv2d(a, kernels[0], padding=1), 2, return_indices=True)
        b = (pooled + functional.conv_transpose2d(c, kernels[1], padding=1)).clamp(0, 1)
        d = (c.reshape(3, -1) @ dense).clamp(0, 1)
    np.testing.assert_allclose(block.relax(x).output, d.numpy(), atol=1e-14)
