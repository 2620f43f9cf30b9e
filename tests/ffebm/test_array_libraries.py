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
