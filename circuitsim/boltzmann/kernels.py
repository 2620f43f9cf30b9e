"""The product of sparse states and weights, compiled: most units are 0 in most samples, and are skipped."""

from __future__ import annotations

import numpy as np

from circuitsim._jit import jit
from circuitsim._vectors import add, load, mul, splat, store

# Rows of weights in the cache while all samples pass over them.
ROWS = 64
# Columns that are summed at a time, in registers.
LANES = 128


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
