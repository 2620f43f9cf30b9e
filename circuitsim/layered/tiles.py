"""The first layer: its conductances in tiles, and the one pass a mini-batch makes over them.

Inputs come twice, as +A x and as −A x, through conductances P (from +) and M (from −). Hidden units are in tiles of
`TILE` columns; a tile holds, pixel after pixel, as many values of P and then of M. While a tile's row is in registers
it is updated for the last mini-batch, clamped, added to the new column sums and multiplied with the next one's pixels:

    P ← max(0, P − q_k + Σ_b x_bj d_bk)     M ← max(0, M − q_k − Σ_b x_bj d_bk)
    sums_k = Σ_j (P + M)_jk                 product_bk = Σ_j x'_bj (P − M)_jk

Most pixels are zero: a row whose pixel is zero in every sample of a mini-batch is left out of products and sums.
Tiles are independent: the result does not depend on the number of threads.

Products take four vectors at a time: the rows of a block, or the samples of a group.
"""

from __future__ import annotations

from numba import prange

from circuitsim._vectors import add, fma, kernel, load, maximum, splat, store, sub, total


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


TILE = 32


@kernel()
def nonzero_inputs(images, samples, slot, pixels, where):
    """The pixels of a mini-batch that are nonzero in some sample.

    Parameters
    ----------
    images : (count, D) ndarray
    samples : int
        ``count`` rounded up to a multiple of 4; the rest is zero.
    slot : (D,) ndarray of int32
        Written: position among the nonzero pixels, or −1.
    pixels : (D · samples,) ndarray
        Written: the values of the nonzero pixels, sample by sample.
    where : (D,) ndarray of int32
        Written: indices of the nonzero pixels; entries beyond are undefined.

    Returns
    -------
    int
        Number of nonzero pixels.
    """
    count, depth = images.shape
    slot[:] = 0
    for b in range(count):
        for j in range(depth):
            slot[j] |= images[b, j] != 0
    # No branches: they would be mispredicted at every edge of a digit.
    nonzero = 0
    for j in range(depth):
        found = slot[j]
        where[nonzero] = j
        slot[j] = nonzero if found else -1
        nonzero += found
    for b in range(samples):
        for i in range(nonzero):
            pixels[i * samples + b] = images[b, where[i]] if b < count else 0
    return nonzero


@kernel()
def multiply(b, base, samples, slot, pixels, tiles, product, o, width):
    """The product of a tile with four samples, from ``b`` on."""
    zero = splat(tiles.dtype.type(0), TILE)
    sums = zero, zero, zero, zero
    for j in range(slot.size):
        k = slot[j]
        if k >= 0:
            w = base + j * 2 * TILE
            p = sub(load(tiles, w, TILE), load(tiles, w + TILE, TILE))
            sums = each(splat_four(pixels, k * samples + b, TILE), (p, p, p, p), sums)
    store_four(product, o, width, sums)


@kernel()
def tile_pass(column, memory, width, samples):
    """The pass over one tile: update with the last mini-batch, sum, multiply with the next.

    Parameters
    ----------
    column : int
        The tile's first.
    memory : Memory
        All conductances ``tiles``, updated in place; ``slot`` and ``pixels`` of the last and of the next mini-batch, as
        `nonzero_inputs` makes them; d_bk ``shift``, with the learning rate and the input's gain in it; q_k ``drop``.
        Written: ``tile_sums`` and ``product``.
    width : int
        Hidden units with padding.
    samples : int
    """
    tiles, shift, slot, pixels = memory.tiles, memory.shift, memory.slot[0], memory.pixels[0]
    next_slot, next_pixels, product = memory.slot[1], memory.pixels[1], memory.product
    depth, base, q, s = (
        slot.size,
        2 * slot.size * column,
        load(memory.drop, column, TILE),
        splat(tiles.dtype.type(0), TILE),
    )
    zero = s
    # The shifts of the first four samples, often all, stay in registers.
    d = load_four(shift, column, width, TILE)
    for j in range(depth):
        w, k, u = base + j * 2 * TILE, slot[j], zero
        if k >= 0:
            u = along(splat_four(pixels, k * samples, TILE), d, u)
            for b in range(4, samples, 4):
                x = splat_four(pixels, k * samples + b, TILE)
                u = along(x, load_four(shift, b * width + column, width, TILE), u)
        p = maximum(add(sub(load(tiles, w, TILE), q), u), zero)
        m = maximum(sub(sub(load(tiles, w + TILE, TILE), q), u), zero)
        s = add(s, add(p, m))
        store(tiles, w, p)
        store(tiles, w + TILE, m)
    for b in range(0, samples, 4):
        multiply(b, base, samples, next_slot, next_pixels, tiles, product, b * width + column, width)
    store(memory.tile_sums, column, s)


@kernel(parallel=True)
def all_tiles_in_parallel(memory, width, samples):
    """`tile_pass` over all tiles, shared among threads."""
    for t in prange(width // TILE):
        tile_pass(t * TILE, memory, width, samples)
