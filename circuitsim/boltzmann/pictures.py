"""Pictures of a trained machine: its filters and samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from circuitsim.boltzmann.machine import RestrictedBoltzmannMachine
from circuitsim.plotting.figure import stacked, write

_MOST_TILES = 100


def draw_filters(machine: RestrictedBoltzmannMachine, shape: tuple[int, int], path: Path) -> None:
    """The weights of each hidden unit as an image of the visible layer; blue pulls a pixel down, red up."""
    limit = float(np.abs(machine.weights[:_MOST_TILES]).max()) or 1.0
    _draw_tiles(machine.weights, shape, path, "weights of the hidden units", cmap="RdBu_r", vmin=-limit, vmax=limit)


def draw_samples(
    machine: RestrictedBoltzmannMachine,
    shape: tuple[int, int],
    start: np.ndarray,
    rng: np.random.Generator,
    path: Path,
    steps: int = 200,
) -> None:
    """Visible probabilities after ``steps`` Gibbs steps from given states."""
    states = machine.gibbs(start[:_MOST_TILES], rng, steps)
    chance = machine.visible_probability(machine.hidden_probability(states))
    _draw_tiles(chance, shape, path, f"after {steps} Gibbs steps", cmap="gray", vmin=0, vmax=1)


def _draw_tiles(rows: np.ndarray, shape: tuple[int, int], path: Path, title: str, **style: Any) -> None:
    """The first rows as equal images on a square sheet, a pixel apart."""
    tiles = np.pad(
        rows[:_MOST_TILES].astype(np.float64).reshape(-1, *shape), ((0, 0), (0, 1), (0, 1)), constant_values=np.nan
    )
    across = int(np.ceil(np.sqrt(len(tiles))))
    down = -(-len(tiles) // across)
    sheet = np.full((down * across, *tiles.shape[1:]), np.nan)
    sheet[: len(tiles)] = tiles
    sheet = np.block([list(row) for row in sheet.reshape(down, across, *tiles.shape[1:])])
    figure, (axes,) = stacked("", 6.0, [6.3])
    axes.imshow(sheet, interpolation="nearest", **style)
    axes.set(title=title, xticks=[], yticks=[])
    write(figure, path)
