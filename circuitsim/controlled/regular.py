"""Whether every block has a P-matrix, hence one operating point for any sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from circuitsim.controlled.blocks import Inverse, p_matrix
from circuitsim.controlled.equations import Equations, RawBlock
from circuitsim.controlled.linear import Terms, factored, scaled
from circuitsim.controlled.matrices import EPS, in_watts
from circuitsim.controlled.rational import LARGEST as BLOCK
from circuitsim.controlled.rational import RationalBlock, Read, binary, decimal

PASSIVE = 1e-10
"""Power from all ports, relative to that of the loads ρ, that may be rounding."""

DECIDED = 50
"""Maximum number of blocks decided in rational arithmetic."""

POOR = 1e-3
"""Condition number times unit roundoff above which a large block without diodes counts as singular."""


def all_regular(
    eq: Equations,
    terms: Terms,
    exact: Callable[[int, Read], RationalBlock],
    blocks: Sequence[RawBlock],
    inverse: Mapping[int, Inverse],
    curves: np.ndarray | None = None,
) -> bool:
    """Whether every block is proven regular, and its ports to have a P-matrix or to satisfy
    `RationalBlock.one_of_curves`.

    Parameters
    ----------
    terms : Terms
        Of the matrix with all ports loaded.
    exact : callable
        A block, by its number, in rational arithmetic.
    inverse : mapping
        Of blocks, by their numbers.
    curves : (d,) int array, optional
        Curves of the diodes (`circuitsim.controlled.rational.IDEAL` …), for `RationalBlock.one_of_curves`.
    """
    large = [b for b in range(len(blocks)) if b not in inverse]
    if any(blocks[b].diodes.size for b in large):
        return False
    left = [
        b
        for b, own in inverse.items()
        if not (own.proven and (not blocks[b].diodes.size or p_matrix(own.matrices, eq.load[blocks[b].diodes])))
    ]
    if len(left) > DECIDED or any(
        blocks[b].rows.size > BLOCK or (curves is None and blocks[b].diodes.size) for b in left
    ):
        return False
    kinds = [[] if curves is None else curves[blocks[b].diodes].tolist() for b in left]
    return all(_decided(partial(exact, b), own) for b, own in zip(left, kinds)) and all(
        _well_conditioned(terms, blocks[b]) for b in large
    )


def _decided(exact: Callable[[Read], RationalBlock], curves: list[int]) -> bool:
    """Whether exact arithmetic proves a block to have one operating point."""
    try:
        return all(exact(read).one_of_curves(curves) for read in (binary, decimal))
    except ArithmeticError:
        return False


def _well_conditioned(terms: Terms, block: RawBlock) -> bool:
    """Whether the estimated condition number (Higham & Tisseur 2000) of a large block is far from singular."""
    from scipy.sparse.linalg import LinearOperator, onenormest

    matrix, _, _ = scaled(terms.matrix()[block.rows][:, block.columns])
    try:
        lu = factored(matrix)
    except ArithmeticError:
        return False
    inverse = LinearOperator(matrix.shape, matvec=lu.solve, rmatvec=lambda x: lu.solve(x, trans="T"))
    condition = onenormest(inverse) * abs(matrix).sum(axis=0).max()
    return bool(condition * EPS < POOR)


def all_monotone(eq: Equations, blocks: Sequence[RawBlock], inverse: Mapping[int, Inverse]) -> bool:
    """Whether the rest of every block draws no power from its diodes, except for rounding: two operating points then
    differ in nothing that dissipates, and all between them are operating points too."""
    own = [b for b, block in enumerate(blocks) if block.diodes.size]
    return all(b in inverse and _passive(inverse[b], eq.load[blocks[b].diodes]) for b in own)


def _passive(inverse: Inverse, load: np.ndarray) -> bool:
    p, q, _, _ = inverse.matrices
    power = in_watts(p, load).T @ in_watts(q, load)
    return bool(np.linalg.eigvalsh(0.5 * (power + power.T)).max() <= PASSIVE)
