"""A circuit of small blocks, each with one operating point whatever its sources are, ready for the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.controlled.corrections import SPLIT
from circuitsim.controlled.dense_blocks import DenseBlocks
from circuitsim.controlled.equations import Equations, RawBlock
from circuitsim.controlled.kernels import controlled_kernel
from circuitsim.controlled.linear import Pair, Terms

MOST = 100
"""Most diodes of a block."""


class BlockPlan(NamedTuple):
    """Equations and unknowns in the order of the blocks: equation k is matched with unknown k.

    Attributes
    ----------
    block_ends : (b + 1,) int array
        Where each block begins, and the last one ends.
    rows, columns : (size,) int arrays
        The equation and the unknown of the circuit that stand at each place.
    ends, column, value : arrays
        The terms of the equations, all ports loaded; columns are places.
    value_high : float array
        Leading halves of the values (Dekker's splitting).
    inverse_at, inverse : arrays
        As in `DenseBlocks`.
    diode_of : (size,) int array
        The diode whose equation stands at a place, or −1; diodes are in the order of the blocks.
    diode_ends : (b + 1,) int array
    diode : (d,) int array
        Places of the diodes in ``Equations.diode``.
    row_of, plus, minus, own : (d,) int arrays
        Places of a diode's equation, of the potentials of its ends (−1: ground), of its current.
    load : (d,) float array
        The resistances ρ, Ω.
    matrices_at, p, q : arrays
        As in `DenseBlocks`.
    """

    block_ends: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    ends: np.ndarray
    column: np.ndarray
    value: np.ndarray
    value_high: np.ndarray
    inverse_at: np.ndarray
    inverse: np.ndarray
    diode_of: np.ndarray
    diode_ends: np.ndarray
    diode: np.ndarray
    row_of: np.ndarray
    plus: np.ndarray
    minus: np.ndarray
    own: np.ndarray
    load: np.ndarray
    matrices_at: np.ndarray
    p: np.ndarray
    q: np.ndarray


def block_plan(eq: Equations, terms: Terms, blocks: Sequence[RawBlock], dense: DenseBlocks) -> BlockPlan | None:
    """The plan, or None where a block has more than `MOST` diodes.

    Parameters
    ----------
    terms : Terms
        Of the matrix with all ports loaded.
    blocks : sequence of RawBlock
        Each behind those that it depends on.
    dense : DenseBlocks
        Of all blocks.
    """
    if (np.diff(dense.diode_ends) > MOST).any():
        return None
    rows, columns = np.concatenate([b.rows for b in blocks]), np.concatenate([b.columns for b in blocks])
    place_of_row, place_of_column = np.empty(eq.size, dtype=np.int64), np.full(eq.size + 1, -1, dtype=np.int64)
    place_of_row[rows], place_of_column[columns] = np.arange(eq.size), np.arange(eq.size)
    order = np.argsort(place_of_row[terms.row], kind="stable")
    value = terms.value[order]
    split = SPLIT * value
    high = np.where(np.isfinite(split), split - (split - value), value)
    chosen = dense.diode
    row_of = place_of_row[eq.own[eq.diode[chosen]]]
    diode_of = np.full(eq.size, -1, dtype=np.int64)
    diode_of[row_of] = np.arange(chosen.size)
    ends = np.searchsorted(place_of_row[terms.row][order], np.arange(eq.size + 1))
    # The last place of ``place_of_column`` is ground, −1.
    return BlockPlan(
        np.concatenate([[0], np.cumsum(dense.sizes)]),
        rows,
        columns,
        ends,
        place_of_column[terms.column[order]],
        value,
        high,
        dense.inverse_at,
        dense.inverse,
        diode_of,
        dense.diode_ends,
        chosen,
        row_of,
        place_of_column[eq.plus[chosen]],
        place_of_column[eq.minus[chosen]],
        place_of_column[eq.own[eq.diode[chosen]]],
        eq.load[chosen],
        dense.matrices_at,
        dense.p,
        dense.q,
    )


def swept(plan: BlockPlan, right: np.ndarray, guess: np.ndarray | None, fine: float) -> tuple[Pair, np.ndarray] | None:
    """Refined unknowns and conducting diodes, in the order of the equations; None where that did not succeed.

    Parameters
    ----------
    right : (size,) float array
    guess : (d,) bool array or None
        States to begin with.
    fine : float
        Share of every unknown that refinement ends with.
    """
    size, count = right.size, plan.diode.size
    high, low, work = np.empty(size), np.empty(size), np.empty((3, size))
    lead = np.empty(size, dtype=np.int64)
    conducting = np.empty(count, dtype=bool)
    begin = np.zeros(count, dtype=bool) if guess is None else guess[plan.diode]
    most = int(np.diff(plan.diode_ends).max(initial=1))
    ports = np.zeros((most + 4, most + 1))
    if not controlled_kernel("solve_blocks", size)(
        plan, right[plan.rows], begin, fine, high, low, conducting, lead, work, ports
    ):
        return None
    whole, rest, states = np.empty(size), np.empty(size), np.empty(count, dtype=bool)
    whole[plan.columns], rest[plan.columns], states[plan.diode] = high, low, conducting
    return Pair(whole, rest), states


__all__ = ["BlockPlan", "block_plan", "swept"]
