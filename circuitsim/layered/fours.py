"""Four vectors at a time: the rows of a block, or the samples of a group; and a matrix of rows against samples."""

from __future__ import annotations

from circuitsim._vectors import fma, kernel, load, splat, store, total


@kernel()
def load_four(array, at, step, lanes):
    """Four vectors, each ``step`` after the one before."""
    a, b = load(array, at, lanes), load(array, at + step, lanes)
    return a, b, load(array, at + 2 * step, lanes), load(array, at + 3 * step, lanes)


@kernel()
def store_four(array, at, step, four):
    """Put them there again."""
    store(array, at, four[0])
    store(array, at + step, four[1])
    store(array, at + 2 * step, four[2])
    store(array, at + 3 * step, four[3])


@kernel()
def splat_four(array, at, lanes):
    """Four numbers that follow each other, each in all lanes of a vector."""
    a, b = splat(array[at], lanes), splat(array[at + 1], lanes)
    return a, b, splat(array[at + 2], lanes), splat(array[at + 3], lanes)


@kernel()
def each(a, b, c):
    """a_i b_i + c_i."""
    return fma(a[0], b[0], c[0]), fma(a[1], b[1], c[1]), fma(a[2], b[2], c[2]), fma(a[3], b[3], c[3])


@kernel()
def along(a, b, c):
    """Σ a_i b_i + c."""
    return fma(a[3], b[3], fma(a[2], b[2], fma(a[1], b[1], fma(a[0], b[0], c))))


@kernel()
def add_totals(sums, at, four):
    """Add the sums over the lanes of four vectors to four numbers."""
    sums[at] += total(four[0])
    sums[at + 1] += total(four[1])
    sums[at + 2] += total(four[2])
    sums[at + 3] += total(four[3])
