"""Whether every block has a P-matrix: then there is one operating point, whatever the sources are.

Many equal-sized blocks are inverted at once: a chain of a thousand stages is a thousand small blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from circuitsim.controlled.blocks import RawBlock
from circuitsim.controlled.equations import Equations
from circuitsim.controlled.linear import Terms
from circuitsim.controlled.matrices import MARGIN, is_p_matrix
from circuitsim.controlled.ports import Ports, hybrid
from circuitsim.controlled.strict import strictly_one

LARGEST = 300
"""Most unknowns of a block that is inverted here."""


def all_regular(
    eq: Equations, terms: Terms, blocks: Sequence[RawBlock], strict: np.ndarray | None = None
) -> bool:
    """Whether the ports of every block are proven to have a P-matrix, or to be a pair as in `strictly_one`.

    Parameters
    ----------
    terms : Terms
        Of the matrix with all ports loaded.
    strict : (d,) bool array, optional
        Which diodes stand for devices whose curves rise strictly; none if it is left out.
    """
    groups: dict[int, list[RawBlock]] = {}
    for block in blocks:
        if block.diodes.size:
            groups.setdefault(block.rows.size, []).append(block)
    if any(size > LARGEST for size in groups):
        return False
    local = np.full(eq.size, -1, dtype=np.int64)
    owner_row, owner_column = np.full(eq.size, -1), np.full(eq.size, -2)
    return all(_group(eq, terms, group, local, owner_row, owner_column, strict) for group in groups.values())


def _group(
    eq: Equations, terms: Terms, group: list[RawBlock], local: np.ndarray, owner_row: np.ndarray,
    owner_column: np.ndarray, strict: np.ndarray | None,
) -> bool:  # fmt: skip
    """`all_regular` for blocks of one size."""
    size, count = group[0].rows.size, len(group)
    rows, columns = np.stack([b.rows for b in group]), np.stack([b.columns for b in group])
    owner_row[:], owner_column[:] = -1, -2
    owner_row[rows], owner_column[columns] = np.arange(count)[:, None], np.arange(count)[:, None]
    place = np.empty(eq.size, dtype=np.int64)
    place[rows] = np.arange(size)
    local[:] = -1
    local[columns] = np.arange(size)
    inside = owner_row[terms.row] == owner_column[terms.column]
    block, row, column = owner_row[terms.row[inside]], place[terms.row[inside]], local[terms.column[inside]]
    dense = np.zeros((count, size, size))
    np.add.at(dense, (block, row, column), terms.value[inside])
    left = 1.0 / np.abs(dense).max(axis=2, keepdims=True)
    dense *= left
    right = 1.0 / np.abs(dense).max(axis=1, keepdims=True)
    dense *= right
    try:
        inverse = np.linalg.inv(dense)
    except np.linalg.LinAlgError:
        return False
    if not np.abs(inverse).max() * size < 1e15:
        return False
    inverse = inverse * right.transpose(0, 2, 1) * left.transpose(0, 2, 1)
    return all(
        _one(eq, b, inverse[k], place, local, owner_column, k)
        or (strict is not None and strictly_one(eq, terms, b, strict))
        for k, b in enumerate(group)
    )


def _one(
    eq: Equations, block: RawBlock, inverse: np.ndarray, place: np.ndarray, local: np.ndarray, owner: np.ndarray, k: int
) -> bool:
    """Whether one block has a P-matrix, from the inverse of its matrix."""
    diodes = block.diodes
    own = eq.own[eq.diode[diodes]]
    response = np.vstack([inverse[:, place[own]], np.zeros((1, diodes.size))])

    def at(unknowns: np.ndarray) -> np.ndarray:
        known = (unknowns >= 0) & (owner[unknowns] == k)
        return response[np.where(known, local[unknowns], -1)]

    p = at(eq.plus[diodes]) - at(eq.minus[diodes])
    if diodes.size == 1:
        return bool(MARGIN < p[0, 0] < 1.0 - MARGIN)
    q = eq.load[diodes][:, None] * at(own)
    zero = np.zeros(diodes.size)
    return is_p_matrix(hybrid(Ports(zero, zero, p, q, zero, zero)).matrix)
