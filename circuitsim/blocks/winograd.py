"""3 × 3 convolutions of stride one and padding one by Winograd's method: 16 products for four outputs instead of 36.

F(2 × 2, 3 × 3) of Lavin & Gray, *Fast algorithms for convolutional neural networks* (2016): squares of four by four
pixels that overlap by two, and the kernel, are transformed by sums; their products, one for each of 16 places, are
products of matrices over the channels; sums of 16 make two by two outputs. Numpy arrays only.
"""

from __future__ import annotations

import numpy as np

from circuitsim._vectors import LINE_BYTES, add, kernel, load_line, store, sub
from circuitsim.blocks.memory import scratch

LEAST_TILES = 16
"""Fewer make products of so few rows that reading the transformed kernel costs more than the products save."""

CHUNK = 8 << 20
"""Bytes of transformed images that are worked on at a time."""

_KERNEL = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
_TURN = np.arange(16).reshape(4, 4)[np.ix_([3, 1, 2, 0], [3, 1, 2, 0])].ravel()


def suits(images: np.ndarray, out: np.ndarray) -> bool:
    """Whether images and outputs are even in size, whole lines in channels, without gaps in memory, and enough."""
    batch, rows, columns, below = images.shape
    line = LINE_BYTES // images.itemsize
    even = rows % 2 == columns % 2 == below % line == out.shape[3] % line == 0
    return even and out.flags.c_contiguous and batch * rows * columns >= 4 * LEAST_TILES


def transformed(kernel: np.ndarray) -> np.ndarray:
    """(16, below, above) G g Gᵀ of a kernel of (9 · below, above)."""
    both = np.kron(_KERNEL, _KERNEL).astype(kernel.dtype)
    return (both @ kernel.reshape(9, -1)).reshape(16, -1, kernel.shape[1])


def turned(filters: np.ndarray) -> np.ndarray:
    """(16, above, below) the same of the transposed convolution, whose kernel is turned by 180 degrees."""
    return filters[_TURN].transpose(0, 2, 1)


def convolve(images: np.ndarray, filters: np.ndarray, out: np.ndarray) -> None:
    """The convolution of images (batch, rows, columns, below) with transformed kernels, into ``out``."""
    _, rows, columns, below = images.shape
    tiles, above = rows * columns // 4, filters.shape[2]
    step = max(1, CHUNK // (16 * tiles * (below + above) * images.itemsize))
    for first in range(0, len(images), step):
        part = images[first : first + step]
        count = len(part) * tiles
        padded = scratch("padded", len(part) * (rows + 2) * (columns + 2) * below, images.dtype)
        given, products = (scratch(name, 16 * count * n, images.dtype) for name, n in (("in", below), ("out", above)))
        pad(part.reshape(-1), len(part), rows, columns * below, below, padded)
        transform(padded, len(part), rows // 2, columns // 2, below, given)
        np.matmul(given.reshape(16, count, below), filters, out=products.reshape(16, count, above))
        sum_up(products, len(part), rows // 2, columns // 2, above, out[first : first + step].reshape(-1))


@kernel(fastmath=False)
def pad(images, batch, rows, length, below, padded):
    """Images with a border of zeros; ``length`` numbers a row."""
    wide = length + 2 * below
    for b in range(batch):
        start = b * (rows + 2) * wide
        for k in range(wide):
            padded[start + k] = 0
            padded[start + (rows + 1) * wide + k] = 0
        for row in range(rows):
            to, at = start + (row + 1) * wide, (b * rows + row) * length
            for k in range(below):
                padded[to + k] = 0
                padded[to + wide - below + k] = 0
            for k in range(length):
                padded[to + below + k] = images[at + k]


@kernel(fastmath=False)
def down(padded, at, wide):
    """Bᵀ d of one column of four pixels."""
    d0, d1 = load_line(padded, at), load_line(padded, at + wide)
    d2, d3 = load_line(padded, at + 2 * wide), load_line(padded, at + 3 * wide)
    return sub(d0, d2), add(d1, d2), sub(d2, d1), sub(d1, d3)


@kernel(fastmath=False)
def put_across(a, b, c, d, given, at, step):
    """d B of one row, into four places that are ``step`` apart."""
    store(given, at, sub(a, c))
    store(given, at + step, add(b, c))
    store(given, at + 2 * step, sub(c, b))
    store(given, at + 3 * step, sub(b, d))


@kernel(fastmath=False)
def transform(padded, batch, rows, columns, below, given):
    """Bᵀ d B of all squares of four by four: (16, squares, below)."""
    line, wide = LINE_BYTES // given.itemsize, (2 * columns + 2) * below
    step = batch * rows * columns * below
    for b in range(batch):
        for i in range(rows):
            for j in range(columns):
                start = (b * (2 * rows + 2) + 2 * i) * wide + 2 * j * below
                to = ((b * rows + i) * columns + j) * below
                for k in range(0, below, line):
                    at = start + k
                    a0, a1, a2, a3 = down(padded, at, wide)
                    b0, b1, b2, b3 = down(padded, at + below, wide)
                    c0, c1, c2, c3 = down(padded, at + 2 * below, wide)
                    d0, d1, d2, d3 = down(padded, at + 3 * below, wide)
                    put_across(a0, b0, c0, d0, given, to + k, step)
                    put_across(a1, b1, c1, d1, given, to + k + 4 * step, step)
                    put_across(a2, b2, c2, d2, given, to + k + 8 * step, step)
                    put_across(a3, b3, c3, d3, given, to + k + 12 * step, step)


@kernel(fastmath=False)
def column_sums(products, at, step):
    """Aᵀ m of one column of four products, which are four places apart."""
    m0, m1 = load_line(products, at), load_line(products, at + 4 * step)
    m2, m3 = load_line(products, at + 8 * step), load_line(products, at + 12 * step)
    return add(add(m0, m1), m2), sub(sub(m1, m2), m3)


@kernel(fastmath=False)
def sum_up(products, batch, rows, columns, above, out):
    """Aᵀ m A: two by two outputs of each square."""
    line, wide = LINE_BYTES // out.itemsize, 2 * columns * above
    step = batch * rows * columns * above
    for b in range(batch):
        for i in range(rows):
            for j in range(columns):
                at = ((b * rows + i) * columns + j) * above
                start = (b * rows + i) * 2 * wide + 2 * j * above
                for k in range(0, above, line):
                    a0, a1 = column_sums(products, at + k, step)
                    b0, b1 = column_sums(products, at + k + step, step)
                    c0, c1 = column_sums(products, at + k + 2 * step, step)
                    d0, d1 = column_sums(products, at + k + 3 * step, step)
                    to = start + k
                    store(out, to, add(add(a0, b0), c0))
                    store(out, to + above, sub(sub(b0, c0), d0))
                    store(out, to + wide, add(add(a1, b1), c1))
                    store(out, to + wide + above, sub(sub(b1, c1), d1))
