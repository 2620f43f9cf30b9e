"""A batch solver that is slow and independent: one prepared circuit, one sample after the other, dense algebra.

It has the interface of `circuitsim.analysis.batched.batched` and shares nothing with it: nudges become elements of the
circuit (a negative conductance by iterating its current), the adjoint is a dense system on merged nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.analysis import prepared
from circuitsim.circuit.elements import DIODE, INDUCTOR, RESISTOR, VOLTAGE


class Solution(NamedTuple):
    voltages: np.ndarray
    closed: np.ndarray
    currents: np.ndarray
    relative: np.ndarray
    certified: np.ndarray
    output: np.ndarray
    iterations: int


class SlowBatch:
    def __init__(self, circuit, inputs, outputs, tolerance=1e-9):
        self.circuit, self.inputs, self.outputs, self.tolerance = circuit, list(inputs), list(outputs), tolerance
        self.p, self.q = (np.array([circuit.node_index(pair[k]) for pair in outputs]) for k in (0, 1))

    def with_values(self, value):
        kind = self.circuit.arrays().kind
        names = [self.circuit.names[k] for k in np.flatnonzero(kind != DIODE)]
        values = dict(zip(names, np.asarray(value)[kind != DIODE].tolist()))
        return SlowBatch(self.circuit.with_values(values), self.inputs, self.outputs, self.tolerance)

    def solve(self, values, injected=None, stiffness=0.0, start=None):
        circuit = self.circuit.with_values({})
        for k, (p, q) in enumerate(self.outputs):
            circuit.current_source(f"Inudge{k}", q, p, 0.0)
            if stiffness > 0:
                circuit.resistor(f"Rnudge{k}", p, q, 1.0 / stiffness)
        m = len(self.circuit)
        ready = prepared(circuit, tolerance=self.tolerance)
        injected = np.zeros((len(values), len(self.outputs))) if injected is None else injected
        rows = []
        for x, current in zip(values, injected):
            named = dict(zip(self.inputs, x.tolist()))
            push = np.array(current)
            for _ in range(500 if stiffness < 0 else 1):
                op = ready.solve(named | {f"Inudge{k}": float(a) for k, a in enumerate(push)})
                out = op.voltages[self.p] - op.voltages[self.q]
                again = current - min(stiffness, 0.0) * out
                if np.abs(again - push).max() <= 1e-15 * np.abs(again).max():
                    break
                push = again
            rows.append((op.voltages, op.currents[:m], out, op.certificate.worst))
        voltages, currents, output, worst = (np.array(column) for column in zip(*rows))
        closed = currents[:, self.circuit.arrays().kind == DIODE] > 0.0
        return Solution(voltages, closed, currents, worst, worst <= self.tolerance, output, 1)

    def _merged(self, closed):
        """(n_nodes, groups) matrix P: v = P u + offsets; and H = Pᵀ L P."""
        kind, first, second, value, n = self.circuit.arrays()
        joins = (kind == VOLTAGE) | (kind == INDUCTOR) | ((kind == RESISTOR) & (value == 0))
        joins[np.flatnonzero(kind == DIODE)[closed]] = True
        group = np.arange(n)
        for k in np.flatnonzero(joins):
            a, b = group[first[k]], group[second[k]]
            group[group == max(a, b)] = min(a, b)
        free = [g for g in np.unique(group) if g != 0]
        P = (group[:, None] == np.array(free)[None, :]).astype(float)
        L = np.zeros((n, n))
        for k in np.flatnonzero((kind == RESISTOR) & (value != 0)):
            a, b, g = first[k], second[k], 1.0 / value[k]
            L[[a, b], [a, b]] += g
            L[[a, b], [b, a]] -= g
        touched = np.zeros(n, bool)
        touched[first] = touched[second] = True
        P = P[:, [bool(touched[P[:, c] > 0].any()) for c in range(P.shape[1])]]
        return P, P.T @ L @ P

    def incidence(self):
        B = np.zeros((len(self.outputs), self.circuit.arrays().n_nodes))
        B[np.arange(len(B)), self.p], B[np.arange(len(B)), self.q] = 1.0, -1.0
        return B

    def adjoint(self, solution, cotangent):
        out, currents = np.zeros_like(solution.voltages), np.zeros_like(solution.currents)
        for b, cot in enumerate(cotangent):
            P, H = self._merged(solution.closed[b])
            push = -self.incidence().T @ cot
            out[b] = P @ np.linalg.solve(H, P.T @ push)
            currents[b] = self._branch_currents(out[b], push, solution.closed[b])
        return out, currents

    def _branch_currents(self, v, push, closed):
        """Resistors by Ohm's law; sources and conducting diodes carry what is left at the nodes, by least squares."""
        kind, first, second, value, n = self.circuit.arrays()
        ohmic = (kind == RESISTOR) & (value != 0)
        current = np.where(ohmic, (v[first] - v[second]) / np.where(ohmic, value, 1.0), 0.0)
        rigid = (kind == VOLTAGE) | (kind == INDUCTOR) | ((kind == RESISTOR) & ~ohmic)
        rigid[np.flatnonzero(kind == DIODE)[closed]] = True
        edges = np.flatnonzero(rigid)
        need = push - np.bincount(first, current, n) + np.bincount(second, current, n)
        incidence = np.zeros((n, edges.size))
        incidence[first[edges], np.arange(edges.size)] += 1.0
        incidence[second[edges], np.arange(edges.size)] -= 1.0
        current[edges] = np.linalg.lstsq(incidence, need, rcond=None)[0]
        return current

    def output_conductance(self, closed):
        """S = (B H⁻¹ Bᵀ)⁻¹ with these diodes conducting."""
        P, H = self._merged(closed)
        B = self.incidence() @ P
        return np.linalg.inv(B @ np.linalg.solve(H, B.T))

    def stiffness_limit(self):
        n_diodes = int((self.circuit.arrays().kind == DIODE).sum())
        return float(np.linalg.eigvalsh(self.output_conductance(np.zeros(n_diodes, bool))).min())


def slow_batched(circuit, inputs, outputs, tolerance=1e-9):
    return SlowBatch(circuit, inputs, outputs, tolerance)
