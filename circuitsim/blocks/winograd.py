"""3 × 3 convolutions of stride one and padding one by Winograd's method: 16 products for four outputs instead of 36.

F(2 × 2, 3 × 3) of Lavin & Gray, *Fast algorithms for convolutional neural networks* (2016): for a square d of four by
four pixels and a kernel g, the outputs are Aᵀ [(G g Gᵀ) ⊙ (Bᵀ d B)] A. Squares overlap by two; the products, one for
each of 16 places, are products of matrices over the channels. Numpy arrays only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LEAST_TILES = 16
"""Fewer make products of so few rows that reading the transformed kernel costs more than the products save."""

CHUNK = 1 << 20
"""Numbers of transformed images that are worked on at a time."""

_KERNEL = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
_TURN = np.arange(16).reshape(4, 4)[np.ix_([3, 1, 2, 0], [3, 1, 2, 0])].ravel()


def suits(images: Any, out: Any) -> bool:
    """Whether images are of numpy, even in size and enough, and the outputs without gaps in memory."""
    if not isinstance(images, np.ndarray):
        return False
    batch, rows, columns, _ = images.shape
    return rows % 2 == columns % 2 == 0 and out.flags.c_contiguous and batch * rows * columns >= 4 * LEAST_TILES


def transformed(kernel: np.ndarray) -> np.ndarray:
    """(16, below, above) G g Gᵀ of a kernel (9, below, above)."""
    both = np.kron(_KERNEL, _KERNEL).astype(kernel.dtype)
    return (both @ kernel.reshape(9, -1)).reshape(16, *kernel.shape[1:])


def turned(filters: np.ndarray) -> np.ndarray:
    """(16, above, below) the same of the transposed convolution, whose kernel is turned by 180 degrees."""
    return filters[_TURN].transpose(0, 2, 1)


def convolve(images: np.ndarray, filters: np.ndarray, out: np.ndarray, memory: dict[Any, np.ndarray]) -> None:
    """The convolution of images (batch, rows, columns, below) with transformed kernels, into ``out``.

    ``memory`` keeps scratch arrays from call to call: new ones cost more than what is computed in them.
    """

    def scratch(*shape: int) -> np.ndarray:
        if shape not in memory:
            memory[shape] = np.empty(shape, images.dtype)
        return memory[shape]

    _, rows, columns, below = images.shape
    down, across, above = rows // 2, columns // 2, filters.shape[2]
    step = max(1, CHUNK // (16 * down * across * (below + above)))
    for first in range(0, len(images), step):
        part = images[first : first + step]
        batch = len(part)
        padded = np.zeros((batch, rows + 2, columns + 2, below), images.dtype)
        padded[:, 1:-1, 1:-1] = part
        bands = scratch(4, batch, down, columns + 2, below)
        _transform_input([padded[:, i : i + rows : 2] for i in range(4)], bands)
        squares = scratch(4, 4, batch, down, across, below)
        for band, places in zip(bands, squares):
            _transform_input([band[:, :, j : j + columns : 2] for j in range(4)], places)
        products = scratch(16, batch * down * across, above)
        np.matmul(squares.reshape(16, -1, below), filters, out=products)
        pairs = scratch(2, 4, batch, down, across, above)
        _transform_output(products.reshape(4, 4, batch, down, across, above), pairs)
        four = out[first : first + step].reshape(batch, down, 2, across, 2, above)
        for row, pair in enumerate(pairs):
            _transform_output(pair, [four[:, :, row, :, column] for column in range(2)])


def _transform_input(d: Any, out: Any) -> None:
    """Bᵀ d."""
    np.subtract(d[0], d[2], out=out[0])
    np.add(d[1], d[2], out=out[1])
    np.subtract(d[2], d[1], out=out[2])
    np.subtract(d[1], d[3], out=out[3])


def _transform_output(m: Any, out: Any) -> None:
    """Aᵀ m."""
    np.add(m[0], m[1], out=out[0])
    np.add(out[0], m[2], out=out[0])
    np.subtract(m[1], m[2], out=out[1])
    np.subtract(out[1], m[3], out=out[1])
