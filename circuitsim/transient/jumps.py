"""Jumps of states: charges and fluxes that flow in no time, as operating points of two circuits of impulses.

Capacitor voltages that a loop of sources and diodes contradicts jump to x⁺, which minimises ½ Σ C (x⁺ − x⁻)² under the
loops' constraints (Frasca, Çamlibel, Goknar & Vasca 2010): the steady state of a circuit of conductances C, where
charges take the place of currents. Inductor currents likewise, in a circuit of resistances L, where fluxes take the
place of voltages.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.analysis.solve import solve
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.transient.modes import Parts, Role


class Jump(NamedTuple):
    """States after a jump.

    Attributes
    ----------
    x : (m,) float array
        Capacitor voltages, V, or inductor currents, A; other entries 0.
    delivered : float
        Energy that the sources deliver in no time, J: they have their values after the jump while it lasts.
    """

    x: np.ndarray
    delivered: float


def capacitor_jump(parts: Parts, before: np.ndarray, sources: np.ndarray, diodes: np.ndarray) -> Jump:
    """Capacitor voltages after a jump.

    Parameters
    ----------
    parts : Parts
    before : (m,) float array
        Capacitor voltages before, V.
    sources : (m,) float array
        Voltages of voltage sources after, V.
    diodes : (d,) int array
    """
    c, v = np.flatnonzero(parts.role == Role.CAPACITOR), np.flatnonzero(parts.role == Role.VOLTAGE)
    unit = float(parts.value[c].max())
    kind = np.concatenate([np.full(v.size, VOLTAGE), np.full(diodes.size, DIODE), np.full(c.size, RESISTOR),
                           np.full(c.size, CURRENT)])  # fmt: skip
    first = np.concatenate([parts.first[v], parts.first[diodes], parts.first[c], parts.second[c]])
    second = np.concatenate([parts.second[v], parts.second[diodes], parts.second[c], parts.first[c]])
    charge = parts.value[c] / unit * before[c]
    value = np.concatenate([sources[v], np.zeros(diodes.size), unit / parts.value[c], charge])
    point = solve(Circuit.from_arrays(kind, first, second, value, parts.n_nodes, "charges"))
    after = np.zeros(parts.role.size)
    # The drop of a capacitor moves by the charge that it takes: no difference of potentials.
    drops = point.drops if point.drops is not None else point.voltages[first] - point.voltages[second]
    after[c] = drops[v.size + diodes.size : v.size + diodes.size + c.size]
    return Jump(after, -unit * float(sources[v] @ point.currents[: v.size]))


def inductor_jump(parts: Parts, before: np.ndarray, sources: np.ndarray, diodes: np.ndarray) -> Jump:
    """Inductor currents after a jump.

    Parameters
    ----------
    parts : Parts
    before : (m,) float array
        Inductor currents before, A.
    sources : (m,) float array
        Currents of current sources after, A.
    diodes : (d,) int array
    """
    coil, i = np.flatnonzero(parts.role == Role.INDUCTOR), np.flatnonzero(parts.role == Role.CURRENT)
    short = np.flatnonzero(np.isin(parts.role, (Role.VOLTAGE, Role.CAPACITOR, Role.RESISTOR)))
    unit = float(parts.value[coil].max())
    # A coil of flux L (i − i⁻): a resistance with a voltage source behind it, at a node of its own.
    inner = parts.n_nodes + np.arange(coil.size)
    kind = np.concatenate([np.full(i.size, CURRENT), np.full(diodes.size, DIODE), np.full(short.size, RESISTOR),
                           np.full(coil.size, RESISTOR), np.full(coil.size, VOLTAGE)])  # fmt: skip
    first = np.concatenate([parts.first[i], parts.first[diodes], parts.first[short], parts.first[coil], inner])
    second = np.concatenate([parts.second[i], parts.second[diodes], parts.second[short], inner, parts.second[coil]])
    ohms = parts.value[coil] / unit
    value = np.concatenate([sources[i], np.zeros(diodes.size), np.zeros(short.size), ohms, -ohms * before[coil]])
    point = solve(Circuit.from_arrays(kind, first, second, value, parts.n_nodes + coil.size, "fluxes"))
    after = np.zeros(parts.role.size)
    start = i.size + diodes.size + short.size
    after[coil] = point.currents[start : start + coil.size]
    fluxes = point.drops if point.drops is not None else point.voltages[first] - point.voltages[second]
    return Jump(after, -unit * float(sources[i] @ fluxes[: i.size]))
