"""Kernel: one correction of a solution in pairs of doubles, and the residual after it."""

from __future__ import annotations

import numpy as np

SPLIT = 134217729.0
"""2²⁷ + 1 splits a double into two halves whose products are exact (Dekker 1971)."""

BEYOND = 1e300
"""Terms above this bound may overflow: there is no residual."""


def corrected(value, column, ends, right, change, high, low, residual):
    """Add a change to the solution high + low, and fill in right − matrix · (high + low).

    Parameters
    ----------
    value : (nnz,) float array
        Terms of the matrix, sorted by row.
    column : (nnz,) int array
    ends : (size + 1,) int array
        Start of each row, and end of the last one.
    right, change : (size,) float arrays
    high, low : (size,) float arrays
        Updated.
    residual : (size,) float array
        Overwritten; nan where a term may overflow.

    Returns
    -------
    share, largest, most : float
        The largest |change| relative to the unknown before, in absolute value, and the largest |unknown| before.
    """
    share = largest = most = 0.0
    for k in range(high.size):
        before, new = high[k], change[k]
        size, own = abs(new), abs(before)
        most, largest = max(most, own), max(largest, size)
        if size > 0.0:
            share = max(share, size / max(own, 1e-300))
        total = before + new
        part = total - before
        error = (before - (total - part)) + (new - part) + low[k]
        high[k] = total + error
        low[k] = error - (high[k] - total)
    for row in range(residual.size):
        total, rest, reach = right[row], 0.0, abs(right[row])
        for t in range(ends[row], ends[row + 1]):
            a, x = -value[t], high[column[t]]
            product = a * x
            whole = SPLIT * a
            a_high = whole - (whole - a)
            a_rest = a - a_high
            whole = SPLIT * x
            x_high = whole - (whole - x)
            x_rest = x - x_high
            error = ((a_high * x_high - product) + a_high * x_rest + a_rest * x_high) + a_rest * x_rest
            new = total + product
            part = new - total
            rest += ((total - (new - part)) + (product - part)) + (error + a * low[column[t]])
            total = new
            reach = max(reach, abs(product))
        residual[row] = total + rest if reach < BEYOND else np.nan
    return share, largest, most
