"""The first layer: its conductances in tiles, and the one pass a mini-batch makes over them.

Inputs come twice, as +A x and as −A x, through conductances P (from +) and M (from −). Hidden units are in tiles of
`TILE` columns, the last ones perhaps in one of `HALF`; a tile holds, pixel after pixel, as many values of P and then of
M. While a tile's row is in registers it is updated for the last mini-batch, clamped, added to the new column sums and
multiplied with the next one's pixels:

    P ← max(0, P − q_k + Σ_b x_bj d_bk)     M ← max(0, M − q_k − Σ_b x_bj d_bk)
    sums_k = Σ_j (P + M)_jk                 product_bk = Σ_j x'_bj (P − M)_jk

Most pixels are zero: a row whose pixel is zero in every sample of a mini-batch is left out of products and sums.
Tiles are independent: the result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numba import prange, types
from numba.extending import overload

from circuitsim._vectors import add, fma, kernel, load, maximum, prefetch, splat, store, sub


class Images(NamedTuple):
    """Images in one of two forms; the other has no rows. One type: no kernel is compiled for each form.

    Attributes
    ----------
    pixels : (N, D) ndarray of uint8
        Of which 255 stands for an input of one.
    numbers : (N, D) ndarray
        Of the network's type.
    """

    pixels: np.ndarray
    numbers: np.ndarray


TILE, HALF = 32, 16
#: Rows of a tile that stay in the nearest cache while the samples beyond the first four are multiplied.
ROWS = 16


def intensity(levels, value):
    """The value of a pixel: bytes by a table, numbers as they are."""
    raise NotImplementedError("only within kernels")


@overload(intensity)
def _intensity(levels, value):
    if isinstance(value, types.Integer):
        return lambda levels, value: levels[value]
    return lambda levels, value: levels.dtype.type(value)


@kernel()
def gather_nonzero_inputs(images, rows, count, samples, levels, slot, pixels, where):
    """The pixels of a mini-batch that are nonzero in some sample.

    Parameters
    ----------
    images : (N, D) ndarray, of uint8 or floats
    rows : (count,) ndarray of int
        Indices of the images.
    samples : int
        ``count`` rounded up to a multiple of 4; the rest is zero.
    levels : (256,) ndarray
        The value of each byte.
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
    depth = images.shape[1]
    for j in range(depth):
        slot[j] = 0
    for b in range(count):
        image = images[rows[b]]
        for j in range(depth):
            slot[j] |= image[j] != 0
    # No branches: they would be mispredicted at every edge of a digit.
    nonzero = 0
    for j in range(depth):
        found = slot[j]
        where[nonzero] = j
        slot[j] = nonzero if found else -1
        nonzero += found
    for b in range(count):
        image = images[rows[b]]
        for i in range(nonzero):
            pixels[i * samples + b] = intensity(levels, image[where[i]])
    for b in range(count, samples):
        for i in range(nonzero):
            pixels[i * samples + b] = 0
    return nonzero


@kernel()
def nonzero_inputs(images, rows, count, samples, levels, slot, pixels, where):
    """`gather_nonzero_inputs` of `Images`."""
    if images.numbers.shape[0] > 0:
        return gather_nonzero_inputs(images.numbers, rows, count, samples, levels, slot, pixels, where)
    return gather_nonzero_inputs(images.pixels, rows, count, samples, levels, slot, pixels, where)


@kernel()
def fetch(images, rows):
    """`fetch_rows` of `Images`."""
    if images.numbers.shape[0] > 0:
        fetch_rows(images.numbers, rows)
    else:
        fetch_rows(images.pixels, rows)


@kernel()
def fetch_rows(images, rows):
    """Prefetch the images of the next `gather_nonzero_inputs`: each lies elsewhere, hundreds of cycles away."""
    line = 64 // images.itemsize
    for b in range(rows.size):
        image = images[rows[b]]
        for j in range(0, image.size, line):
            prefetch(image, j)


def _multiplying(lanes: int) -> Callable[..., Any]:
    """A kernel for the samples beyond the first four: rows of a tile of ``lanes`` columns, times four from ``b`` on."""

    @kernel()
    def multiply_rows(start, stop, base, b, samples, slot, pixels, tiles, product, o, width):
        """Add rows of a tile, times four samples from ``b`` on, to the product."""
        a0 = load(product, o, lanes)
        a1 = load(product, o + width, lanes)
        a2 = load(product, o + 2 * width, lanes)
        a3 = load(product, o + 3 * width, lanes)
        for j in range(start, stop):
            k = slot[j]
            if k >= 0:
                w = base + j * 2 * lanes
                x = k * samples + b
                p = sub(load(tiles, w, lanes), load(tiles, w + lanes, lanes))
                a0 = fma(splat(pixels[x], lanes), p, a0)
                a1 = fma(splat(pixels[x + 1], lanes), p, a1)
                a2 = fma(splat(pixels[x + 2], lanes), p, a2)
                a3 = fma(splat(pixels[x + 3], lanes), p, a3)
        store(product, o, a0)
        store(product, o + width, a1)
        store(product, o + 2 * width, a2)
        store(product, o + 3 * width, a3)

    return multiply_rows


def _passing(lanes: int) -> Callable[..., Any]:
    """The pass over one tile of ``lanes`` columns: update with the last mini-batch, sum, multiply with the next.

    The kernel's arguments are those of `all_tiles`, after the number of the tile's first column. It is part of its
    caller, where a number of samples that is a constant removes each row's branches for further samples, a tenth of the
    time.
    """
    rest = _multiplying(lanes)

    @kernel(forceinline=True)
    def tile(column, tiles, width, samples, slot, pixels, next_slot, next_pixels, shift, drop, unit, sums, product):
        zero = splat(tiles.dtype.type(0), lanes)
        depth = slot.size
        base = 2 * depth * column
        q, one = load(drop, column, lanes), splat(unit, lanes)
        for b in range(samples):
            store(product, b * width + column, zero)
        # The first four samples, as a rule all, stay in registers: their shifts here, their products below.
        d0 = load(shift, column, lanes)
        d1 = load(shift, width + column, lanes)
        d2 = load(shift, 2 * width + column, lanes)
        d3 = load(shift, 3 * width + column, lanes)
        a0 = zero
        a1 = zero
        a2 = zero
        a3 = zero
        s, r = zero, zero
        for start in range(0, depth, ROWS):
            stop = min(depth, start + ROWS)
            for j in range(start, stop):
                w = base + j * 2 * lanes
                # What does not wait for the pixels first.
                p = sub(load(tiles, w, lanes), q)
                m = sub(load(tiles, w + lanes, lanes), q)
                k = slot[j]
                if k >= 0:
                    x = k * samples
                    u = fma(splat(pixels[x], lanes), d0, zero)
                    u = fma(splat(pixels[x + 1], lanes), d1, u)
                    u = fma(splat(pixels[x + 2], lanes), d2, u)
                    u = fma(splat(pixels[x + 3], lanes), d3, u)
                    for b in range(4, samples, 4):
                        x = k * samples + b
                        o = b * width + column
                        u = fma(splat(pixels[x], lanes), load(shift, o, lanes), u)
                        u = fma(splat(pixels[x + 1], lanes), load(shift, o + width, lanes), u)
                        u = fma(splat(pixels[x + 2], lanes), load(shift, o + 2 * width, lanes), u)
                        u = fma(splat(pixels[x + 3], lanes), load(shift, o + 3 * width, lanes), u)
                    p, m = maximum(add(p, u), zero), maximum(sub(m, u), zero)
                    s, r = add(s, p), add(r, m)
                else:
                    # Dark rows are all additions: these two go where multiplications are made, to the same bits.
                    p, m = maximum(p, zero), maximum(m, zero)
                    s, r = fma(one, p, s), fma(one, m, r)
                store(tiles, w, p)
                store(tiles, w + lanes, m)
                k = next_slot[j]
                if k >= 0:
                    x = k * samples
                    p = sub(p, m)
                    a0 = fma(splat(next_pixels[x], lanes), p, a0)
                    a1 = fma(splat(next_pixels[x + 1], lanes), p, a1)
                    a2 = fma(splat(next_pixels[x + 2], lanes), p, a2)
                    a3 = fma(splat(next_pixels[x + 3], lanes), p, a3)
            for b in range(4, samples, 4):
                rest(start, stop, base, b, samples, next_slot, next_pixels, tiles, product, b * width + column, width)
        store(sums, column, add(s, r))
        store(product, column, a0)
        store(product, width + column, a1)
        store(product, 2 * width + column, a2)
        store(product, 3 * width + column, a3)

    return tile


tile_pass, half_pass = _passing(TILE), _passing(HALF)


@kernel()
def any_tile(t, tiles, width, samples, slot, pixels, next_slot, next_pixels, shift, drop, unit, sums, product):
    """The pass over one tile, whole or half, for batches of four or others; see `all_tiles`."""
    run = (slot, pixels, next_slot, next_pixels, shift, drop, unit, sums, product)
    column = t * TILE
    whole = 2 * slot.size * (column + TILE) <= tiles.size
    if samples == 4:
        if whole:
            tile_pass(column, tiles, width, 4, *run)
        else:
            half_pass(column, tiles, width, 4, *run)
    elif whole:
        tile_pass(column, tiles, width, samples, *run)
    else:
        half_pass(column, tiles, width, samples, *run)


@kernel()
def all_tiles(tiles, width, samples, slot, pixels, next_slot, next_pixels, shift, drop, unit, sums, product):
    """Every tile: update with the last mini-batch, sum, multiply with the next.

    Parameters
    ----------
    tiles : (2 · D · columns,) ndarray
        All conductances, updated in place; see `columns_of`.
    width : int
        Hidden units with padding, a multiple of `TILE`; ``columns`` or one half tile more.
    slot, pixels, next_slot, next_pixels
        As `gather_nonzero_inputs` makes them, of the last and of the next mini-batch.
    shift : (samples · width,) ndarray
        d_bk; with the learning rate and the input's gain in it.
    drop : (width,) ndarray
        q_k.
    unit : float
        1, but no constant of compilation: the sums are multiply-adds by it.
    sums : (width,) ndarray
        Written, as far as there are columns.
    product : (samples · width,) ndarray
        The same.
    """
    for t in range(width // TILE):
        any_tile(t, tiles, width, samples, slot, pixels, next_slot, next_pixels, shift, drop, unit, sums, product)


@kernel(parallel=True)
def all_tiles_in_parallel(
    tiles, width, samples, slot, pixels, next_slot, next_pixels, shift, drop, unit, sums, product
):
    """`all_tiles`, shared among threads."""
    for t in prange(width // TILE):
        any_tile(t, tiles, width, samples, slot, pixels, next_slot, next_pixels, shift, drop, unit, sums, product)


def columns_of(units: int) -> int:
    """Columns that the tiles of so many hidden units have."""
    return -(-units // HALF) * HALF


def tiles_of(tiles: np.ndarray, pixels: int) -> Iterator[tuple[slice, np.ndarray]]:
    """The columns of each tile, and its memory as (D, 2, columns): P and M of each pixel."""
    for first in range(0, tiles.size // (2 * pixels), TILE):
        some = tiles[2 * pixels * first : 2 * pixels * (first + TILE)].reshape(pixels, 2, -1)
        yield slice(first, first + some.shape[2]), some


def pack(weights: np.ndarray, first: int, pixels: int, out: np.ndarray) -> None:
    """Rows of the (2 D, n) conductances, those of +x before those of −x, into the tiles of ``out``.

    ``first`` is the number of the first row given, ``pixels`` is D. What is not given stays as it is.
    """
    for sign in range(2):
        rows = slice(max(0, sign * pixels - first), max(0, (sign + 1) * pixels - first))
        some = weights[rows]
        start = max(0, first - sign * pixels)
        for columns, tile in tiles_of(out, pixels):
            given = some[:, columns]
            tile[start : start + len(some), sign, : given.shape[1]] = given


def unpack(tiles: np.ndarray, pixels: int, columns: int) -> np.ndarray:
    """The inverse of `pack`: all rows."""
    weights = np.empty((2, pixels, columns), tiles.dtype)
    for those, tile in tiles_of(tiles, pixels):
        some = weights[:, :, those]
        some[...] = tile.transpose(1, 0, 2)[:, :, : some.shape[2]]
    return weights.reshape(2 * pixels, columns)
