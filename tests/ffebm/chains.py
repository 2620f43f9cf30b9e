"""A chain with a stage and a block of every kind that needs no deck."""

from typing import Any

import numpy as np

from circuitsim.ffebm import (
    Activation,
    BatchNorm,
    Chain,
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


def every_kind(*last: Any, **options: Any) -> Chain:
    """Of images of bytes, (8, 8, 2); more elements follow with three inputs."""
    sweeps = Sweeps(40, 12)
    elements = [
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
        *(last or [Readout(4, 3)]),
    ]
    return Chain(elements, dtype=np.float64, seed=2, **options)


def batch(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of three classes."""
    return rng.integers(256, size=(6, 128), dtype=np.uint8), rng.integers(3, size=6)
