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


def all_regular(
    eq: Equations, terms: Terms, blocks: Sequence[RawBlock], dense: DenseBlocks | None,
    strict: np.ndarray | None = None,
) -> bool:  # fmt: skip
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
    return not failed or (
        strict is not None and all(strictly_one(eq, terms, blocks[b], strict) for b in failed)
    )


def _p_matrix(eq: Equations, dense: DenseBlocks, b: int) -> bool:
    """Whether block ``b`` has one."""
    load = eq.load[dense.diode[dense.diode_ends[b] : dense.diode_ends[b + 1]]]
    count, at = int(dense.diode_ends[b + 1] - dense.diode_ends[b]), int(dense.matrices_at[b])
    p, q = (m[at : at + count * count].reshape(count, count) for m in (dense.p, dense.q))
    zero = np.zeros(count)
    return is_p_matrix(in_watts(hybrid(Ports(zero, zero, p, q, zero, zero)).matrix, load))
