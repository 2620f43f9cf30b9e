"""Whether every block has a P-matrix: then there is one operating point, whatever the sources are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from circuitsim.controlled.dense_blocks import DenseBlocks
from circuitsim.controlled.equations import Equations, RawBlock
from circuitsim.controlled.linear import Terms
from circuitsim.controlled.matrices import EPS, in_watts, is_p_matrix
from circuitsim.controlled.ports import base_of, matrix_of
from circuitsim.controlled.rational import LARGEST, RationalBlock, Read, binary, decimal

PASSIVE = 1e-10
"""Power, of what loads of ρ get from all ports, that rounding can make."""

DECIDED = 50
"""Most blocks that are decided in rational arithmetic."""

POOR = 1e-3
"""Condition, times rounding, above which a large block without diodes is taken for singular."""


def all_regular(
    eq: Equations,
    terms: Terms,
    exact: Callable[[int, Read], RationalBlock],
    blocks: Sequence[RawBlock],
    dense: DenseBlocks | None,
    curves: np.ndarray | None = None,
) -> bool:
    """Whether every block is proven to be regular, and its ports to have a P-matrix, or to be a pair of matrices as in
    `RationalBlock.one_of_curves`.

    Parameters
    ----------
    terms : Terms
        Of the matrix with all ports loaded.
    exact : callable
        A block, by its number, in rational arithmetic.
    dense : DenseBlocks or None
        At least those with diodes.
    curves : (d,) int array, optional
        What the diodes stand for (`circuitsim.controlled.rational.IDEAL` …); ideal ones if it is left out.
    """
    if dense is None:
        return False
    proven, counts = dense.proven.copy(), np.diff(dense.diode_ends)
    single = np.flatnonzero(counts == 1)
    at = dense.matrices_at[single]
    proven[single] &= (dense.p[at] > dense.dp[at]) & (dense.q[at] < -dense.dq[at])
    for b in np.flatnonzero(proven & (counts > 1)).tolist():
        proven[b] = _p_matrix(eq, dense, b)
    left = np.flatnonzero(~proven).tolist()
    large = [b for b in left if dense.inverse_at[b] < 0]
    left = [b for b in left if dense.inverse_at[b] >= 0]
    if len(left) > DECIDED or any(blocks[b].rows.size > LARGEST for b in left):
        return False
    own = [None if curves is None else curves[blocks[b].diodes].tolist() for b in left]
    return all(_decided(partial(exact, b), _base(dense, b), kinds) for b, kinds in zip(left, own)) and all(
        _well_conditioned(terms, blocks[b]) for b in large
    )


def _base(dense: DenseBlocks, b: int) -> np.ndarray:
    return base_of(_square(dense, dense.p, b))


def _decided(exact: Callable[[Read], RationalBlock], base: np.ndarray, curves: list[int] | None) -> bool:
    """Whether exact arithmetic proves a block to have one operating point."""
    try:
        every = [exact(read) for read in (binary, decimal)]
    except ArithmeticError:
        return False
    return all(one.p_matrix(base) or (curves is not None and one.one_of_curves(curves)) for one in every)


def _well_conditioned(terms: Terms, block: RawBlock) -> bool:
    """Whether an estimate (Higham & Tisseur 2000) of the condition of a large block is far from that of a singular
    one."""
    from scipy.sparse import csc_matrix, diags
    from scipy.sparse.linalg import LinearOperator, onenormest, splu

    from circuitsim.controlled.linear import scales

    matrix = terms.matrix()[block.rows][:, block.columns].tocsr()
    left, right = scales(matrix)
    scaled = csc_matrix(diags(left) @ matrix @ diags(right))
    try:
        lu = splu(scaled)
    except RuntimeError:
        return False
    inverse = LinearOperator(scaled.shape, matvec=lu.solve, rmatvec=lambda x: lu.solve(x, trans="T"))
    condition = onenormest(inverse) * abs(scaled).sum(axis=0).max()
    return bool(condition * EPS < POOR)


def all_monotone(eq: Equations, dense: DenseBlocks | None) -> bool:
    """Whether the rest of every block takes no power from its diodes, but for rounding: two operating points differ in
    nothing that dissipates, and all between them are operating points too."""
    if dense is None:
        return False
    return all(_passive(eq, dense, b) for b in np.flatnonzero(np.diff(dense.diode_ends)).tolist())


def _passive(eq: Equations, dense: DenseBlocks, b: int) -> bool:
    load, p, q = _loads(eq, dense, b), _square(dense, dense.p, b), _square(dense, dense.q, b)
    power = in_watts(p, load).T @ in_watts(q, load)
    return bool(np.linalg.eigvalsh(0.5 * (power + power.T)).max() <= PASSIVE)


def _p_matrix(eq: Equations, dense: DenseBlocks, b: int) -> bool:
    """Whether block ``b`` is proven to have one."""
    p, q, dp, dq = (_square(dense, part, b) for part in (dense.p, dense.q, dense.dp, dense.dq))
    load = _loads(eq, dense, b)
    m, dm = matrix_of(base_of(p), p, q, dp, dq)
    return is_p_matrix(in_watts(m, load), in_watts(dm, load) + 4 * EPS * np.abs(in_watts(m, load)))


def _loads(eq: Equations, dense: DenseBlocks, b: int) -> np.ndarray:
    """Resistances ρ of block ``b``, Ω."""
    return np.asarray(eq.load[dense.diode[dense.diode_ends[b] : dense.diode_ends[b + 1]]])


def _square(dense: DenseBlocks, part: np.ndarray, b: int) -> np.ndarray:
    """P or Q of block ``b``, or by what one may be off."""
    count, at = int(dense.diode_ends[b + 1] - dense.diode_ends[b]), int(dense.matrices_at[b])
    return part[at : at + count * count].reshape(count, count)
