"""Every stage's vector–Jacobian product and every loss's derivative against finite differences."""

import energy_blocks
import numpy as np
import pytest
from helpers import slopes

from circuitsim.errors import UsageError
from circuitsim.learning.estimate import LOSSES, loss_named
from circuitsim.learning.stages import (
    Activation,
    BatchNorm,
    Conv2d,
    Flatten,
    Linear,
    MaxPool,
    Normalise,
    Readout,
    SoftPool,
    Stage,
)

IMAGE = (3, 5, 6, 2)
STAGES = {
    "linear": (Linear(4, 3), (5, 4)),
    "linear on images": (Linear(60, 3, bias=False), IMAGE),
    "readout": (Readout(4, 2), (5, 4)),
    "flatten": (Flatten(), IMAGE),
    "normalise": (Normalise(255.0, (0.2, 0.3), (0.5, 0.6)), IMAGE),
    "normalise rows": (Normalise(2.0, shape=(5, 6, 2)), (3, 60)),
    **{name: (Activation(name), (5, 4)) for name in Activation.NAMES},
    "conv2d": (Conv2d(2, 3), IMAGE),
    "conv2d, stride 2, bias": (Conv2d(2, 3, stride=2, bias=True), IMAGE),
    "conv2d, orthogonal": (Conv2d(2, 3, size=2, padding=0, variance=0.3), IMAGE),
    "max-pool": (MaxPool(), IMAGE),
    "soft-pool": (SoftPool(), IMAGE),
    "batch-norm of rows": (BatchNorm(4), (5, 4)),
    "batch-norm of images": (BatchNorm(2), IMAGE),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", STAGES)
def test_pullback(name: str, training: bool) -> None:
    stage, shape = STAGES[name]
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape)
    for array in stage.parameters.values():
        array += 0.1 * rng.normal(size=array.shape)
    for array in stage.averages.values():
        array += 0.3 * rng.uniform(size=array.shape)
    y, pullback = stage.forward(x, training)
    cotangent = rng.normal(size=y.shape)

    def value() -> float:
        return float((stage.forward(x, training)[0] * cotangent).sum())

    gradients, back = pullback(cotangent)
    assert set(gradients) == set(stage.parameters)
    for key, step, slope in energy_blocks.slopes(stage, x, value):
        energy_blocks.agree(back if key == "x" else gradients[key], step, slope, key)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("targets", ["labels", "rows"])
def test_loss(name: str, targets: str) -> None:
    rng = np.random.default_rng(1)
    predictions = rng.normal(size=(4, 3))
    wanted = rng.integers(3, size=4) if targets == "labels" else rng.uniform(size=(4, 3))
    loss = loss_named(name)
    assert loss.value(predictions, wanted).shape == (4,)
    expected = slopes(lambda: float(loss.value(predictions, wanted).sum()), predictions)
    np.testing.assert_allclose(loss.gradient(predictions, wanted), expected, atol=1e-8)


def test_cross_entropy_of_large_logits_is_finite() -> None:
    loss, output, label = loss_named("cross-entropy"), np.array([[1e4, -1e4]]), np.array([1])
    np.testing.assert_allclose(loss.value(output, label), [2e4])
    np.testing.assert_allclose(loss.gradient(output, label), [[1.0, -1.0]])


def test_batch_norm_normalises_and_its_averages_follow_the_batches() -> None:
    stage = BatchNorm(2, momentum=0.5)
    x = np.random.default_rng(2).normal(3.0, 2.0, (8, 4, 4, 2))
    for _ in range(40):
        y, _ = stage.forward(x, training=True)
        before = {name: array.copy() for name, array in stage.averages.items()}
        stage.forward(x)  # only training moves them
        assert all((before[name] == stage.averages[name]).all() for name in before)
    np.testing.assert_allclose(y.mean(axis=(0, 1, 2)), 0, atol=1e-12)
    np.testing.assert_allclose(y.var(axis=(0, 1, 2)), 1, atol=1e-4)
    np.testing.assert_allclose(stage.averages["mean"], x.mean(axis=(0, 1, 2)), rtol=1e-9)
    np.testing.assert_allclose(stage.averages["variance"], x.var(axis=(0, 1, 2), ddof=1), rtol=1e-9)


def test_what_does_not_fit_is_refused() -> None:
    for stage, shape in [(Linear(3, 2), (1, 4)), (Conv2d(2, 2), (1, 4, 4, 3)), (BatchNorm(2), (4, 3))]:
        with pytest.raises(UsageError):
            stage.forward(np.zeros(shape))
    with pytest.raises(UsageError, match="larger batches"):
        BatchNorm(2).forward(np.zeros((1, 2)), training=True)
    with pytest.raises(UsageError, match="no activation"):
        Activation("sine")
    with pytest.raises(UsageError, match="labels must be"):
        loss_named("mse").value(np.zeros((2, 3)), np.array([0, 3]))
    with pytest.raises(UsageError, match="no loss"):
        loss_named("hinge")
    assert isinstance(Flatten(), Stage)
