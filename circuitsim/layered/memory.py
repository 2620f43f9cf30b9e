"""What the steps of a training run read and write."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Rule(NamedTuple):
    """Numerical parameters of a step.

    Attributes
    ----------
    samples : int
        Samples in a mini-batch, rounded up to a multiple of 4.
    sweeps, nudged_sweeps : int
        Free and nudged sweeps; their largest number where a tolerance is given.
    tolerance : float
        Sweeps end when no unit moves by more than this, relatively; 0 makes exactly ``sweeps`` of them.
    beta : float
        Strength of the nudge.
    lower, upper : bool
        Whether the states at −β and at +β are used; an unused one is replaced by the free state.
    gain : float
        A, the factor of the pixels.
    """

    samples: int
    sweeps: int
    nudged_sweeps: int
    tolerance: float
    beta: float
    lower: bool
    upper: bool
    gain: float


class Memory(NamedTuple):
    """All arrays of a step; (samples, units) arrays are flat. See `allocate`."""

    tiles: np.ndarray
    inner: np.ndarray
    bias: np.ndarray
    low: np.ndarray
    high: np.ndarray
    mask: np.ndarray
    levels: np.ndarray
    slot: np.ndarray
    where: np.ndarray
    pixels: np.ndarray
    shift: np.ndarray
    drop: np.ndarray
    free: np.ndarray
    load: np.ndarray
    tile_sums: np.ndarray
    product: np.ndarray
    inverse: np.ndarray
    base: np.ndarray
    sums: np.ndarray
    nudged: np.ndarray
    partial: np.ndarray
    lanes: np.ndarray
    moved: np.ndarray
    diff: np.ndarray
    mean: np.ndarray
    phase: np.ndarray
