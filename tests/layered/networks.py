"""Small networks and data that the tests of layered networks share."""

from __future__ import annotations

import numpy as np

from circuitsim.layered.architecture import Architecture, ResistiveLearning
from circuitsim.layered.network import DeepResistiveNetwork

INPUTS, CLASSES = 60, 7


def images(samples: int = 210, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Bytes, most of them zero as in pictures of digits, and labels."""
    rng = np.random.default_rng(seed)
    nonzero = rng.random((samples, INPUTS)) < 0.3
    return (nonzero * rng.integers(1, 256, nonzero.shape)).astype(np.uint8), rng.integers(0, CLASSES, samples)


def architecture(*hidden: int) -> Architecture:
    return Architecture((INPUTS, *hidden, CLASSES), 20.0)


def network(of: Architecture, dtype: type = np.float64) -> DeepResistiveNetwork:
    """Initial conductances, and biases that matter."""
    rng = np.random.default_rng(0)
    found = DeepResistiveNetwork(of, rng=rng, dtype=dtype)
    for name, array in found.parameters.items():
        if name.startswith("bias"):
            array[:] = rng.normal(0, 0.05, array.shape)
    return found


def parameters(of: Architecture, dtype: type = np.float64) -> dict[str, np.ndarray]:
    """Those of `network`."""
    return network(of, dtype).parameters


def learning(**changes: object) -> ResistiveLearning:
    return ResistiveLearning(**{"beta": 0.05, "sweeps": 5, "nudged_sweeps": 4, **changes})  # type: ignore[arg-type]
