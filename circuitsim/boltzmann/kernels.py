"""Block Gibbs sampling on plain arrays, compiled. Bitwise equal numpy versions are in `numpy_kernels`.

Two things make the twins equal: every sum runs in one fixed order (the order of the units), and the logistic function
is spelled out in multiplications and additions, because the exponentials of different libraries differ in their last
bit. The second also lets the compiler use vector instructions. Nor is a product and a sum contracted to one rounding
(``fastmath=False``). No kernel calls BLAS, so the bits do not depend on the number of its threads either.
"""

from __future__ import annotations

import numpy as np

from circuitsim._jit import jit

LOG2_E = 1.4426950408889634
# ln 2 in two parts: k times the first is exact for |k| < 2^20.
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
# exp(-708) is the smallest that is still a normal number.
LARGEST = 708.0
CHUNK_BYTES = 65536


@jit(inline="always", fastmath=False)
def exp_of_minus(a):
    """exp(−a) for a ≥ 0 (cut at 708): 2^−k times a Taylor polynomial on |r| ≤ ln 2 / 2, to 2 units of round-off."""
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


@jit(fastmath=False)
def logistic(x):
    """1 / (1 + exp(−x)) in place, for an array of any shape in C order."""
    flat = x.reshape(-1)
    for s in range(flat.size):
        a = np.float64(flat[s])
        z = exp_of_minus(abs(a))
        flat[s] = (1.0 if a >= 0.0 else z) / (1.0 + z)


@jit(fastmath=False)
def sample(x, uniforms):
    """Replace each activation by 1 with probability logistic(x), else by 0: 1 where the uniform lies below it."""
    flat, draws = x.reshape(-1), uniforms.reshape(-1)
    for s in range(flat.size):
        a = np.float64(flat[s])
        z = exp_of_minus(abs(a))
        flat[s] = 1.0 if draws[s] * (1.0 + z) < (1.0 if a >= 0.0 else z) else 0.0


@jit(inline="always", fastmath=False)
def add_rows(units, weights, active, count, out):
    """``out += Σ units[j] weights[j]`` over the ``count`` active units, in their order."""
    t = 0
    # Four rows at a time: the sum stays in a register; the brackets fix the order.
    while t + 4 <= count:
        p, q, u, w = active[t], active[t + 1], active[t + 2], active[t + 3]
        xp, xq, xu, xw = units[p], units[q], units[u], units[w]
        for i in range(out.size):
            out[i] = (((out[i] + xp * weights[p, i]) + xq * weights[q, i]) + xu * weights[u, i]) + xw * weights[w, i]
        t += 4
    while t < count:
        p = active[t]
        xp = units[p]
        for i in range(out.size):
            out[i] += xp * weights[p, i]
        t += 1


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
    given, width = units.shape[1], out.shape[1]
    # So many rows of the weights stay in the cache while all samples pass over them.
    chunk = max(8, CHUNK_BYTES // (width * out.itemsize))
    active = np.empty(chunk + 1, np.int64)
    for s in range(units.shape[0]):
        for i in range(width):
            out[s, i] = bias[i]
    for first in range(0, given, chunk):
        last = min(first + chunk, given)
        for s in range(units.shape[0]):
            count = 0
            for j in range(first, last):
                # Without a branch: whether a unit is on is a coin toss that no processor predicts.
                active[count] = j
                count += 1 if units[s, j] != 0 else 0
            add_rows(units[s], weights, active, count, out[s])


@jit(fastmath=False)
def transpose(source, out):
    """``out = source.T``, (m, n) → (n, m), in tiles of constant size, compiled to vector moves."""
    rows, columns = source.shape
    whole_rows, whole_columns = rows - rows % 8, columns - columns % 8
    for j0 in range(0, whole_rows, 8):
        for i0 in range(0, whole_columns, 8):
            for i in range(8):
                for j in range(8):
                    out[i0 + i, j0 + j] = source[j0 + j, i0 + i]
    for j in range(rows):
        for i in range(whole_columns if j < whole_rows else 0, columns):
            out[i, j] = source[j, i]
