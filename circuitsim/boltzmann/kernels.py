"""Block Gibbs sampling on plain arrays, compiled.

Every sum runs in one fixed order (the order of the units), and no kernel calls BLAS: the bits do not depend on the
number of its threads. The logistic function is spelled out in multiplications and additions, so that the compiler can
use vector instructions. Random numbers are functions of a key and of their place (`uniform`): a caller draws one key
for each array.
"""

from __future__ import annotations

import math

import numpy as np

from circuitsim._jit import jit
from circuitsim._vectors import add, kernel, load, mul, splat, store, zip_high, zip_low
from circuitsim.layered.tiles import load_four, store_four

LOG2_E = 1.4426950408889634
# ln 2 in two parts: k times the first is exact for |k| < 2^20.
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
# exp(-708) is the smallest that is still a normal number.
LARGEST = 708.0
TAYLOR = tuple(1.0 / math.factorial(n) for n in range(13, -1, -1))
# SplitMix64 (Steele, Lea & Flood 2014): the step between states, and the two factors of the mixing function.
STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
# Rows of weights in the cache while all samples pass over them.
ROWS = 64
# Columns that are summed at a time, in registers.
LANES = 128


@jit(inline="always", fastmath=False)
def exp_of_minus(a):
    """exp(−a) for 0 ≤ a ≤ 708 to 2 units of round-off: 2^−k times a Taylor polynomial on |r| ≤ ln 2 / 2."""
    a = min(a, LARGEST)
    k = np.int64(a * LOG2_E + 0.5)
    r = k * LN2_HIGH - a + k * LN2_LOW
    p = 0.0
    for coefficient in TAYLOR:
        p = p * r + coefficient
    return p * np.int64((np.int64(1023) - k) << np.int64(52)).view(np.float64)


@jit(inline="always", fastmath=False)
def uniform(key, place):
    """A multiple of 2^−53 in [0, 1): output number ``place + 1`` of SplitMix64 with the seed ``key``."""
    z = key + np.uint64(place + 1) * STEP
    z = (z ^ (z >> np.uint64(30))) * FIRST_FACTOR
    z = (z ^ (z >> np.uint64(27))) * SECOND_FACTOR
    z ^= z >> np.uint64(31)
    return np.float64(z >> np.uint64(11)) * 2.0**-53


@jit(fastmath=False)
def logistic(x):
    """1 / (1 + exp(−x)) in place, for an array of any shape in C order."""
    flat = x.reshape(-1)
    for s in range(flat.size):
        a = np.float64(flat[s])
        z = exp_of_minus(abs(a))
        flat[s] = (1.0 if a >= 0.0 else z) / (1.0 + z)


@jit(fastmath=False)
def sample(x, key):
    """Replace each activation by 1 with probability logistic(x), else by 0, with the random numbers of a key."""
    flat = x.reshape(-1)
    for s in range(flat.size):
        a = np.float64(flat[s])
        z = exp_of_minus(abs(a))
        flat[s] = uniform(key, s) * (1.0 + z) < (1.0 if a >= 0.0 else z)


@jit(fastmath=False)
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
    (samples, given), width = units.shape, bias.size
    packed, flat, sums = np.empty(ROWS * LANES, out.dtype), weights.reshape(-1), out.reshape(-1)
    active, counts = np.empty((samples, ROWS), np.int64), np.empty(samples, np.int64)
    for s in range(samples):
        out[s, :] = bias
    for first in range(0, given, ROWS):
        rows = min(ROWS, given - first)
        for s in range(samples):
            count = 0
            for row in range(rows):
                active[s, count] = row
                count += units[s, first + row] != 0
            counts[s] = count
        for column in range(0, width - LANES + 1, LANES):
            for row in range(rows):
                store(packed, row * LANES, load(flat, (first + row) * width + column, LANES))
            for s in range(samples):
                # These sums stay in registers.
                found = load(sums, s * width + column, LANES)
                for k in range(counts[s]):
                    row = active[s, k]
                    found = add(found, mul(splat(units[s, first + row], LANES), load(packed, row * LANES, LANES)))
                store(sums, s * width + column, found)
        for s in range(samples):
            for k in range(counts[s]):
                row = first + active[s, k]
                for i in range(width - width % LANES, width):
                    out[s, i] += units[s, row] * weights[row, i]


@jit(fastmath=False)
def transposed(source):
    """The transpose of a matrix, (m, n) → (n, m); both in C order."""
    rows, columns = source.shape
    out = np.empty((columns, rows), source.dtype)
    given, made = source.reshape(-1), out.reshape(-1)
    whole_rows, whole_columns = rows - rows % 8, columns - columns % 8
    for j in range(0, whole_rows, 8):
        for i in range(0, whole_columns, 8):
            turn_eight(given, j * columns + i, columns, made, i * rows + j, rows)
    for j in range(rows):
        for i in range(whole_columns if j < whole_rows else 0, columns):
            out[i, j] = source[j, i]
    return out


@kernel()
def turn_eight(given, at, columns, made, to, stride):
    """Rows of a block of eight by eight numbers as columns; three times, the first half is zipped with the second."""
    a, b = load_four(given, at, columns, 8), load_four(given, at + 4 * columns, columns, 8)
    for _ in range(3):
        a, b = zipped(a, b, 0), zipped(a, b, 2)
    store_four(made, to, stride, a)
    store_four(made, to + 4 * stride, stride, b)


@kernel()
def zipped(a, b, k):
    """Vectors k and k + 1 of two fours, lane by lane in turn."""
    return zip_low(a[k], b[k]), zip_high(a[k], b[k]), zip_low(a[k + 1], b[k + 1]), zip_high(a[k + 1], b[k + 1])
