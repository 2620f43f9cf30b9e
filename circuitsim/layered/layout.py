"""Where everything of a layered network lies in the flat arrays that its kernels work on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.layered.tiles import TILE

#: Rows of an inner matrix that are handled together, and columns in a vector. A block of rows is stored as
#: (columns / LANES, BLOCK, LANES), so that it is read from its first byte to its last.
BLOCK, LANES = 4, 16
#: Shares in which the rows of inner matrices are handed to threads. Fixed, so that sums over rows do not depend on how
#: many threads there are.
PARTS = 8
#: Inner conductances from which their step is shared at all: to call threads takes microseconds.
WORTH_SHARING = 100_000


class Layout(NamedTuple):
    """Layers 1..L, each padded with units of zero conductance; entry 0 of every table is the input or unused.

    The matrix between layers ℓ−1 and ℓ (ℓ ≥ 2) is stored by rows of the odd one of the two, and that into the outputs
    by outputs, so that a row is long and one reading of it serves both directions of a sweep.

    Attributes
    ----------
    units, width, at : (L + 1,) ndarray
        Units of each layer, the same with padding, and the place of its first unit in an array over all units.
    total : int
        Units of all layers with padding.
    matrix, stride, row_layer, column_layer : (L + 1,) ndarray
        Of each inner matrix: its place, length of a row with padding, and which layers its rows and columns are.
    size : int
        Conductances of all inner matrices.
    blocks : (n, 2) ndarray
        Layer and first row of every block of rows whose layer is odd; `BLOCK` rows each.
    parts : (PARTS + 1,) ndarray
        Where the shares of `blocks` begin.
    updates, update_parts
        The same for the blocks of all inner matrices: matrix and first row; one part where there are few.
    """

    units: np.ndarray
    width: np.ndarray
    at: np.ndarray
    total: int
    matrix: np.ndarray
    stride: np.ndarray
    row_layer: np.ndarray
    column_layer: np.ndarray
    size: int
    blocks: np.ndarray
    parts: np.ndarray
    updates: np.ndarray
    update_parts: np.ndarray


def lay_out(units: tuple[int, ...]) -> Layout:
    """The layout of a network; ``units`` counts pixels, hidden layers and outputs."""
    last = len(units) - 1
    width = [0, *(-(-n // TILE) * TILE for n in units[1:])]
    at = [0, *np.cumsum([0, *width[1:-1]]).tolist()]
    matrix, stride, rows, columns, size = [0, 0], [0, 0], [0, 0], [0, 0], 0
    for upper in range(2, last + 1):
        row = upper if upper == last or upper % 2 else upper - 1
        column = 2 * upper - 1 - row
        matrix.append(size)
        stride.append(width[column])
        rows.append(row)
        columns.append(column)
        size += -(-units[row] // BLOCK) * BLOCK * width[column]
    sweeping = [(layer, r) for layer in range(1, last + 1, 2) if layer in rows for r in range(0, units[layer], BLOCK)]
    updating = [(m, r) for m in range(2, last + 1) for r in range(0, units[rows[m]], BLOCK)]

    def table(values: list[tuple[int, int]]) -> np.ndarray:
        return np.array(values, np.int64).reshape(-1, 2)

    def vector(values: list[int] | tuple[int, ...]) -> np.ndarray:
        return np.array(values, np.int64)

    return Layout(
        vector(units),
        vector(width),
        vector(at),
        sum(width),
        vector(matrix),
        vector(stride),
        vector(rows),
        vector(columns),
        size,
        table(sweeping),
        _shares(len(sweeping), PARTS),
        table(updating),
        _shares(len(updating), PARTS if size > WORTH_SHARING else 1),
    )


def blocks_of(layout: Layout, inner: np.ndarray, matrix: int) -> np.ndarray:
    """An inner matrix as it is stored: a (blocks, columns / LANES, BLOCK, LANES) view of the memory of all."""
    start, stride = int(layout.matrix[matrix]), int(layout.stride[matrix])
    blocks = -(-int(layout.units[layout.row_layer[matrix]]) // BLOCK)
    return inner[start : start + blocks * BLOCK * stride].reshape(blocks, -1, BLOCK, LANES)


def _shares(count: int, parts: int) -> np.ndarray:
    return np.array([count * part // parts for part in range(parts + 1)], np.int64)
