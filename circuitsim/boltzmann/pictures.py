"""A picture of a trained machine: its filters."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from circuitsim.boltzmann.machine import RestrictedBoltzmannMachine
from circuitsim.plotting.figure import stacked, write

_ACROSS = 10


def draw_filters(machine: RestrictedBoltzmannMachine, shape: tuple[int, int], path: Path) -> None:
    """The weights of the first hundred hidden units as images of the visible layer; blue pulls a pixel down, red up."""
    weights = machine.weights[: _ACROSS**2].reshape(-1, *shape)
    limit = float(np.abs(weights).max()) or 1.0
    tiles = np.pad(weights, ((0, -len(weights) % _ACROSS), (0, 1), (0, 1)), constant_values=np.nan)
    sheet = tiles.reshape(-1, _ACROSS, *tiles.shape[1:]).swapaxes(1, 2).reshape(-1, _ACROSS * tiles.shape[2])
    figure, (axes,) = stacked("", 6.0, [6.3])
    axes.imshow(sheet, interpolation="nearest", cmap="RdBu_r", vmin=-limit, vmax=limit)
    axes.set(title="weights of the hidden units", xticks=[], yticks=[])
    write(figure, path)
