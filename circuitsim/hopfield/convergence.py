"""Sweeps of a layered network until convergence to a relative tolerance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from circuitsim.blocks import Nudge
from circuitsim.blocks.alternating import LayeredEnergy, LayeredState
from circuitsim.blocks.layered import LayeredBlock

Layers = Sequence[np.ndarray]


def sweeps_to_converge(step: Callable[[Layers], Layers], start: Layers, share: float, limit: int) -> np.ndarray:
    """For each sample the sweeps after which no unit is ever farther from its final value than a fraction of its layer.

    Parameters
    ----------
    step : callable
        One sweep: layers, each (batch, units), to new layers.
    start : sequence of (batch, units) arrays
    share : float
        Of the largest final value in the unit's layer, sample by sample.
    limit : int
        Sweeps after which the state counts as final; they end earlier where a sweep changes no unit by more than a
        thousandth of ``share``.

    Returns
    -------
    (batch,) int array
        `limit` for a sample that was still moving then.
    """
    final, last = start, 0
    for last in range(1, limit + 1):  # noqa: B007 (its last value is used)
        before, final = final, step(final)
        if not _far(before, final, 1e-3 * share).any():
            break
    needed, layers = np.zeros(len(start[0]), dtype=np.int64), start
    for sweep in range(last + 1):
        needed[_far(layers, final, share)] = sweep + 1
        layers = step(layers)
    return np.minimum(needed, limit)


def _far(layers: Layers, final: Layers, share: float) -> np.ndarray:
    """(batch,) whether a unit is farther from its final value than a share of the largest one in its layer, or of 1
    where all of them are zero."""
    far = np.zeros(len(final[0]), dtype=bool)
    for layer, end in zip(layers, final):
        largest = np.abs(end).max(axis=1, keepdims=True)
        far |= (np.abs(layer - end) > share * np.where(largest > 0, largest, 1)).any(axis=1)
    return far


def phases(
    block: LayeredBlock, x: np.ndarray, targets: np.ndarray, beta: float, share: float, limit: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sweeps of a layered block on inputs (batch, inputs): from zero, and nudged by +β from the free state.

    Both phases take the layers in the order of the free one.
    """
    state = block.relax(x)
    energy, zero = state.minimised, replace(state, layers=tuple(map(np.zeros_like, state.layers)))
    nudged = replace(energy, nudge=Nudge(-beta * targets, beta))

    def needed(of: LayeredEnergy, start: LayeredState) -> np.ndarray:
        def step(layers: Layers) -> Layers:
            return of.relax(replace(state, layers=tuple(layers)), 1).layers

        return sweeps_to_converge(step, start.layers, share, limit)

    return needed(energy, zero), needed(nudged, energy.relax(zero, limit))
