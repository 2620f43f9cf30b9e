"""3 × 3 convolutions of stride one and padding one by Winograd's method: 16 products for four outputs instead of 36.

F(2 × 2, 3 × 3) of Lavin & Gray, *Fast algorithms for convolutional neural networks* (2016): for a square d of four by
four pixels and a kernel g, the outputs are Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A. Squares overlap by two; the products, one for
each of 16 places, are products of matrices over the channels. Arrays of any library; an odd side gets a line of zeros.
"""

from __future__ import annotations

import numpy as np

from circuitsim._arrays import Array, device, namespace
from circuitsim.blocks.convolution import Window, bordered

CHUNK = 1 << 20
"""Numbers of transformed images that are worked on at a time."""

_KERNEL = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
_INPUT = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
_OUTPUT = np.array([[1, 1, 1, 0], [0, 1, -1, -1]])


def _on_both_sides(matrix: np.ndarray, columns: Array) -> Array:
    """M d Mᵀ of squares, one a column, row after row."""
    xp = namespace(columns)
    both = xp.asarray(np.kron(matrix, matrix), dtype=columns.dtype, device=device(columns))
    return both @ xp.reshape(columns, (both.shape[1], -1))


def transformed(kernel: Array) -> Array:
    """(16, below, above) G g Gᵀ of a kernel (9, below, above)."""
    return namespace(kernel).reshape(_on_both_sides(_KERNEL, kernel), (16, *kernel.shape[1:]))


def convolve(images: Array, filters: Array, out: Array) -> None:
    """The convolution of images (batch, rows, columns, below) with transformed kernels, into ``out``."""
    xp, (_, rows, columns, below) = namespace(images), images.shape
    down, across = -(-rows // 2), -(-columns // 2)
    step = max(1, CHUNK // (16 * down * across * (below + filters.shape[2])))
    for first in range(0, images.shape[0], step):
        part = images[first : first + step]
        padded, inside = bordered(part, (part.shape[0], 2 * down, 2 * across, below), Window())
        inside[:, :rows, :columns] = part
        places = [padded[:, i : i + 2 * down : 2, j : j + 2 * across : 2] for i in range(4) for j in range(4)]
        products = xp.reshape(_on_both_sides(_INPUT, xp.stack(places)), (16, -1, below)) @ filters
        four = xp.reshape(_on_both_sides(_OUTPUT, products), (2, 2, part.shape[0], down, across, -1))
        whole = xp.reshape(xp.permute_dims(four, (2, 3, 0, 4, 1, 5)), (part.shape[0], 2 * down, 2 * across, -1))
        out[first : first + step] = whole[:, :rows, :columns]
