"""One correction of a solution in pairs of doubles, and what the equations miss then.

Residuals are correctly rounded sums of exact products, so they have the same bits in every form: `corrected` is for
compilation, `corrected_by_arrays` for the time before.
"""

from __future__ import annotations

import math

import numpy as np

SPLIT = 134217729.0
"""2²⁷ + 1 cuts a double into two halves whose products are exact (Dekker 1971)."""

BEYOND = 1e300
"""Terms from here on may leave the range of doubles: there is no residual."""

SHORT = 64
"""Partial sums that are kept, at most 40 for all doubles in range."""


def corrected(value, column, ends, right, change, high, low, residual):
    """Add a change to the solution high + low, and fill in right − matrix · (high + low).

    Parameters
    ----------
    value : (nnz,) float array
        Terms of the matrix, sorted by row.
    column : (nnz,) int array
    ends : (size + 1,) int array
        Where each row begins, and the last one ends.
    right, change : (size,) float arrays
    high, low : (size,) float arrays
        Changed.
    residual : (size,) float array
        Filled; not a number where a term is beyond the range of doubles.

    Returns
    -------
    share, largest, most : float
        The largest |change| as a share of the unknown before, in itself, and the largest |unknown| before.
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
    parts = np.empty(SHORT)
    for row in range(residual.size):
        count, inside = add_exactly(parts, 0, right[row]), abs(right[row]) < BEYOND
        for t in range(ends[row], ends[row + 1]):
            a, x = -value[t], high[column[t]]
            product, below = a * x, a * low[column[t]]
            whole = SPLIT * a
            a_high = whole - (whole - a)
            a_rest = a - a_high
            whole = SPLIT * x
            x_high = whole - (whole - x)
            x_rest = x - x_high
            error = ((a_high * x_high - product) + a_high * x_rest + a_rest * x_high) + a_rest * x_rest
            if not (abs(product) < BEYOND and abs(error) < BEYOND and abs(below) < BEYOND):
                inside = False
            if inside:
                count = add_exactly(parts, count, product)
                # Most terms are a potential or a current itself.
                if error != 0.0:
                    count = add_exactly(parts, count, error)
                if below != 0.0:
                    count = add_exactly(parts, count, below)
        residual[row] = rounded(parts, count) if inside else np.nan
    return share, largest, most


def add_exactly(parts, count, term):
    """Add a term to a sum of so many doubles that do not overlap (Shewchuk 1997); how many they are then."""
    kept = 0
    for k in range(count):
        other = parts[k]
        if abs(term) < abs(other):
            term, other = other, term
        total = term + other
        left = other - (total - term)
        if left != 0.0:
            parts[kept] = left
            kept += 1
        term = total
    if term != 0.0:
        parts[kept] = term
        kept += 1
    return kept


def rounded(parts, count):
    """The sum of so many doubles that do not overlap, the largest last, rounded once."""
    if count == 0:
        return 0.0
    total, left, k = parts[count - 1], 0.0, count - 1
    while k > 0 and left == 0.0:
        k -= 1
        before = total
        total = before + parts[k]
        left = parts[k] - (total - before)
    # Halfway between two doubles, the next part decides.
    if k > 0 and ((left < 0.0 and parts[k - 1] < 0.0) or (left > 0.0 and parts[k - 1] > 0.0)):
        beyond = total + 2.0 * left
        if beyond - total == 2.0 * left:
            total = beyond
    return total


def corrected_by_arrays(value, column, ends, right, change, high, low, residual):
    """`corrected` in operations on arrays and `math.fsum`, with the same bits."""
    size, own = np.abs(change), np.abs(high)
    most, largest = float(own.max(initial=0.0)), float(size.max(initial=0.0))
    share = float((size[size > 0.0] / np.maximum(own[size > 0.0], 1e-300)).max(initial=0.0))
    total = high + change
    part = total - high
    error = (high - (total - part)) + (change - part) + low
    high[:] = total + error
    low[:] = error - (high - total)
    a, x = -value, high[column]
    product = a * x
    a_whole, x_whole = SPLIT * a, SPLIT * x
    a_high, x_high = a_whole - (a_whole - a), x_whole - (x_whole - x)
    a_rest, x_rest = a - a_high, x - x_high
    error = ((a_high * x_high - product) + a_high * x_rest + a_rest * x_high) + a_rest * x_rest
    terms = np.stack([product, error, a * low[column]], axis=1).ravel()
    numbers, first = (np.where(np.abs(all_of) < BEYOND, all_of, np.nan).tolist() for all_of in (terms, right))
    places = (3 * ends).tolist()
    residual[:] = [math.fsum([b, *numbers[start:end]]) for b, start, end in zip(first, places, places[1:])]
    return share, largest, most
