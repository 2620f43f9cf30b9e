"""The certificate of smooth devices with controlled sources: each becomes a source of its own current at its own
voltage, and nothing of its companion model is left.
"""

from __future__ import annotations

import numpy as np

from circuitsim.analysis.controlled_point import NOISE
from circuitsim.analysis.newton import Found, Smooth, project
from circuitsim.certificate import Certificate
from circuitsim.circuit import CircuitArrays
from circuitsim.controlled.certificate import certify_controlled
from circuitsim.controlled.law_arrays import LawArrays


def proof(found: Found, arrays: CircuitArrays, smooth: Smooth, laws: LawArrays, tolerance: float) -> Certificate:
    """The certificate of the last step; as in the steps, noise next to noise counts as zero.

    Parameters
    ----------
    found : Found
        Its devices' voltages and currents are overwritten where these are noise.
    arrays : CircuitArrays
        Of the elementary elements, with the values of the last step.
    laws : LawArrays
    tolerance : float
    """
    made = _held(found, arrays, smooth, laws, tolerance)
    if made.certified:
        return made
    v, i = found.voltage, found.current
    volts, amperes = _largest(found, smooth)
    quiet_v, quiet_i = np.abs(v) <= NOISE * volts, np.abs(i) <= NOISE * amperes
    plain = np.where(quiet_v, 0.0, v), np.where(quiet_i, 0.0, i)
    near = project(smooth, *plain, np.ones(v.size), plain[0])
    exact = (quiet_v | quiet_i) & (near.points[0] == plain[0]) & (near.points[1] == plain[1])
    v[exact], i[exact], found.distance[exact] = plain[0][exact], plain[1][exact], 0.0
    found.state.points[:2, exact] = v[exact], i[exact]
    return _held(found, arrays, smooth, laws, tolerance)


def _largest(found: Found, smooth: Smooth) -> tuple[float, float]:
    """The largest drop, V, and current, A, of the last step, except inside companion models."""
    drops, currents = found.point.drops.copy(), found.point.currents.copy()
    for inside in (smooth.slope, smooth.touch):
        drops[inside] = currents[inside] = 0.0
    currents[smooth.rest] = found.current
    return float(np.abs(drops).max()), float(np.abs(currents).max())


def _held(found: Found, arrays: CircuitArrays, smooth: Smooth, laws: LawArrays, tolerance: float) -> Certificate:
    """Check all elements' equations and Kirchhoff's laws with the devices as sources, and their distance from their
    curves."""
    point, column = found.point, arrays.value.copy()
    voltages, currents, drops = point.voltages.copy(), point.currents.copy(), point.drops.copy()
    low = np.zeros(voltages.size) if point.low is None else point.low.copy()
    slope, touch, rest = smooth.slope, smooth.touch, smooth.rest
    inside, outside = arrays.second[slope], arrays.first[slope]
    voltages[inside], low[inside] = voltages[outside], low[outside]
    drops[slope], currents[slope] = 0.0, 0.0
    drops[touch], currents[touch], column[touch] = found.voltage, 0.0, found.voltage
    drops[rest], currents[rest], column[rest] = found.voltage, found.current, found.current
    made = certify_controlled(arrays._replace(value=column), laws, voltages, currents, drops, tolerance, low)
    gap = np.abs((found.voltage - found.state.points[0]) * (found.current - found.state.points[1]))
    relative = {**made.relative, "devices": float(found.distance.max(initial=0.0))}
    return made._replace(relative=relative, device_gap=float(gap.sum()))


__all__ = ["proof"]
