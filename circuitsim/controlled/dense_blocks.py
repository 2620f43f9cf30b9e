"""Small blocks as dense systems: inverses of many at once, and what the ports of their diodes do.

A chain of a thousand stages is a thousand small blocks; those of one size are inverted together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.controlled.equations import Equations, RawBlock
from circuitsim.controlled.linear import Terms
from circuitsim.controlled.matrices import EPS, inverted

LARGEST = 300
"""Most unknowns of a block that is inverted here."""

ENTRIES = 4_000_000
"""Most entries of all inverses."""


class DenseBlocks(NamedTuple):
    """Blocks with inverses, all ports loaded.

    Attributes
    ----------
    block_of_row, place_of_row, block_of_column, place_of_column : (size,) int arrays
        Where each equation and each unknown stands.
    sizes : (b,) int array
        Unknowns of each block.
    inverse_at : (b,) int array
        Where the inverse of a block begins in ``inverse``, row by row; −1 where it has none.
    inverse : float array
    diode : (d,) int array
        Diodes in the order of the blocks, by their places in ``Equations.diode``.
    diode_ends : (b + 1,) int array
        Where the diodes of each block begin, and the last ones end.
    matrices_at : (b,) int array
        Where P and Q of a block begin in ``p`` and ``q``, row by row.
    p, q : float arrays
        Responses of the ports' voltages, and currents times ρ, to z (`circuitsim.controlled.ports`).
    dp, dq : float arrays
        By what these may be off, the rounding of all element values included.
    proven : (b,) bool array
        Which blocks are proven to be regular.
    """

    block_of_row: np.ndarray
    place_of_row: np.ndarray
    block_of_column: np.ndarray
    place_of_column: np.ndarray
    sizes: np.ndarray
    inverse_at: np.ndarray
    inverse: np.ndarray
    diode: np.ndarray
    diode_ends: np.ndarray
    matrices_at: np.ndarray
    p: np.ndarray
    q: np.ndarray
    dp: np.ndarray
    dq: np.ndarray
    proven: np.ndarray


def dense_blocks(eq: Equations, terms: Terms, blocks: Sequence[RawBlock], every: bool) -> DenseBlocks | None:
    """The blocks with diodes, or with ``every`` all blocks, as dense systems.

    None where one of them is singular or has more than `LARGEST` unknowns, or all together more than `ENTRIES` entries.

    Parameters
    ----------
    terms : Terms
        Of the matrix with all ports loaded.
    """
    sizes = np.array([block.rows.size for block in blocks], dtype=np.int64)
    counts = np.array([block.diodes.size for block in blocks], dtype=np.int64)
    wanted = np.ones(sizes.size, dtype=bool) if every else counts > 0
    if (sizes[wanted] > LARGEST).any() or (sizes[wanted] ** 2).sum() > ENTRIES:
        return None
    number = np.repeat(np.arange(sizes.size), sizes)
    place = np.arange(eq.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    where = np.zeros((4, eq.size), dtype=np.int64)
    rows, columns = np.concatenate([b.rows for b in blocks]), np.concatenate([b.columns for b in blocks])
    where[0, rows], where[1, rows], where[2, columns], where[3, columns] = number, place, number, place
    squares = np.where(wanted, sizes**2, 0)
    inverse_at = np.where(wanted, np.cumsum(squares) - squares, -1)
    found = _inverses(terms, where, sizes, inverse_at, int(squares.sum()))
    if found is None:
        return None
    inverse, error, proven = found
    diode = np.concatenate([block.diodes for block in blocks]).astype(np.int64)
    matrices_at = np.cumsum(counts**2) - counts**2
    owner = np.repeat(np.arange(sizes.size), counts)
    p, q, dp, dq = _responses(eq, where, sizes, inverse_at, (inverse, error), diode, owner, counts)
    ends = np.concatenate([[0], np.cumsum(counts)])
    return DenseBlocks(
        where[0],
        where[1],
        where[2],
        where[3],
        sizes,
        inverse_at,
        inverse,
        diode,
        ends,
        matrices_at,
        p,
        q,
        dp,
        dq,
        proven,
    )


def _inverses(
    terms: Terms, where: np.ndarray, sizes: np.ndarray, inverse_at: np.ndarray, entries: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Inverses and their errors, row by row, and which blocks are proven to be regular; None where one is singular."""
    block = where[0][terms.row]
    inside = (block == where[2][terms.column]) & (inverse_at[block] >= 0)
    block, value = block[inside], terms.value[inside]
    at = inverse_at[block] + where[1][terms.row[inside]] * sizes[block] + where[3][terms.column[inside]]
    dense, size, count = (np.bincount(at, part, entries) for part in (value, np.abs(value), np.ones(at.size)))
    # Terms are quotients of products of values, each rounded, and then summed up.
    error, proven = (count + 4) * EPS * size, np.zeros(sizes.size, dtype=bool)
    for width in np.unique(sizes[inverse_at >= 0]).tolist():
        members = np.flatnonzero((inverse_at >= 0) & (sizes == width))
        spots = inverse_at[members, None] + np.arange(width * width)
        shape = members.size, width, width
        found, off = inverted(dense[spots].reshape(shape), error[spots].reshape(shape))
        if not np.isfinite(found).all() or not found.any(axis=(1, 2)).all():
            return None
        dense[spots], error[spots] = found.reshape(members.size, -1), off.reshape(members.size, -1)
        proven[members] = np.isfinite(off).all(axis=(1, 2))
    return dense, error, proven


def _responses(
    eq: Equations,
    where: np.ndarray,
    sizes: np.ndarray,
    inverse_at: np.ndarray,
    inverse: tuple[np.ndarray, np.ndarray],
    diode: np.ndarray,
    owner: np.ndarray,
    counts: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """P and Q of all blocks, row by row, and by what they may be off, from inverses and their errors."""
    each = counts[owner]
    first = np.repeat(np.arange(diode.size), each)  # whose voltage and current
    begins = np.cumsum(counts) - counts
    second = np.arange(first.size) - np.repeat(np.cumsum(each) - each, each) + begins[owner[first]]  # whose z
    block = owner[first]
    row = where[1][eq.own[eq.diode[diode[second]]]]

    def response(entries: np.ndarray, unknown: np.ndarray) -> np.ndarray:
        inside = (unknown >= 0) & (where[2][unknown] == block)
        at = inverse_at[block] + where[3][unknown] * sizes[block] + row
        return np.where(inside, entries[np.where(inside, at, 0)], 0.0)

    chosen = diode[first]
    if not chosen.size:
        return (np.zeros(0),) * 4
    ends = eq.plus[chosen], eq.minus[chosen], eq.own[eq.diode[chosen]]
    (plus, minus, own), (d_plus, d_minus, d_own) = ([response(part, end) for end in ends] for part in inverse)
    p, q, load = plus - minus, eq.load[chosen] * own, eq.load[chosen]
    return p, q, d_plus + d_minus + EPS * np.abs(p), load * d_own + EPS * np.abs(q)


__all__ = ["DenseBlocks", "dense_blocks"]
