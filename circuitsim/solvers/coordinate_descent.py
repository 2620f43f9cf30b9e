"""Exact coordinate descent (Scellier 2024, Theorem 2): each update moves one super-node to its own optimum.

Each update sets x_k to p_k = (Σ_j g_kj x_j + currents into k) / Σ_j g_kj, clipped to the bounds of the diodes at k. The
energy never increases. The fixed point is the minimum where every diode has one end at a fixed potential (layered
networks). Elsewhere the descent can get stuck: two free nodes joined by a conducting diode block each other while only
a joint move would lower the energy. The certificate detects this.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim._jit import jit
from circuitsim.program.components import by_node
from circuitsim.program.structure import QuadraticProgram, Solution

FROZEN = (
    "it is frozen: no single node moves any more, but nodes joined by a conducting diode would lower the energy by "
    "moving together"
)


class Incidence(NamedTuple):
    """A program by super-node: for node k the entries ptr[k]:ptr[k + 1] of its neighbours.

    Attributes
    ----------
    ptr, neighbour : int arrays
        Resistor neighbours.
    g, drive : float arrays
        Conductance to the neighbour (S), and that times the branch's voltage offset, oriented to k (A).
    low_ptr, low, low_bound : int, int, float arrays
        Diodes into k: x_k ≥ x[low] − low_bound.
    high_ptr, high, high_bound : int, int, float arrays
        Diodes out of k: x_k ≤ x[high] + high_bound.
    current : (n,) float array
        Injected currents, A.
    """

    ptr: np.ndarray
    neighbour: np.ndarray
    g: np.ndarray
    drive: np.ndarray
    low_ptr: np.ndarray
    low: np.ndarray
    low_bound: np.ndarray
    high_ptr: np.ndarray
    high: np.ndarray
    high_bound: np.ndarray
    current: np.ndarray


class CoordinateDescent(NamedTuple):
    """Node-wise exact coordinate descent.

    Attributes
    ----------
    moves : float
        Stop when a sweep moves no potential by more than this fraction of the largest one.
    sweeps : int
        Maximum number of sweeps.
    """

    moves: float = 1e-15
    sweeps: int = 1_000_000

    def solve(self, program: QuadraticProgram, start: np.ndarray) -> Solution:
        """Descend from the feasible point ``start`` (n + 1,) until nothing moves."""

        x = start.copy()
        done = int(descend(*incidence(program), x, self.moves, self.sweeps))
        stopped = FROZEN if done <= self.sweeps else f"nodes still move after {self.sweeps} sweeps"
        return Solution(x, "coordinate-descent", {"sweeps": min(done, self.sweeps)}, slack=1e-9, stopped=stopped)


def incidence(program: QuadraticProgram) -> Incidence:
    """The program's branches and constraints, sorted by super-node."""
    n = program.n
    ends, others = np.concatenate([program.a, program.b]), np.concatenate([program.b, program.a])
    g = np.concatenate([program.g, program.g])
    # From a, the branch pulls towards x_b − e; from b, towards x_a + e.
    drive = np.concatenate([-program.g * program.e, program.g * program.e])
    ptr, (neighbour, g, drive) = _by_node(n, ends, others, g, drive)
    low_ptr, (low, low_bound) = _by_node(n, program.head, program.tail, program.bound)
    high_ptr, (high, high_bound) = _by_node(n, program.tail, program.head, program.bound)
    return Incidence(ptr, neighbour, g, drive, low_ptr, low, low_bound, high_ptr, high, high_bound, program.c[:n])


def _by_node(n: int, node: np.ndarray, *columns: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """The columns sorted by node, and where each of the first n nodes starts."""
    ptr, position = by_node(n + 1, node)
    return ptr[: n + 1], [column[position] for column in columns]


@jit()
def descend(ptr, neighbour, g, drive, low_ptr, low, low_bound, high_ptr, high, high_bound, current, x, moves, sweeps):
    """Sweep over all nodes until the largest move is at most ``moves`` of the largest potential.

    Parameters are those of `Incidence`, then x (n + 1,), changed in place, and
    the stopping rule. Returns the number of sweeps, or ``sweeps + 1`` if nodes still moved after the last.
    """
    n = current.size
    for done in range(1, sweeps + 1):
        largest = 0.0
        size = 0.0
        for k in range(n):
            total = 0.0
            inflow = current[k]
            for j in range(ptr[k], ptr[k + 1]):
                total += g[j]
                inflow += g[j] * x[neighbour[j]] + drive[j]
            lower = -np.inf
            for j in range(low_ptr[k], low_ptr[k + 1]):
                lower = max(lower, x[low[j]] - low_bound[j])
            upper = np.inf
            for j in range(high_ptr[k], high_ptr[k + 1]):
                upper = min(upper, x[high[j]] + high_bound[j])
            if total > 0.0:
                target = inflow / total
            elif inflow > 0.0:
                target = upper
            elif inflow < 0.0:
                target = lower
            else:
                target = x[k]
            target = min(max(target, lower), upper)
            if np.isfinite(target):
                largest = max(largest, abs(target - x[k]))
                size = max(size, abs(target))
                x[k] = target
        if largest <= moves * size:
            return done
    return sweeps + 1
