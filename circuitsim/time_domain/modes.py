"""The linear system at one set of conducting diodes: states, and all branch voltages and currents as functions of them.

A normal tree (Bryant 1959) takes sources and conducting diodes first, then capacitors, resistors, inductors, blocking
diodes and current sources. The states are the capacitors in the tree and the inductors outside it; capacitors in loops
with sources and inductors in cuts with sources follow from these and from the sources' derivatives. The cut-set matrix
is an integer matrix, so ranks are exact; with ideally coupled windings it also contains turns ratios.

Of windings that store energy only jointly, some are inductors of the current i + Σ T i_w, where i_w are the currents of
the others (role `WINDING`) and T their turns relative to the inductor: v_w = Tᵀ v. A winding is neither a branch of the
tree nor a link. Its equation removes one branch from the tree: the last one it involves, because an ideal transformer
keeps v and i orthogonal and the trees of such a circuit are the bases of a matroid (Bryant 1959; Recski 1989), whose
greedy base in the order of the roles is normal.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from circuitsim.kernels import PRODUCT, kernel
from circuitsim.time_domain import mode_kernels, mode_rows
from circuitsim.time_domain.mode_kernels import Mode, Parts, Wiring
from circuitsim.time_domain.mode_rows import Supply


class Role(IntEnum):
    """Roles of the elements, in the order in which the tree takes them."""

    VOLTAGE = mode_kernels.VOLTAGE
    CONDUCTING = mode_kernels.CONDUCTING
    CAPACITOR = mode_kernels.CAPACITOR
    RESISTOR = mode_kernels.RESISTOR
    INDUCTOR = mode_kernels.INDUCTOR
    BLOCKING = mode_kernels.BLOCKING
    CURRENT = mode_kernels.CURRENT
    WINDING = mode_kernels.WINDING


WORK = 16
"""Products of two numbers per mode, relative to the square of the number of elements."""


def normal_tree(parts: Parts, role: np.ndarray) -> Wiring:
    """The normal tree of elements with these roles; twigs and links are each in ascending order of role."""
    return Wiring(*kernel(mode_kernels.normal_tree, parts.n_nodes * role.size, PRODUCT)(parts, role))


def mode_of(supply: Supply, conducting: np.ndarray) -> Mode:
    """The linear system at a set of conducting diodes and closed switches, in complex numbers: imaginary parts of
    elements and sources give those of the result (complex step)."""
    parts, rows, ohms = supply.parts, supply.rows.astype(complex), supply.ohms.astype(complex)
    parts = parts._replace(value=parts.value.astype(complex), coupling=parts.coupling.astype(complex))
    thresholds = supply.thresholds.astype(complex)
    of = supply._replace(parts=parts, rows=rows, ohms=ohms, thresholds=thresholds, slopes=True)
    return Mode(*kernel(mode_rows.mode_of, WORK * parts.value.size**2, PRODUCT)(of, conducting)[0])
