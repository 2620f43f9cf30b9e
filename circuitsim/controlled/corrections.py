"""Kernel: one correction of a solution in pairs of doubles, and the residual after it."""

from __future__ import annotations

import numpy as np

from circuitsim.program.precise import two_product, two_sum

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
        total, error = two_sum(before, new)
        error += low[k]
        high[k] = total + error
        low[k] = error - (high[k] - total)
    for row in range(residual.size):
        total, rest, reach = right[row], 0.0, abs(right[row])
        for t in range(ends[row], ends[row + 1]):
            a, x = -value[t], high[column[t]]
            product, error = two_product(a, x)
            total, lost = two_sum(total, product)
            rest += lost + (error + a * low[column[t]])
            reach = max(reach, abs(product))
        residual[row] = total + rest if reach < BEYOND else np.nan
    return share, largest, most
