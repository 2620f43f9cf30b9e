"""The first layer: its conductances in tiles, and the one pass a mini-batch makes over them.

Inputs come twice, as +A x and as −A x, through conductances P (from +) and M (from −). Hidden units are in tiles of
`TILE` columns; a tile holds, pixel after pixel, as many values of P and then of M. While a tile's row is in registers
it is updated for the last mini-batch, clamped, added to the new column sums and multiplied with the next one's pixels:

    P ← max(0, P − q_k + Σ_b x_bj d_bk)     M ← max(0, M − q_k − Σ_b x_bj d_bk)
    sums_k = Σ_j (P + M)_jk                 product_bk = Σ_j x'_bj (P − M)_jk

Most pixels are zero: a row whose pixel is zero in every sample of a mini-batch is left out of products and sums.
Tiles are independent: the result does not depend on the number of threads.
"""

from __future__ import annotations

from numba import prange

from circuitsim._vectors import add, kernel, load, maximum, splat, store, sub
from circuitsim.layered.fours import along, each, load_four, splat_four, store_four

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
