"""Switches that voltage sources of straight lines operate: the times at which they turn are known beforehand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.switching import Switching
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import VOLTAGE
from circuitsim.time_domain.source_values import Line
from circuitsim.time_domain.waveforms import LINE, Waveform

Sources = dict[int, float]
"""Elements and the signs with which their voltages add up."""


class _Control(NamedTuple):
    """A control voltage: the switch's number, a constant, V, and signed lines."""

    switch: int
    constant: float
    lines: tuple[tuple[float, Line], ...]

    def at(self, time: float) -> tuple[float, float]:
        """Value and slope, V and V/s."""
        level, slope = self.constant, 0.0
        for sign, line in self.lines:
            own = line.at(time)
            level, slope = level + sign * own[0], slope + sign * own[1]
        return level, slope


class SourceSwitches:
    """The switches of a circuit whose control voltage is a sum of voltages of independent sources.

    Parameters
    ----------
    circuit : Circuit
    switching : Switching
    waves : mapping of int to Waveform
        Of sources by element; all others are constant.
    """

    def __init__(self, circuit: Circuit, switching: Switching, waves: Mapping[int, Waveform]) -> None:
        self.switching, self._controls = switching, list[_Control]()
        lines = {k: Line(wave) for k, wave in waves.items() if wave.system is LINE}
        value, held = circuit.arrays().value, _held_nodes(circuit)
        for number, switch in enumerate(switching.switches):
            if isinstance(switch.control, str):
                continue
            plus, minus = (held.get(circuit.node_index(node)) for node in switch.control)
            if plus is None or minus is None:
                continue
            total = {k: plus.get(k, 0.0) - minus.get(k, 0.0) for k in {**plus, **minus}}
            moving = [k for k, sign in total.items() if sign and k in waves]
            if moving and all(k in lines for k in moving):
                constant = sum(float(value[k]) * sign for k, sign in total.items() if k not in waves)
                self._controls.append(_Control(number, constant, tuple((total[k], lines[k]) for k in moving)))

    def next(self, time: float, closed: np.ndarray) -> float:
        """The first time after ``time`` (s) at which one of them turns, before any source's next corner; else infinite.

        Parameters
        ----------
        time : float
        closed : (s,) bool array
            States of all switches.
        """
        if not self._controls:
            return math.inf
        first, thresholds = math.inf, self.switching.thresholds(closed)
        for control in self._controls:
            level, slope = control.at(time)
            gap = float(thresholds[control.switch]) - level
            if slope and (slope < 0.0) == bool(closed[control.switch]) and gap / slope > 0.0:
                first = min(first, time + gap / slope)
        return first


def _held_nodes(circuit: Circuit) -> dict[int, Sources]:
    """Nodes that voltage sources hold against ground, with these sources."""
    kind, first, second, _, _ = circuit.arrays()
    beside: dict[int, list[tuple[int, int, float]]] = {}
    for k in np.flatnonzero(kind == VOLTAGE).tolist():
        if k not in circuit.laws:
            beside.setdefault(int(first[k]), []).append((k, int(second[k]), -1.0))
            beside.setdefault(int(second[k]), []).append((k, int(first[k]), 1.0))
    held: dict[int, Sources] = {0: {}}
    waiting = [0]
    while waiting:
        node = waiting.pop()
        for k, other, sign in beside.get(node, ()):
            if other not in held:
                held[other] = {**held[node], k: sign}
                waiting.append(other)
    return held


__all__ = ["SourceSwitches"]
