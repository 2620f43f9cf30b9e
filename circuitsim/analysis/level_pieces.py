"""Devices at level pieces of their curves: any voltage there goes with their current, so they hold no potential."""

from __future__ import annotations

import numpy as np

from circuitsim.analysis.newton import NOTHING, Found, Smooth
from circuitsim.analysis.nonunique import Level, released_potentials
from circuitsim.analysis.operating_point import OperatingPoint, open_ended
from circuitsim.analysis.solution_warnings import nonunique_potential
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import DIODE
from circuitsim.errors import ConvergenceError
from circuitsim.models.smooth import SmoothDevice
from circuitsim.program import Structure


def level_devices(circuit: Circuit, smooth: Smooth, junctions: np.ndarray) -> dict[int, tuple[float, float]]:
    """The smooth devices that are at level pieces with junction voltages (s,), V, by number, and the ends of these
    pieces, V."""
    found = {}
    for d, k in enumerate(smooth.elements.tolist()):
        device = circuit.devices[k]
        assert isinstance(device, SmoothDevice)
        ends = device.level(float(junctions[d]))
        if ends is not None:
            found[d] = ends
    return found


def released(structure: Structure, smooth: Smooth, found: Found, level: dict[int, tuple[float, float]]) -> Found:
    """Where Newton's method ended, with the ranges of potentials that level pieces leave open.

    The tangent of a level piece is 1e100 Ω, whose drop is rounding: such devices have the difference of potentials, and
    potentials that they alone hold are what all of them and all blocking diodes allow.

    Parameters
    ----------
    structure : Structure
        Of the elementary elements.
    level : dict
        See `level_devices`.

    Raises
    ------
    ConvergenceError
        Some device is not on its level piece, or no potentials are allowed.
    """
    point, chosen = found.point, np.array([*level])
    low, high = np.array([*level.values()]).T
    kind, first, second, _, _ = structure.arrays
    slope, touch, rest = (places[chosen] for places in (smooth.slope, smooth.touch, smooth.rest))
    carries = (kind == DIODE) & (point.currents > NOTHING)
    pieces = Level(slope, first[rest], second[rest], low, high)
    voltages, free = released_potentials(structure, point.voltages, carries, pieces)
    across, drops = voltages[first[rest]] - voltages[second[rest]], point.drops.copy()
    rounding = point.certificate.tolerance * np.maximum(np.abs(voltages[first[rest]]), np.abs(voltages[second[rest]]))
    own = found.voltage[chosen]
    across = np.where(np.abs(own - across) <= rounding, own, across)  # the own one has more digits
    off = np.maximum(low - across, across - high) > rounding
    if off.any():
        raise ConvergenceError(
            f"Newton's method ended on level pieces that the potentials leave ({across[off][0]:.6g} V)"
        )
    if free:
        blocks = (kind == DIODE) & ~carries
        drops[blocks] = voltages[first[blocks]] - voltages[second[blocks]]
    drops[rest], drops[slope] = across, across - drops[touch]
    named = {point.circuit.node_names[k]: open_ended(ends) for k, ends in free.items()}
    warnings = [warning for warning in point.warnings if warning.kind != "nonunique-potential"]
    warnings += [nonunique_potential([*named])] if named else []
    made = OperatingPoint(
        point.circuit,
        voltages,
        point.currents,
        named,
        point.unique,
        point.certificate,
        point.solver,
        tuple(warnings),
        drops,
    )
    volts, state = found.voltage.copy(), found.state
    volts[chosen] = state.points[0, chosen] = state.junctions[chosen] = across
    return found._replace(point=made, voltage=volts)


__all__ = ["level_devices", "released"]
