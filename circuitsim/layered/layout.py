"""Where everything of a layered network lies in the flat arrays that its kernels work on."""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from circuitsim._vectors import aligned
from circuitsim.blocks.resistive import diodes
from circuitsim.layered.tiles import TILE

#: Rows of an inner matrix that are handled together, and columns in a vector.
BLOCK, LANES = 4, 16
#: Shares in which the rows of inner matrices are handed to threads. Fixed, so that sums over rows do not depend on how
#: many threads there are.
PARTS = 8
#: Inner conductances from which their step is shared at all: to call threads takes microseconds.
WORTH_SHARING = 100_000

Layout = namedtuple(
    "Layout",
    "units width at matrix stride row_layer column_layer total size blocks updates",
)
"""Layers 1..L, each padded with units of zero conductance; entry 0 of every table is the input or unused.

The matrix between layers ℓ−1 and ℓ (ℓ ≥ 2) is stored by rows of the odd one of the two, and that into the outputs by
outputs, so that a row is long and one reading of it serves both directions of a sweep.

units, width, at : (L + 1,) units of each layer, the same with padding, the place of its first in an array over all.
total : units of all layers with padding.
matrix, stride, row_layer, column_layer : (L + 1,) of each inner matrix its place (and the end of the last), the length
    of a row with padding, and which layers its rows and columns are.
size : conductances of all inner matrices.
blocks : (n, 2) layer and first row of every block of `BLOCK` rows whose layer is odd.
updates : the same for the blocks of all inner matrices, matrix and first row.
"""

Memory = namedtuple(
    "Memory",
    "tiles inner bias low high no_low no_high mask slot where pixels shift drop free load tile_sums product inverse "
    "base sums nudged partial moved diff mean",
)
"""All arrays of a step; those of (samples, units) are flat. See `allocate`, and `steps` for ``diff`` and ``mean``."""


def lay_out(units: tuple[int, ...]) -> Layout:
    """The layout of a network; ``units`` counts pixels, hidden layers and outputs."""
    last = len(units) - 1
    width = [0, *(-(-n // TILE) * TILE for n in units[1:])]
    rows, columns, stride, matrix = [0, 0], [0, 0], [0, 0], [0, 0, 0]
    for upper in range(2, last + 1):
        rows.append(upper if upper == last or upper % 2 else upper - 1)
        columns.append(2 * upper - 1 - rows[-1])
        stride.append(width[columns[-1]])
        matrix.append(matrix[-1] + -(-units[rows[-1]] // BLOCK) * BLOCK * stride[-1])
    sweeping = [(layer, r) for layer in range(1, last + 1, 2) for r in range(0, units[layer], BLOCK)]
    updating = [(m, r) for m in range(2, last + 1) for r in range(0, units[rows[m]], BLOCK)]
    lists = units, width, [0, *np.cumsum([0, *width[1:-1]])], matrix, stride, rows, columns
    tables = [np.array(given, np.int64).reshape(-1, 2) for given in (sweeping, updating)]
    return Layout._make([*(np.array(given, np.int64) for given in lists), sum(width), matrix[-1], *tables])


def allocate(layout: Layout, samples: int, groups: int, dtype: np.dtype) -> Memory:
    """All arrays of a network at rest, zero conductances; ``groups`` times the samples are the rows of a gradient."""
    pixels, n, width = int(layout.units[0]), layout.total, int(layout.width[1])
    # The nudged phases have twice as many samples.
    states, twice = samples * n, 2 * samples * n
    sizes = {
        "tiles": 2 * pixels * width,
        "inner": layout.size,
        "partial": PARTS * twice,
        "moved": PARTS,
        "inverse": 3 * states,
        **dict.fromkeys(("bias", "low", "high", "no_low", "no_high", "mask", "load"), n),
        **dict.fromkeys(("drop", "tile_sums"), width),
        **dict.fromkeys(("shift", "product"), samples * width),
        **dict.fromkeys(("diff", "mean"), groups * states),
        "free": states,
        **dict.fromkeys(("base", "sums", "nudged"), twice),
    }
    made = Memory(
        slot=np.full((2, pixels), -1, np.int32),
        where=np.zeros(pixels, np.int32),
        pixels=aligned(2 * pixels * samples, dtype).reshape(2, -1),
        **{name: aligned(size, dtype) for name, size in sizes.items()},
    )
    made.no_low[:], made.no_high[:] = -np.inf, np.inf
    last = layout.units.size - 1
    for layer in range(1, last + 1):
        here = slice(layout.at[layer], layout.at[layer] + layout.units[layer])
        made.low[here], made.high[here] = diodes(int(layout.units[layer])) if layer < last else (-np.inf, np.inf)
        made.mask[here] = 1
    return made


def inner_matrix(layout: Layout, inner: np.ndarray, layer: int) -> np.ndarray:
    """The matrix below a layer from the second on, (units below, units): a view of the memory of all."""
    start, end = layout.matrix[layer : layer + 2]
    rows = inner[start:end].reshape(-1, layout.stride[layer])
    return (rows.T if layout.row_layer[layer] == layer else rows)[: layout.units[layer - 1], : layout.units[layer]]


def first_matrix(layout: Layout, tiles: np.ndarray) -> np.ndarray:
    """The matrix of the inputs, (2 · pixels, units): a copy from its tiles."""
    return _untiled(layout, tiles).reshape(2 * layout.units[0], -1)[:, : layout.units[1]]


def fill_tiles(layout: Layout, tiles: np.ndarray, matrix: np.ndarray) -> None:
    """Write the matrix of the inputs into its tiles."""
    whole, padded = _untiled(layout, tiles), np.zeros((2 * layout.units[0], layout.width[1]))
    padded[:, : layout.units[1]] = matrix
    whole[:] = padded.reshape(whole.shape)


def _untiled(layout: Layout, tiles: np.ndarray) -> np.ndarray:
    """(2, pixels, tiles, TILE) a view."""
    return tiles.reshape(-1, layout.units[0], 2, TILE).transpose(2, 1, 0, 3)
