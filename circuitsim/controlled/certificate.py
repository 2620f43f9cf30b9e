"""The certificate of an operating point with controlled elements, from currents, drops and node voltages.

A controlled element is replaced by the source that its equation prescribes, and Kirchhoff's laws are checked as usual.
Its equation is checked relative to the largest of its terms: it is exact for gains that differ by the tolerance.
"""

from __future__ import annotations

import numpy as np

from circuitsim.certificate import Certificate, certify
from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.circuit.table import read_only
from circuitsim.controlled.held_laws import laws_held
from circuitsim.controlled.law_arrays import LawArrays
from circuitsim.kernels import kernel


def certify_controlled(
    arrays: CircuitArrays,
    laws: LawArrays,
    voltages: np.ndarray,
    currents: np.ndarray,
    drops: np.ndarray,
    tolerance: float,
    low: np.ndarray,
) -> Certificate:
    """The certificate of one operating point; "source" includes controlled voltages, "kcl" controlled currents.

    Parameters
    ----------
    arrays : CircuitArrays
    laws : LawArrays
        Of the controlled elements.
    voltages, low : (n_nodes,) float arrays
        Potentials, and their low-order parts, V.
    currents, drops : (m,) float arrays
        A, V.
    tolerance : float
    """
    kind, value = arrays.kind.copy(), arrays.value.copy()
    worst = np.zeros((2, 2))
    kernel(laws_held, kind.size)(laws, read_only(arrays.value), voltages, low, currents, drops, worst)
    at = laws.element
    kind[at] = np.where(laws.current, CURRENT, VOLTAGE)
    # A nullor has any voltage; its equation is that its control vanishes.
    value[at] = np.where(laws.current, currents[at], drops[at])
    whole = CircuitArrays(kind, arrays.first, arrays.second, value, arrays.n_nodes)
    found = certify(whole, value, voltages, currents, drops, tolerance, low, lambda: (at[laws.owners()], laws.control))
    relative = dict(found.relative)
    relative["source"] = max(relative["source"], float(worst[0, 1]))
    relative["kcl"] = max(relative["kcl"], float(worst[1, 1]))
    return found._replace(
        relative=relative, source=max(found.source, float(worst[0, 0])), kcl=max(found.kcl, float(worst[1, 0]))
    )
