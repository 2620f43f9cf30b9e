"""The proof of an operating point with controlled elements: all laws again, from currents, drops and potentials.

A controlled element stands as the source that its law demands, so that Kirchhoff's laws are held as everywhere. Its law
is held against the largest of its terms: it is exact for a circuit whose gains differ by the tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from circuitsim.certificate import Certificate, certify
from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.circuit.laws import Law, Quantity


def certify_controlled(
    arrays: CircuitArrays, laws: Mapping[int, Law], voltages: np.ndarray, currents: np.ndarray, drops: np.ndarray,
    tolerance: float, low: np.ndarray,
) -> Certificate:  # fmt: skip
    """The certificate of one operating point; "source" includes controlled voltages, "kcl" controlled currents.

    Parameters
    ----------
    arrays : CircuitArrays
    laws : mapping of int to Law
        Of the controlled elements, by position.
    voltages, low : (n_nodes,) float arrays
        Potentials, and what rounding them to doubles leaves over, V.
    currents, drops : (m,) float arrays
        A, V.
    tolerance : float
    """
    kind, value = arrays.kind.copy(), arrays.value.copy()
    worst = {Quantity.VOLTAGE: [0.0], Quantity.CURRENT: [0.0]}
    amounts = {Quantity.VOLTAGE: [0.0], Quantity.CURRENT: [0.0]}
    for k, law in laws.items():
        amount, scale = _held(arrays, k, law, voltages, currents, drops, low)
        is_current = law.quantity is Quantity.CURRENT
        kind[k] = CURRENT if is_current else VOLTAGE
        # A nullor holds whatever voltage it has; what it demands is that its control vanishes.
        value[k] = currents[k] if is_current else drops[k]
        which = Quantity.CURRENT if is_current else Quantity.VOLTAGE
        amounts[which].append(amount)
        worst[which].append(amount / scale if scale > 0.0 else (np.inf if amount > 0.0 else 0.0))
    whole = CircuitArrays(kind, arrays.first, arrays.second, value, arrays.n_nodes)
    found = certify(whole, value, voltages, currents, drops, tolerance, low)
    relative = dict(found.relative)
    relative["source"] = max(relative["source"], *worst[Quantity.VOLTAGE])
    relative["kcl"] = max(relative["kcl"], *worst[Quantity.CURRENT])
    return found._replace(
        relative=relative, source=max(found.source, *amounts[Quantity.VOLTAGE]),
        kcl=max(found.kcl, *amounts[Quantity.CURRENT]),
    )  # fmt: skip


def _held(
    arrays: CircuitArrays, k: int, law: Law, voltages: np.ndarray, currents: np.ndarray, drops: np.ndarray,
    low: np.ndarray,
) -> tuple[float, float]:  # fmt: skip
    """By how much the law is missed, and the largest of its terms."""
    gain = 1.0 if np.isnan(arrays.value[k]) else float(arrays.value[k])
    terms = [law.constant]
    reach = 0.0
    for c, plus, minus in law.voltages:
        terms.append(gain * c * ((voltages[plus] - voltages[minus]) + (low[plus] - low[minus])))
        reach = max(reach, abs(voltages[plus]), abs(voltages[minus]))
    for c, e in law.currents:
        terms.append(gain * c * currents[e])
    demanded = float(np.sum(terms))
    if law.quantity is Quantity.NEITHER:
        return abs(demanded), reach
    own = float(currents[k] if law.quantity is Quantity.CURRENT else drops[k])
    return abs(own - demanded), max(abs(own), *map(abs, terms))
