"""Pictures of a trained machine: its filters and what it dreams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from circuitsim.boltzmann.machine import RestrictedBoltzmannMachine
from circuitsim.training.curves import save_figure

_MOST_TILES = 100


def draw_filters(machine: RestrictedBoltzmannMachine, shape: tuple[int, int], path: Path) -> Path:
    """The weights of each hidden unit as an image of the visible layer; blue pulls a pixel down, red up."""
    tiles = machine.weights[:_MOST_TILES].astype(np.float64).reshape(-1, *shape)
    limit = float(np.abs(tiles).max()) or 1.0
    return _draw_tiles(tiles, path, "weights of the hidden units", cmap="RdBu_r", vmin=-limit, vmax=limit)


def draw_samples(
    machine: RestrictedBoltzmannMachine,
    shape: tuple[int, int],
    start: np.ndarray,
    rng: np.random.Generator,
    path: Path,
    steps: int = 200,
) -> Path:
    """Visible probabilities after ``steps`` Gibbs steps from given states."""
    states = machine.gibbs(start[:_MOST_TILES], rng, steps)
    chance = machine.visible_probability(machine.hidden_probability(states)).astype(np.float64)
    return _draw_tiles(chance.reshape(-1, *shape), path, f"after {steps} Gibbs steps", cmap="gray", vmin=0, vmax=1)


def _draw_tiles(tiles: np.ndarray, path: Path, title: str, **style: Any) -> Path:
    """Equal images on a square sheet, a pixel apart."""
    from matplotlib.figure import Figure

    count, rows, columns = tiles.shape
    across = int(np.ceil(np.sqrt(count)))
    down = -(-count // across)
    sheet = np.full((down * (rows + 1) - 1, across * (columns + 1) - 1), np.nan)
    for index, tile in enumerate(tiles):
        top, left = index // across * (rows + 1), index % across * (columns + 1)
        sheet[top : top + rows, left : left + columns] = tile
    figure = Figure(figsize=(6, 6.3), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(sheet, interpolation="nearest", **style)
    axes.set(title=title, xticks=[], yticks=[])
    return save_figure(figure, path)
