"""Sums of the weights of binary units that are often 1, by tables: compiled.

Four rows of weights have sixteen sums. With all of them in a table a sample adds one line where it would add up to
four (the method of the four Russians, Arlazarov et al. 1970). Hidden units are active in half of the samples, and a
batch has many samples for each table. The sums run in one fixed order: groups of four units in their order, and within
a group the units in theirs.
"""

from __future__ import annotations

import numpy as np

from circuitsim._jit import jit
from circuitsim._vectors import LINE_BYTES, add, kernel, load_line, splat_line, store
from circuitsim.boltzmann.kernels import nonzero_units, turn_eight

GROUP = 4
SUMS = 1 << GROUP
# Units whose states are the bits of one word.
UNITS = 64
# Samples whose sums are in registers together.
SAMPLES = 4
# Lines of a row that are summed before they are written.
LINES = 8


@jit(unroll=True, fastmath=False)
def binary_affine(units, weights, bias, out):
    """``out[s] = bias + Σ_j units[s, j] weights[:, j]`` of units that are 0 or 1.

    Parameters
    ----------
    units : (B, m) ndarray
        Zeros and ones; anything else counts as 1.
    weights : (n, m) ndarray
        C order, one row for each unit that is sought.
    bias : (n,) ndarray
    out : (B, n) ndarray
        Overwritten.
    """
    samples, width = out.shape
    given, line = units.shape[1], LINE_BYTES // out.itemsize
    words = (given + UNITS - 1) // UNITS
    active = np.empty(words * samples, np.uint64)
    states, rows, made = units.reshape(-1), weights.reshape(-1), out.reshape(-1)
    for word in range(words):
        for s in range(samples):
            first = word * UNITS
            active[word * samples + s] = nonzero_units(states, s * given + first, min(UNITS, given - first))
    memory = np.empty((UNITS // GROUP * SUMS + UNITS + LINES * samples + 1) * line, out.dtype)
    # Where the first whole line of the cache begins.
    begin = -(memory.ctypes.data // out.itemsize) % line
    table = memory[begin : begin + UNITS // GROUP * SUMS * line]
    turned = memory[begin + table.size : begin + table.size + UNITS * line]
    sums = memory[begin + table.size + turned.size :]
    column = 0
    while column + line <= width:
        lines = min(LINES, (width - column) // line)
        for k in range(lines):
            start = load_line(bias, column + k * line)
            for s in range(samples):
                store(sums, (k * samples + s) * line, start)
            for word in range(words):
                first, count = word * UNITS, min(UNITS, given - word * UNITS)
                turn_rows(rows, (column + k * line) * given + first, given, count, turned)
                tabulate(turned, count, table)
                groups = (count + GROUP - 1) // GROUP
                add_sums(active, word * samples, samples, groups, table, sums, k * samples * line)
        for s in range(samples):
            for k in range(lines):
                store(made, s * width + column + k * line, load_line(sums, (k * samples + s) * line))
        column += lines * line
    if column < width:
        last_columns(states, given, rows, bias, made, column, width, samples)


@kernel(fastmath=False)
def turn_rows(rows, at, given, count, turned):
    """Transpose ``count`` columns of as many rows as a line has numbers."""
    line = LINE_BYTES // turned.itemsize
    whole = count - count % 8
    for j in range(0, whole, 8):
        for i in range(0, line, 8):
            turn_eight(rows, at + i * given + j, given, turned, j * line + i, line)
    for j in range(whole, count):
        for i in range(line):
            turned[j * line + i] = rows[at + i * given + j]


@kernel(fastmath=False)
def tabulate(turned, count, table):
    """All sums of each group of four lines."""
    line = LINE_BYTES // table.itemsize
    for group in range((count + GROUP - 1) // GROUP):
        base = group * SUMS * line
        store(table, base, splat_line(table.dtype.type(0.0)))
        for member in range(min(GROUP, count - group * GROUP)):
            row, half = load_line(turned, (group * GROUP + member) * line), 1 << member
            for known in range(half):
                store(table, base + (half + known) * line, add(load_line(table, base + known * line), row))


@kernel(fastmath=False)
def add_sums(active, word, samples, groups, table, sums, begin):
    """Add to each sample's line of sums those of its active units."""
    line, s = LINE_BYTES // sums.itemsize, 0
    while s + SAMPLES <= samples:
        at = begin + s * line
        w0, w1, w2, w3 = active[word + s], active[word + s + 1], active[word + s + 2], active[word + s + 3]
        a0, a1 = load_line(sums, at), load_line(sums, at + line)
        a2, a3 = load_line(sums, at + 2 * line), load_line(sums, at + 3 * line)
        for group in range(groups):
            base = group * SUMS
            a0 = add(a0, load_line(table, place(w0, base, line)))
            a1 = add(a1, load_line(table, place(w1, base, line)))
            a2 = add(a2, load_line(table, place(w2, base, line)))
            a3 = add(a3, load_line(table, place(w3, base, line)))
            w0, w1 = w0 >> np.uint64(GROUP), w1 >> np.uint64(GROUP)
            w2, w3 = w2 >> np.uint64(GROUP), w3 >> np.uint64(GROUP)
        store(sums, at, a0)
        store(sums, at + line, a1)
        store(sums, at + 2 * line, a2)
        store(sums, at + 3 * line, a3)
        s += SAMPLES
    while s < samples:
        left, total = active[word + s], load_line(sums, begin + s * line)
        for group in range(groups):
            total = add(total, load_line(table, place(left, group * SUMS, line)))
            left = left >> np.uint64(GROUP)
        store(sums, begin + s * line, total)
        s += 1


@jit(inline="always", _nrt=False, fastmath=False)
def place(word, base, line):
    """Where the sum of the active units of a group, the lowest bits of a word, stands in the table."""
    return (base + np.int64(word & np.uint64(SUMS - 1))) * line


@kernel(fastmath=False)
def last_columns(states, given, rows, bias, made, column, width, samples):
    """The columns from ``column`` on, less than a line."""
    zero = made.dtype.type(0.0)
    for s in range(samples):
        for i in range(column, width):
            total = bias[i]
            for group in range(0, given, GROUP):
                part = zero
                for j in range(group, min(given, group + GROUP)):
                    if states[s * given + j] != zero:
                        part += rows[i * given + j]
                total += part
            made[s * width + i] = total
