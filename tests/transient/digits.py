"""Waveforms of circuits of R, C, L, sources and switches that sources control, in 50 digits: matrix exponentials by
ball arithmetic (Arb), whose enclosures are proofs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from flint import arb, arb_mat, ctx

from circuitsim import Circuit
from circuitsim.time_domain import PiecewiseLinear, Switch, Waveform

BITS = 500
"""Working precision; what a stiff circuit costs of it (decades of λ t) is in the enclosures."""


class Digits:
    """The waveforms of a circuit, without loops of capacitors and voltage sources, and cuts of inductors and current
    sources.

    Parameters
    ----------
    circuit : Circuit
    waves : mapping of str to PiecewiseLinear
        Of sources; all others are constant.
    initial : mapping of str to float
        Capacitor voltages and inductor currents; all others are 0.
    switches : mapping of str to Switch
        Each controlled by a node that a voltage source drives.
    stop : float
        s.
    """

    def __init__(
        self,
        circuit: Circuit,
        waves: Mapping[str, Waveform],
        initial: Mapping[str, float],
        switches: Mapping[str, Switch],
        stop: float,
    ) -> None:
        ctx.prec = BITS
        self.circuit, self.switches, self.waves = circuit, switches, waves
        arrays = circuit.arrays()
        self.kind = [name[0] for name in circuit.names]
        self.ends = list(zip(arrays.first.tolist(), arrays.second.tolist()))
        self.value = [arb(x) for x in arrays.value.tolist()]
        self.nodes = arrays.n_nodes
        self.states = [k for k, kind in enumerate(self.kind) if kind in "CL"]
        self.sources = [k for k, kind in enumerate(self.kind) if kind in "VI"]
        times = {arb(0)}
        self.events = []
        for wave in waves.values():
            assert isinstance(wave, PiecewiseLinear)
            times |= {arb(t) for t in wave.times.tolist()}
        for name in switches:
            crossings = self._crossings(name)
            self.events += [float(t.mid()) for t in crossings]
            times |= set(crossings)
        self.starts = sorted((t for t in times if t < stop), key=lambda t: float(t.mid()))
        # Two that are one number are one time.
        self.starts = [t for k, t in enumerate(self.starts) if k == 0 or t > self.starts[k - 1]]
        x = arb_mat([[arb(initial.get(circuit.names[k], 0.0))] for k in self.states])
        self.spans = []
        for k, start in enumerate(self.starts):
            after = self.starts[k + 1] if k + 1 < len(self.starts) else arb(stop)
            system, rows = self._mode((start + after) / 2)
            z = self._with_sources(x, start, (start + after) / 2)
            self.spans.append((system, rows, z))
            later = (system * (after - start)).exp() * z
            x = arb_mat([[later[j, 0]] for j in range(len(self.states))])

    def _level(self, k: int, time: arb, inside: arb) -> tuple[arb, arb]:
        """Value and slope of a source at a time, on the line at another one."""
        wave = self.waves.get(self.circuit.names[k])
        if wave is None:
            return self.value[k], arb(0)
        t, v = [arb(x) for x in wave.times.tolist()], [arb(x) for x in wave.values.tolist()]
        if inside < t[0]:
            return v[0], arb(0)
        for j in range(len(t) - 1):
            if t[j] <= inside < t[j + 1]:
                slope = (v[j + 1] - v[j]) / (t[j + 1] - t[j])
                return v[j] + slope * (time - t[j]), slope
        return v[-1], arb(0)

    def _crossings(self, name: str) -> list[arb]:
        """When the voltage that controls a switch crosses its threshold."""
        switch = self.switches[name]
        wave = self.waves["Vc" + name[1:]]
        t, v, at = [arb(x) for x in wave.times.tolist()], [arb(x) for x in wave.values.tolist()], arb(switch.threshold)
        return [
            t[j] + (at - v[j]) * (t[j + 1] - t[j]) / (v[j + 1] - v[j])
            for j in range(len(t) - 1)
            if (v[j] - at) * (v[j + 1] - at) < 0
        ]

    def _with_sources(self, x: arb_mat, start: arb, inside: arb) -> arb_mat:
        column = [x[j, 0] for j in range(len(self.states))]
        for k in self.sources:
            column += self._level(k, start, inside)
        return arb_mat([[y] for y in column])

    def _mode(self, inside: arb) -> tuple[arb_mat, arb_mat]:
        """The system of states and sources (level and slope each); voltages and currents of all elements over it."""
        ohms = list(self.value)
        for name, switch in self.switches.items():
            k = self.circuit.element_index("Vc" + name[1:])
            closed = self._level(k, inside, inside)[0] > arb(switch.threshold)
            ohms[self.circuit.element_index(name)] = arb(switch.on if closed else switch.off)
        q, n = len(self.states), len(self.states) + 2 * len(self.sources)
        held = [k for k, kind in enumerate(self.kind) if kind in "CV"]
        size = self.nodes - 1 + len(held)
        matrix, right = arb_mat(size, size), arb_mat(size, n)
        column = {k: j for j, k in enumerate(self.states)} | {k: q + 2 * j for j, k in enumerate(self.sources)}
        for k, (a, b) in enumerate(self.ends):
            pairs = [(node - 1, sign) for node, sign in ((a, 1), (b, -1)) if node > 0]
            if self.kind[k] in "RS":
                for i, s in pairs:
                    for j, t in pairs:
                        matrix[i, j] = matrix[i, j] + s * t / ohms[k]
            elif self.kind[k] in "CV":
                row = self.nodes - 1 + held.index(k)
                for i, s in pairs:
                    matrix[row, i] = matrix[row, i] + s
                    matrix[i, row] = matrix[i, row] + s
                right[row, column[k]] = arb(1)
            else:
                for i, s in pairs:
                    right[i, column[k]] = right[i, column[k]] - s
        found = matrix.solve(right)
        rows = arb_mat(2 * len(self.ends), n)
        for k, (a, b) in enumerate(self.ends):
            for c in range(n):
                v = (found[a - 1, c] if a > 0 else arb(0)) - (found[b - 1, c] if b > 0 else arb(0))
                rows[2 * k, c] = v
                if self.kind[k] in "RS":
                    rows[2 * k + 1, c] = v / ohms[k]
                elif self.kind[k] in "CV":
                    rows[2 * k + 1, c] = found[self.nodes - 1 + held.index(k), c]
                else:
                    rows[2 * k + 1, c] = arb(1 if c == column[k] else 0)
        system = arb_mat(n, n)
        for j, k in enumerate(self.states):
            for c in range(n):
                system[j, c] = rows[2 * k + (self.kind[k] == "C"), c] / self.value[k]
        for j in range(len(self.sources)):
            system[q + 2 * j, q + 2 * j + 1] = arb(1)
        return system, rows

    def at(self, time: float) -> np.ndarray:
        """Voltage and current of each element (m, 2)."""
        t = arb(time)
        at = max(k for k, start in enumerate(self.starts) if k == 0 or start <= t)
        system, rows, z = self.spans[at]
        now = rows * ((system * (t - self.starts[at])).exp() * z)
        found = []
        for j in range(now.nrows()):
            y = now[j, 0]
            assert y.rad() < 1e-50 * abs(y.mid()) + 1e-90, "more bits are needed"
            found.append(float(y.mid()))
        return np.reshape(found, (-1, 2))
