"""Small blocks as dense systems: inverses of many at once, and what the ports of their diodes do.

A chain of a thousand stages is a thousand small blocks; those of one size are inverted together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.controlled.blocks import RawBlock
from circuitsim.controlled.equations import Equations
from circuitsim.controlled.linear import Terms

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
    inverse = _inverses(terms, where, sizes, inverse_at, int(squares.sum()))
    if inverse is None:
        return None
    diode = np.concatenate([block.diodes for block in blocks]).astype(np.int64)
    matrices_at = np.cumsum(counts**2) - counts**2
    p, q = _responses(eq, where, sizes, inverse_at, inverse, diode, np.repeat(np.arange(sizes.size), counts), counts)
    ends = np.concatenate([[0], np.cumsum(counts)])
    return DenseBlocks(
        where[0], where[1], where[2], where[3], sizes, inverse_at, inverse, diode, ends, matrices_at, p, q
    )


def _inverses(
    terms: Terms, where: np.ndarray, sizes: np.ndarray, inverse_at: np.ndarray, entries: int
) -> np.ndarray | None:
    """Inverses, row by row; None where one is singular."""
    block = where[0][terms.row]
    inside = (block == where[2][terms.column]) & (inverse_at[block] >= 0)
    block, row, column, value = (
        block[inside],
        where[1][terms.row[inside]],
        where[3][terms.column[inside]],
        terms.value[inside],
    )
    dense = np.zeros(entries)
    np.add.at(dense, inverse_at[block] + row * sizes[block] + column, value)
    for size in np.unique(sizes[inverse_at >= 0]).tolist():
        begin = inverse_at[(inverse_at >= 0) & (sizes == size)]
        spots = begin[:, None] + np.arange(size * size)
        group = dense[spots].reshape(-1, size, size)
        left = np.abs(group).max(axis=2, keepdims=True)
        if not ((left > 0.0) & (left < np.inf)).all():
            return None
        group /= left
        right = np.abs(group).max(axis=1, keepdims=True)
        if not (right > 0.0).all():
            return None
        group /= right
        try:
            found = np.linalg.inv(group)
        except np.linalg.LinAlgError:
            return None
        if not np.abs(found).max() * size < 1e15:
            return None
        found = found / right.transpose(0, 2, 1) / left.transpose(0, 2, 1)
        dense[spots] = found.reshape(begin.size, -1)
    return dense


def _responses(
    eq: Equations,
    where: np.ndarray,
    sizes: np.ndarray,
    inverse_at: np.ndarray,
    inverse: np.ndarray,
    diode: np.ndarray,
    owner: np.ndarray,
    counts: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """P and Q of all blocks, row by row."""
    each = counts[owner]
    first = np.repeat(np.arange(diode.size), each)  # whose voltage and current
    begins = np.cumsum(counts) - counts
    second = np.arange(first.size) - np.repeat(np.cumsum(each) - each, each) + begins[owner[first]]  # whose z
    block = owner[first]
    row = where[1][eq.own[eq.diode[diode[second]]]]

    def response(unknown: np.ndarray) -> np.ndarray:
        inside = (unknown >= 0) & (where[2][unknown] == block)
        at = inverse_at[block] + where[3][unknown] * sizes[block] + row
        return np.where(inside, inverse[np.where(inside, at, 0)], 0.0)

    chosen = diode[first]
    if not chosen.size:
        return np.zeros(0), np.zeros(0)
    p = response(eq.plus[chosen]) - response(eq.minus[chosen])
    return p, eq.load[chosen] * response(eq.own[eq.diode[chosen]])


__all__ = ["DenseBlocks", "dense_blocks"]
