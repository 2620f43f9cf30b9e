"""Small networks and data that the tests of layered networks share."""

import numpy as np

from circuitsim.blocks.layered import Sweeps
from circuitsim.layered import Architecture, DeepResistiveNetwork

INPUTS, CLASSES = 60, 7


def images(samples: int = 210, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Bytes, most of them zero as in pictures of digits, and labels."""
    rng = np.random.default_rng(seed)
    nonzero = rng.random((samples, INPUTS)) < 0.3
    return (nonzero * rng.integers(1, 256, nonzero.shape)).astype(np.uint8), rng.integers(0, CLASSES, samples)


def architecture(*hidden: int) -> Architecture:
    return Architecture((INPUTS, *hidden, CLASSES), 20.0)


def network(
    of: Architecture,
    dtype: type = np.float64,
    start: dict[str, np.ndarray] | None = None,
    free: int = 5,
    nudged: int = 4,
    tolerance: float | None = None,
) -> DeepResistiveNetwork:
    """With initial conductances, and biases that matter, if there is no start."""
    rng = np.random.default_rng(0)
    found = DeepResistiveNetwork(of, start, rng, dtype=dtype)
    found.sweeps = Sweeps(free, nudged, tolerance, reverse_nudged=False)
    for name, array in found.parameters.items():
        if name.startswith("bias") and start is None:
            array[:] = rng.normal(0, 0.05, array.shape)
    return found


def parameters(of: Architecture, dtype: type = np.float64) -> dict[str, np.ndarray]:
    """Those of `network`."""
    return network(of, dtype).parameters
