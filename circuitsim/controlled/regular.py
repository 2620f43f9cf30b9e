"""Whether every block has a P-matrix: then there is one operating point, whatever the sources are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from circuitsim.controlled.blocks import RawBlock
from circuitsim.controlled.dense_blocks import DenseBlocks
from circuitsim.controlled.equations import Equations
from circuitsim.controlled.linear import Terms
from circuitsim.controlled.matrices import MARGIN, in_watts, is_p_matrix
from circuitsim.controlled.ports import Ports, hybrid
from circuitsim.controlled.strict import strictly_one

PASSIVE = 1e-10
"""Power, of what loads of ρ get from all ports, that rounding can make."""


def all_regular(
    eq: Equations,
    terms: Terms,
    blocks: Sequence[RawBlock],
    dense: DenseBlocks | None,
    strict: np.ndarray | None = None,
) -> bool:
    """Whether the ports of every block are proven to have a P-matrix, or to be a pair as in `strictly_one`.

    Parameters
    ----------
    terms : Terms
        Of the matrix with all ports loaded.
    dense : DenseBlocks or None
        At least those with diodes.
    strict : (d,) bool array, optional
        Which diodes stand for devices whose curves rise strictly; none if it is left out.
    """
    if dense is None:
        return False
    single = np.diff(dense.diode_ends) == 1
    p = dense.p[dense.matrices_at[single]]
    failed = np.flatnonzero(single)[~((p > MARGIN) & (p < 1.0 - MARGIN))].tolist()
    failed += [b for b in np.flatnonzero(np.diff(dense.diode_ends) > 1).tolist() if not _p_matrix(eq, dense, b)]
    return not failed or (strict is not None and all(strictly_one(eq, terms, blocks[b], strict) for b in failed))


def all_monotone(eq: Equations, dense: DenseBlocks | None) -> bool:
    """Whether the rest of every block takes no power from its diodes, but for rounding: two operating points differ in
    nothing that dissipates, and all between them are operating points too."""
    if dense is None:
        return False
    return all(_passive(eq, dense, b) for b in np.flatnonzero(np.diff(dense.diode_ends)).tolist())


def _passive(eq: Equations, dense: DenseBlocks, b: int) -> bool:
    load, p, q = _ports(eq, dense, b)
    power = in_watts(p, load).T @ in_watts(q, load)
    return bool(np.linalg.eigvalsh(0.5 * (power + power.T)).max() <= PASSIVE)


def _p_matrix(eq: Equations, dense: DenseBlocks, b: int) -> bool:
    """Whether block ``b`` has one."""
    load, p, q = _ports(eq, dense, b)
    zero = np.zeros(load.size)
    return is_p_matrix(in_watts(hybrid(Ports(zero, zero, p, q, zero, zero)).matrix, load))


def _ports(eq: Equations, dense: DenseBlocks, b: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Resistances ρ, P and Q of block ``b``."""
    load = eq.load[dense.diode[dense.diode_ends[b] : dense.diode_ends[b + 1]]]
    count, at = load.size, int(dense.matrices_at[b])
    p, q = (m[at : at + count * count].reshape(count, count) for m in (dense.p, dense.q))
    return load, p, q
