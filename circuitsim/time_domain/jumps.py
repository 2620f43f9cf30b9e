"""Jumps of states: charges and fluxes that flow in no time, as operating points of two circuits of impulses.

Capacitor voltages that a loop of sources and diodes contradicts jump to x⁺, which minimises ½ Σ C (x⁺ − x⁻)² under the
loops' constraints (Frasca, Çamlibel, Goknar & Vasca 2010): the steady state of a circuit of conductances C, where
charges take the place of currents. Inductor currents likewise, in a circuit of resistances L, where fluxes take the
place of voltages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.solve import solve
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import AFFINE_VOLTAGE, CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.circuit.laws import CurrentControl, Law, Quantity
from circuitsim.time_domain.modes import Parts, Role

ROUNDING = 1e-12
"""Share of the largest impulse below which one is none."""


class Jump(NamedTuple):
    """States after a jump.

    Attributes
    ----------
    x : (m,) float array
        Capacitor voltages, V, or inductor currents, A; other entries 0.
    delivered : float
        Energy that the sources deliver in no time, J: they have their values after the jump while it lasts.
    conducting : (d,) bool array
        Diodes that carry charge in a jump of voltages; all but those that block flux in a jump of currents.
    """

    x: np.ndarray
    delivered: float
    conducting: np.ndarray


class Before(NamedTuple):
    """A circuit whose states jump.

    Attributes
    ----------
    parts : Parts
    names : (m,) sequence of str
        Of all elements, for errors.
    states : (m,) float array
        Capacitor voltages, V, or inductor currents, A, before the jump.
    sources : (m,) float array
        Voltages of voltage sources, V, or currents of current sources, A, after it.
    diodes : (d,) int array
    """

    parts: Parts
    names: Sequence[str]
    states: np.ndarray
    sources: np.ndarray
    diodes: np.ndarray


class _Row(NamedTuple):
    """Elements of a circuit of impulses: their kind, their places among the circuit's own elements, ends and values."""

    kind: int
    place: np.ndarray
    first: np.ndarray
    second: np.ndarray
    value: np.ndarray


def capacitor_jump(before: Before) -> Jump:
    """Capacitor voltages after a jump.

    Raises
    ------
    InfeasibleError
        Sources and diodes form a loop whose voltages do not add up.
    """
    parts, names, states, sources, diodes = before
    c, v = np.flatnonzero(parts.role == Role.CAPACITOR), np.flatnonzero(parts.role == Role.VOLTAGE)
    unit = float(parts.value[c].max())
    charge = parts.value[c] / unit * states[c]
    point = solve(_impulses(parts.n_nodes, names, [
        _Row(VOLTAGE, v, parts.first[v], parts.second[v], sources[v]),
        _Row(DIODE, diodes, parts.first[diodes], parts.second[diodes], np.zeros(diodes.size)),
        _Row(RESISTOR, c, parts.first[c], parts.second[c], unit / parts.value[c]),
        _Row(CURRENT, c, parts.second[c], parts.first[c], charge),
    ]))  # fmt: skip
    after = np.zeros(parts.role.size)
    # The drop of a capacitor moves by the charge that it takes: no difference of potentials.
    after[c] = point.drops[v.size + diodes.size : v.size + diodes.size + c.size]
    carried = point.currents[v.size : v.size + diodes.size]
    conducting = carried > ROUNDING * np.abs(point.currents).max(initial=0.0)
    return Jump(after, -unit * float(sources[v] @ point.currents[: v.size]), conducting)


def inductor_jump(before: Before) -> Jump:
    """Inductor currents after a jump.

    Raises
    ------
    UnboundedError
        Sources drive a net current into nodes that only blocking diodes lead from.
    """
    parts, names, states, sources, diodes = before
    coil, i = np.flatnonzero(parts.role == Role.INDUCTOR), np.flatnonzero(parts.role == Role.CURRENT)
    short = np.flatnonzero(np.isin(parts.role, (Role.VOLTAGE, Role.CAPACITOR, Role.RESISTOR)))
    unit = float(parts.value[coil].max())
    # A coil of flux L (i − i⁻): a resistance with a voltage source behind it, at a node of its own.
    inner, ohms = parts.n_nodes + np.arange(coil.size), parts.value[coil] / unit
    mutual = np.zeros((coil.size, coil.size)) if parts.coupling is None else parts.coupling[np.ix_(coil, coil)] / unit
    flux = ohms * states[coil] + mutual @ states[coil]
    alone, coupled = np.flatnonzero(~mutual.any(axis=1)), np.flatnonzero(mutual.any(axis=1))
    circuit = _impulses(parts.n_nodes + coil.size, names, [
        _Row(CURRENT, i, parts.first[i], parts.second[i], sources[i]),
        _Row(RESISTOR, coil, parts.first[coil], inner, ohms),
        _Row(VOLTAGE, coil[alone], inner[alone], parts.second[coil[alone]], -flux[alone]),
        _Row(DIODE, diodes, parts.first[diodes], parts.second[diodes], np.zeros(diodes.size)),
        _Row(RESISTOR, short, parts.first[short], parts.second[short], np.zeros(short.size)),
    ])  # fmt: skip
    # Flux that the currents of other coils cause: sources that these currents control.
    for k in coupled.tolist():
        own = [CurrentControl(float(mutual[k, j]), i.size + j) for j in np.flatnonzero(mutual[k]).tolist()]
        start, end = (circuit.node_names[node] for node in (inner[k], parts.second[coil[k]]))
        law = Law(Quantity.VOLTAGE, -float(flux[k]), (), tuple(own))
        circuit.controlled(AFFINE_VOLTAGE, f"{names[coil[k]]}''", start, end, law)
    point = solve(circuit)
    after = np.zeros(parts.role.size)
    after[coil] = point.currents[i.size : i.size + coil.size]
    begin = i.size + coil.size + alone.size
    conducting = point.drops[begin : begin + diodes.size] >= -ROUNDING * np.abs(point.drops).max(initial=0.0)
    return Jump(after, -unit * float(sources[i] @ point.drops[: i.size]), conducting)


def _impulses(n_nodes: int, names: Sequence[str], rows: Sequence[_Row]) -> Circuit:
    """A circuit of impulses; the second element of two of one name has a dash."""
    kind = np.concatenate([np.full(row.place.size, row.kind) for row in rows])
    first, second, value = (np.concatenate([row[k] for row in rows]) for k in (2, 3, 4))
    called: dict[str, None] = {}
    for k in np.concatenate([row.place for row in rows]).tolist():
        called[names[k] + "'" if names[k] in called else names[k]] = None
    return Circuit.from_arrays(kind, first, second, value, n_nodes, "impulses", list(called))
