"""Block Gibbs sampling on plain arrays, compiled. Tests hold bitwise equal numpy versions beside them.

Two things make the twins equal: every sum runs in one fixed order (the order of the units), and the logistic function
is spelled out in multiplications and additions, because the exponentials of different libraries differ in their last
bit. The second also lets the compiler use vector instructions. Nor is a product and a sum contracted to one rounding
(``fastmath=False``). No kernel calls BLAS, so the bits do not depend on the number of its threads either.

Random numbers are functions of a key and of their place (`random_bits`): a caller draws one key for each array.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from circuitsim._jit import jit
from circuitsim._vectors import (
    LINE_BYTES,
    add,
    kernel,
    load,
    load_line,
    lowest,
    mul,
    nonzero,
    splat_line,
    store,
    zip_high,
    zip_low,
)

LOG2_E = 1.4426950408889634
# ln 2 in two parts: k times the first is exact for |k| < 2^20.
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
# exp(-708) is the smallest that is still a normal number.
LARGEST = 708.0
# The same for single precision.
LOG2_E_SINGLE = np.float32(LOG2_E)
LN2_HIGH_SINGLE, LN2_LOW_SINGLE = np.float32(0.693359375), np.float32(-2.12194440e-4)
LARGEST_SINGLE = np.float32(87.0)
# SplitMix64 (Steele, Lea & Flood 2014): the step between states, and the two factors of the mixing function.
STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
# Rows of weights in the cache while all samples pass over them: as many as a word has bits.
ROWS = 64
# Lines of a row that are summed at a time, in as many registers.
LINES = 8
# Sums that stay in the second cache while all rows are added.
OUT_BYTES = 1 << 20


def exp_of_minus(a):
    """exp(−a) for a ≥ 0, to 2 units of round-off of its type: 2^−k times a Taylor polynomial on |r| ≤ ln 2 / 2.

    In double precision cut at exp(−708), in single precision zero beyond exp(−87).
    """
    raise NotImplementedError("only within kernels")


@overload(exp_of_minus)
def _exp_of_minus(a):
    return _exp_single if a == types.float32 else _exp_double


def _exp_double(a):
    a = min(a, LARGEST)
    k = np.int64(a * LOG2_E + 0.5)
    r = k * LN2_HIGH - a + k * LN2_LOW
    p = r * (1.0 / 6227020800.0) + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * np.int64((np.int64(1023) - k) << np.int64(52)).view(np.float64)


def _exp_single(a):
    one = np.float32(1.0)
    cut = min(a, LARGEST_SINGLE)
    k = np.int32(cut * LOG2_E_SINGLE + np.float32(0.5))
    whole = np.float32(k)
    r = whole * LN2_HIGH_SINGLE - cut + whole * LN2_LOW_SINGLE
    p = r * np.float32(1.0 / 5040.0) + np.float32(1.0 / 720.0)
    p = p * r + np.float32(1.0 / 120.0)
    p = p * r + np.float32(1.0 / 24.0)
    p = p * r + np.float32(1.0 / 6.0)
    p = p * r + np.float32(0.5)
    p = p * r + one
    p = p * r + one
    scale = np.int32((np.int32(127) - k) << np.int32(23)).view(np.float32)
    return p * scale if a <= LARGEST_SINGLE else np.float32(0.0)


@jit(unroll=True, fastmath=False)
def logistic(x):
    """1 / (1 + exp(−x)) in place, for an array of any shape in C order."""
    flat, one = x.reshape(-1), x.dtype.type(1.0)
    for s in range(flat.size):
        z = exp_of_minus(abs(flat[s]))
        flat[s] = (one if flat[s] >= 0 else z) / (one + z)


@jit(inline="always", fastmath=False)
def random_bits(key, place):
    """64 random bits: output number ``place + 1`` of SplitMix64 with the seed ``key``; both unsigned."""
    z = key + (place + np.uint64(1)) * STEP
    z = (z ^ (z >> np.uint64(30))) * FIRST_FACTOR
    z = (z ^ (z >> np.uint64(27))) * SECOND_FACTOR
    return z ^ (z >> np.uint64(31))


def uniform(key, place, like):
    """A number of the type of ``like`` in [0, 1), a multiple of 2^−53 or 2^−24."""
    raise NotImplementedError("only within kernels")


@overload(uniform)
def _uniform(key, place, like):
    if like == types.float32:
        return lambda key, place, like: np.float32(random_bits(key, place) >> np.uint64(40)) * np.float32(2.0**-24)
    return lambda key, place, like: np.float64(random_bits(key, place) >> np.uint64(11)) * 2.0**-53


@jit(unroll=True, fastmath=False)
def sample(x, key):
    """Replace each activation by 1 with probability logistic(x), else by 0, with the random numbers of a key."""
    flat, zero, one = x.reshape(-1), x.dtype.type(0.0), x.dtype.type(1.0)
    for s in range(flat.size):
        a = flat[s]
        z = exp_of_minus(abs(a))
        flat[s] = one if uniform(key, np.uint64(s), a) * (one + z) < (one if a >= 0 else z) else zero


@jit(unroll=True, fastmath=False)
def draw(probability, key, out):
    """1 with the given probabilities, else 0, into ``out`` of the same shape, with the random numbers of a key."""
    given, drawn = probability.reshape(-1), out.reshape(-1)
    zero, one = out.dtype.type(0.0), out.dtype.type(1.0)
    for s in range(given.size):
        drawn[s] = one if uniform(key, np.uint64(s), given[s]) < given[s] else zero


@jit(unroll=True, fastmath=False)
def affine(units, weights, bias, out):
    """``out[s] = bias + Σ_j units[s, j] weights[j]``, the sum in the order of j, units at zero skipped.

    Parameters
    ----------
    units : (B, m) ndarray
        States of the layer that is given; zeros are skipped, which makes binary sparse states fast.
    weights : (m, n) ndarray
        C order, one row for each given unit.
    bias : (n,) ndarray
    out : (B, n) ndarray
        Overwritten.
    """
    samples, width = out.shape
    line = LINE_BYTES // out.itemsize
    memory = np.empty((ROWS * LINES + 1) * line, out.dtype)
    # Where the first whole line of the cache begins.
    begin = -(memory.ctypes.data // out.itemsize) % line
    packed = memory[begin : begin + ROWS * LINES * line]
    active = np.empty(samples, np.uint64)
    states, rows, sums = units.reshape(-1), weights.reshape(-1), out.reshape(-1)
    parts = samples * width * out.itemsize // OUT_BYTES + 1
    for part in range(parts):
        start, stop = samples * part // parts, samples * (part + 1) // parts
        for s in range(start, stop):
            for i in range(width):
                out[s, i] = bias[i]
        for first in range(0, units.shape[1], ROWS):
            count = min(ROWS, units.shape[1] - first)
            for s in range(start, stop):
                active[s] = nonzero_units(states, s * units.shape[1] + first, count)
            add_rows(states, active, start, stop, first, count, rows, sums, width, packed)


@kernel(fastmath=False)
def add_rows(states, active, start, stop, first, count, rows, sums, width, packed):
    """Add ``count`` rows of weights, from ``first`` on, to the sums of the samples for which they are active."""
    line, given = LINE_BYTES // sums.itemsize, states.size // active.size
    column = 0
    while column + LINES * line <= width:
        pack(rows, first * width + column, width, count, packed)
        for s in range(start, stop):
            add_lines(states, s * given + first, active[s], packed, sums, s * width + column)
        column += LINES * line
    if column < width:
        for s in range(start, stop):
            add_tail(states, s * given + first, active[s], rows, first * width, sums, s * width, column, width)


@kernel(fastmath=False)
def nonzero_units(states, first, count):
    """Which of ``count`` states (64 at most) are not zero, as bits."""
    line = LINE_BYTES // states.itemsize
    found, j = np.uint64(0), 0
    while j + line <= count:
        found |= nonzero(load_line(states, first + j)) << np.uint64(j)
        j += line
    while j < count:
        found |= np.uint64(states[first + j] != 0) << np.uint64(j)
        j += 1
    return found


@kernel(fastmath=False)
def pack(rows, at, width, count, packed):
    """Copy `LINES` lines of ``count`` rows, one row after the other."""
    line = LINE_BYTES // packed.itemsize
    for row in range(count):
        for k in range(LINES):
            store(packed, (row * LINES + k) * line, load_line(rows, at + row * width + k * line))


@kernel(fastmath=False)
def add_lines(states, first, active, packed, sums, at):
    """Add the active rows, each times its state, to `LINES` lines of a sample's sums, which stay in registers."""
    line = LINE_BYTES // sums.itemsize
    a0, a1 = load_line(sums, at), load_line(sums, at + line)
    a2, a3 = load_line(sums, at + 2 * line), load_line(sums, at + 3 * line)
    a4, a5 = load_line(sums, at + 4 * line), load_line(sums, at + 5 * line)
    a6, a7 = load_line(sums, at + 6 * line), load_line(sums, at + 7 * line)
    while active != np.uint64(0):
        j = lowest(active)
        active &= active - np.uint64(1)
        x, row = splat_line(states[first + j]), j * LINES * line
        a0 = add(a0, mul(x, load_line(packed, row)))
        a1 = add(a1, mul(x, load_line(packed, row + line)))
        a2 = add(a2, mul(x, load_line(packed, row + 2 * line)))
        a3 = add(a3, mul(x, load_line(packed, row + 3 * line)))
        a4 = add(a4, mul(x, load_line(packed, row + 4 * line)))
        a5 = add(a5, mul(x, load_line(packed, row + 5 * line)))
        a6 = add(a6, mul(x, load_line(packed, row + 6 * line)))
        a7 = add(a7, mul(x, load_line(packed, row + 7 * line)))
    store(sums, at, a0)
    store(sums, at + line, a1)
    store(sums, at + 2 * line, a2)
    store(sums, at + 3 * line, a3)
    store(sums, at + 4 * line, a4)
    store(sums, at + 5 * line, a5)
    store(sums, at + 6 * line, a6)
    store(sums, at + 7 * line, a7)


@kernel(fastmath=False)
def add_tail(states, first, active, rows, begin, sums, at, column, width):
    """As `add_lines`, for the columns from ``column`` on, fewer than these lines have."""
    while active != np.uint64(0):
        j = lowest(active)
        active &= active - np.uint64(1)
        x = states[first + j]
        for i in range(column, width):
            sums[at + i] += x * rows[begin + j * width + i]


@jit(unroll=True, fastmath=False)
def transpose(source, out, start):
    """``out[:, start : start + m] = source.T``, (m, n) → (n, m); both in C order."""
    rows, columns = source.shape
    given, made, stride = source.reshape(-1), out.reshape(-1), out.shape[1]
    whole_rows, whole_columns = rows - rows % 8, columns - columns % 8
    for j in range(0, whole_rows, 8):
        for i in range(0, whole_columns, 8):
            turn_eight(given, j * columns + i, columns, made, i * stride + start + j, stride)
    for j in range(rows):
        for i in range(whole_columns if j < whole_rows else 0, columns):
            out[i, start + j] = source[j, i]


@kernel(fastmath=False)
def turn_eight(given, at, columns, made, to, stride):
    """Transpose a square of eight by eight: zipped with the row four below, three times over."""
    a0, a1 = load(given, at, 8), load(given, at + columns, 8)
    a2, a3 = load(given, at + 2 * columns, 8), load(given, at + 3 * columns, 8)
    a4, a5 = load(given, at + 4 * columns, 8), load(given, at + 5 * columns, 8)
    a6, a7 = load(given, at + 6 * columns, 8), load(given, at + 7 * columns, 8)
    for _ in range(3):
        b0, b1, b2, b3 = zip_low(a0, a4), zip_high(a0, a4), zip_low(a1, a5), zip_high(a1, a5)
        b4, b5, b6, b7 = zip_low(a2, a6), zip_high(a2, a6), zip_low(a3, a7), zip_high(a3, a7)
        a0, a1, a2, a3, a4, a5, a6, a7 = b0, b1, b2, b3, b4, b5, b6, b7
    store(made, to, a0)
    store(made, to + stride, a1)
    store(made, to + 2 * stride, a2)
    store(made, to + 3 * stride, a3)
    store(made, to + 4 * stride, a4)
    store(made, to + 5 * stride, a5)
    store(made, to + 6 * stride, a6)
    store(made, to + 7 * stride, a7)
