"""Derivatives through the stages and steps of the implicit method, backwards; what each number contributes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.implicit import Implicit
from circuitsim.time_domain.implicit_events import Conduction
from circuitsim.time_domain.implicit_step import BEFORE, DIAGONAL, NODES, Point, Step
from circuitsim.time_domain.tangents import Sizes, Tangents
from circuitsim.time_domain.waveforms import slope, value


class Wanted(NamedTuple):
    """Derivatives of the functional by what a point has.

    Attributes
    ----------
    voltage, current : (m,) float arrays
        By branch voltages and currents of the circuit's own elements.
    x, slope : (q,) float arrays
        By states and their derivatives.
    diodes : (2, d) float array or None
        By voltages and currents of ideal diodes.
    """

    voltage: np.ndarray
    current: np.ndarray
    x: np.ndarray
    slope: np.ndarray
    diodes: np.ndarray | None = None

    def plus(self, voltage: np.ndarray, current: np.ndarray) -> Wanted:
        """With more by voltages and currents."""
        return self._replace(voltage=self.voltage + voltage, current=self.current + current)

    def times(self, factor: float) -> Wanted:
        """Multiplied by a factor."""
        return Wanted(*(None if part is None else factor * part for part in self))  # type: ignore[arg-type]


class Reached(NamedTuple):
    """Derivatives by the beginning of a step.

    Attributes
    ----------
    x, slope : (q,) float arrays
    length, time : float
        By its length, and by a shift of all its times.
    """

    x: np.ndarray
    slope: np.ndarray
    length: float
    time: float


class StageGradients:
    """The companion circuit, solved backwards.

    Parameters
    ----------
    run : Implicit

    Attributes
    ----------
    tangents : Tangents
    by_weight : (q,) float array
        Sums of the derivatives by capacitances and inductances.
    by_turns : (n, n) float array or None
        By the turns of coupled inductors (`circuitsim.circuit.couplings.Windings`).
    by_wave : dict of int to float
        By factors on waveforms.
    by_ohms : (2, s) float array
        By resistances of closed and of open switches.
    """

    def __init__(self, run: Implicit) -> None:
        self.run, self.companion = run, run.companion
        own = self.companion
        self.tangents = Tangents(own.circuit, own.storing[own.capacitor])
        self.by_weight = np.zeros(own.storing.size)
        self.by_turns = None if own.windings is None else np.zeros(own.windings.turns.shape)
        self.by_wave = dict.fromkeys(run.waves, 0.0)
        self.by_ohms = np.zeros((2, run.switching.places.size))
        self.count = True
        self._first, self._second = own.own.arrays()[1:3]
        self._flows = {
            k: [(self.tangents.parts[k][p], sign) for p, sign in device.entering(device.expand())]
            for k, device in own.own.devices.items()
        }

    def none(self) -> Wanted:
        """Nothing."""
        m, q = self._first.size, self.by_weight.size
        return Wanted(np.zeros(m), np.zeros(m), np.zeros(q), np.zeros(q))

    def of_diodes(self, chosen: np.ndarray, now: Conduction) -> np.ndarray:
        """The sum of currents of conducting and of voltages of blocking diodes, over the largest, as weights (2, d)."""
        sizes, found = self.sizes(), np.zeros((2, now.diodes.size))
        found[0, chosen] = np.where(now.diodes[chosen], 0.0, 1.0 / sizes.volts)
        found[1, chosen] = np.where(now.diodes[chosen], 1.0 / sizes.amperes, 0.0)
        return found

    def sizes(self) -> Sizes:
        """Largest voltage and current of the run."""
        watch = self.run.watch
        return Sizes(*(own if own > 1e-200 else 1.0 for own in (watch.volts, watch.amperes)))

    def step(self, step: Step, begin: tuple[float, np.ndarray], now: Conduction, stages: list[Wanted]) -> Reached:
        """Back through a step of the Runge-Kutta method.

        Parameters
        ----------
        step : Step
        begin : tuple of float and (q,) float array
            Its time, s, and the slopes there.
        now : Conduction
            States of diodes and switches during the step.
        stages : list of Wanted
            By what its three stages have.
        """
        h, x, shift = step.length, np.zeros(self.by_weight.size), 0.0
        slopes, by_length = [np.zeros(x.size) for _ in range(4)], 0.0
        known = [begin[1], *(point.slope for point in step.stages)]
        for k in (2, 1, 0):
            wanted = stages[k]._replace(slope=stages[k].slope + slopes[k + 1])
            by_base, by_g, by_time = self.stage(step.stages[k], DIAGONAL * h, now, wanted)
            x += by_base
            for weight, own, into in zip(BEFORE[k].tolist(), known, slopes):
                into += h * weight * by_base
                by_length += weight * float(own @ by_base)
            by_length += DIAGONAL * by_g + float(NODES[k + 1]) * by_time
            shift += by_time
        return Reached(x, slopes[0], by_length, shift)

    def euler(self, step: Step, now: Conduction, wanted: Wanted) -> Reached:
        """Back through a step of backward Euler; its time is that of its end."""
        by_base, by_g, by_time = self.stage(step.end, step.length, now, wanted)
        return Reached(by_base, np.zeros(by_base.size), by_g, by_time)

    def stage(self, point: Point, g: float, now: Conduction, wanted: Wanted) -> tuple[np.ndarray, float, float]:
        """Derivatives by the base (q,), the length g and the time of a stage."""
        own, tangents, solved = self.companion, self.tangents, point.solved
        capacitor, storing, weight = own.capacitor, own.storing, own.weight
        by_x = wanted.x.copy()
        wanted, by_turns = self._of_cores(wanted, point)
        by_x[~capacitor] += wanted.current[storing[~capacitor]]
        by_slope = wanted.slope + g * by_x
        column = own.column(g, self.run.moving(now.switches)(point.time))
        sizes = self.sizes()
        inner = tangents.column_at(solved, column, sizes)
        before = np.zeros(inner.size, dtype=bool)
        before[own.diodes] = now.diodes
        weights = self._weights(wanted, by_slope)
        if wanted.diodes is not None:
            np.add.at(weights[0], tangents.first[own.diodes], wanted.diodes[0])
            np.add.at(weights[0], tangents.second[own.diodes], -wanted.diodes[0])
            weights[1][own.diodes] += wanted.diodes[1]
        found = tangents.backward(solved, inner, tangents.conducting(solved, before, sizes), weights, sizes, self.count)
        by = found.by_value
        ohms = by[storing]
        by_g = float(by_x @ point.slope) + float((ohms * np.where(capacitor, 1.0 / weight, -weight / g**2)).sum())
        by_g -= float(by[own.series[own.series >= 0]].sum()) / g**2
        by_time = sum(float(by[k]) * slope(wave, point.time) for k, wave in self.run.waves.items())
        if self.count:
            self.by_weight -= by_slope * point.slope / weight
            self.by_weight += ohms * np.where(capacitor, -g / weight**2, 1.0 / g)
            if by_turns is not None:
                self._count_turns(by_turns, found.by_law, point)
            for k, wave in self.run.waves.items():
                self.by_wave[k] += float(by[k]) * value(wave, point.time)
            places = self.run.switching.places
            self.by_ohms += np.where([now.switches, ~now.switches], by[places], 0.0)
        return by_x + by[own.base], by_g, float(by_time)

    def _of_cores(self, wanted: Wanted, point: Point) -> tuple[Wanted, np.ndarray | None]:
        """What is wanted of core currents in place of coupled inductors' own; derivatives by turns (n, n)."""
        windings = self.companion.windings
        if windings is None:
            return wanted, None
        coils, current = windings.coils, wanted.current.copy()
        current[coils] = windings.inverse.T @ current[coils]
        by_turns = -np.outer(current[coils], point.current[coils])
        return wanted._replace(current=current), by_turns

    def _count_turns(self, by_turns: np.ndarray, by_law: np.ndarray, point: Point) -> None:
        """Count what turns contribute: to currents, and to the sources of the transformers."""
        own, windings = self.companion, self.companion.windings
        assert windings is not None and self.by_turns is not None
        r = windings.independent
        slope, voltage = point.slope[own.place], windings.inductance[:r] * point.slope[own.place]
        into, beside = (np.where(of >= 0, by_law[of], 0.0) for of in (own.series, own.beside))
        self.by_turns += by_turns - np.outer(beside, point.current[windings.coils])
        self.by_turns[:r] += np.outer(voltage, into)
        self.by_weight[own.place] += slope * (np.triu(windings.turns, 1)[:r] @ into)

    def _weights(self, wanted: Wanted, by_slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What is wanted as weights of potentials and of currents of elementary elements.

        A capacitor's slope is its current over the capacitance, a coil's its voltage over the inductance.
        """
        own, tangents = self.companion, self.tangents
        potentials, currents = np.zeros(tangents.nodes), np.zeros(tangents.kind.size)
        np.add.at(potentials, self._first, wanted.voltage)
        np.add.at(potentials, self._second, -wanted.voltage)
        stored = np.zeros(self._first.size, dtype=bool)
        stored[own.storing] = True
        for k in np.flatnonzero(wanted.current).tolist():
            if k in self._flows:
                for part, sign in self._flows[k]:
                    currents[part] += sign * wanted.current[k]
            elif not stored[k]:
                currents[k] += wanted.current[k]
        c, coil = own.storing[own.capacitor], own.storing[~own.capacitor]
        currents[c] += wanted.current[c] + by_slope[own.capacitor] / own.weight[own.capacitor]
        share = by_slope[~own.capacitor] / own.weight[~own.capacitor]
        np.add.at(potentials, tangents.first[coil], share)
        np.add.at(potentials, tangents.second[coil], -share)
        return potentials, currents


__all__ = ["Reached", "StageGradients", "Wanted"]
