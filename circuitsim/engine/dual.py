"""The dual active-set method of Goldfarb & Idnani (1983) on refined currents and potentials, used where the primal loop
(`circuitsim.engine.active_set`) does not terminate.

Every set of conducting diodes carries forward currents only. The current of one violated blocking diode rises until
its voltage is zero; a conducting diode whose current reaches zero before that leaves. Each entering diode strictly
raises the minimal energy under the constraints of the conducting diodes. So no set recurs, and there are finitely many:
in exact arithmetic the method ends at the steady state of every circuit that has one, degenerate or not (Theorem 3).
The theorem requires a strictly convex energy: components without a path of resistors and sources to ground get a small
conductance to ground (`GROUNDING`).

Linear circuits are refined, and violations below the resolution of refinement count as zero. A set that recurs by
rounding is an error, as is the limit on linear circuits (their number is exponential in the worst case).
"""

from __future__ import annotations

import numpy as np

from circuitsim.circuit.elements import RESISTOR
from circuitsim.engine.network import Network, network
from circuitsim.engine.refinement import LinearPoint, kkt_violations, solve_linear, voltages_between
from circuitsim.errors import ConvergenceError
from circuitsim.program.components import component_labels
from circuitsim.program.structure import analyse_arrays
from circuitsim.solvers.linear import Factored

GROUNDING = (1e-9, 1e-12, 1e-6)
"""Conductances to ground of floating components relative to the smallest conductance of the circuit, in turn."""

TIES = 8
"""Maximum number of changes of the final set, for floating components that touch others without a current."""

CIRCUITS = 20
"""Maximum number of linear circuits for each diode, in addition to those allowed to the primal method."""


class _Solver:
    """Linear circuits of one network, with a given current through at most one blocking diode; counts them.

    Parameters
    ----------
    net : Network
        Every node has a path of resistors and sources to ground.
    guess : (m,) float array
        Initial branch currents, A.
    limit : int
        Maximum number of linear circuits.
    """

    def __init__(self, net: Network, guess: np.ndarray, limit: int) -> None:
        self.net, self.guess, self.limit, self.count = net, guess, limit, 0
        self.anchor = np.zeros(net.n_nodes)
        self.factored: Factored | None = None

    def at(self, closed: np.ndarray, across: int | None = None, amperes: float = 0.0) -> LinearPoint:
        """The linear circuit in which ``closed`` conduct and the diode ``across`` carries a given current."""
        net = self.net
        if across is not None and amperes:
            source = net.source.copy()
            source[across] = amperes
            net = net._replace(source=source, sources=np.append(net.sources, across))
        point = self._solve(net, closed, self.guess)
        self.guess = point.current
        return point

    def response(self, closed: np.ndarray, across: int) -> LinearPoint:
        """Changes per ampere through the diode ``across``."""
        zero = np.zeros(self.net.first.size)
        source = zero.copy()
        source[across] = 1.0
        net = self.net._replace(source=source, emf=zero, sources=np.array([across]))
        return self._solve(net, closed, zero)

    def _solve(self, net: Network, closed: np.ndarray, guess: np.ndarray) -> LinearPoint:
        self.count += 1
        if self.count > self.limit:
            raise ConvergenceError(f"the dual active-set method did not end within {self.limit} linear circuits")
        point = solve_linear(net, closed, guess, self.anchor, self.factored)
        self.factored = point.factored
        return point


def solve_dual(net: Network, closed: np.ndarray, guess: np.ndarray, limit: int) -> tuple[LinearPoint, int]:
    """The steady state from the conducting diodes ``closed``, and the linear circuits solved.

    Parameters
    ----------
    net : Network
    closed : int array
        Initial conducting diodes.
    guess : (m,) float array
        Initial branch currents, A.
    limit : int
        Maximum number of linear circuits, in addition to `CIRCUITS` for each diode.

    Raises
    ------
    ConvergenceError
        A set recurred by rounding, or the limit was reached.
    """
    limit += CIRCUITS * net.diodes.size
    floating, total = _floating(net), 0
    for share in GROUNDING if floating.size else GROUNDING[:1]:
        strict = _grounded(net, floating, share) if floating.size else net
        solver = _Solver(strict, np.append(guess, np.zeros(strict.first.size - guess.size)), limit)
        found = _dual_sets(solver, closed)
        total += solver.count
        closed, current = np.flatnonzero(found.closed), found.current[: guess.size]
        anchor = _from_references(net, found.v)
        for _ in range(TIES):
            point = solve_linear(net, closed, current, anchor)
            total += 1
            wrong = kkt_violations(point)
            if not (wrong.leave.size or wrong.enter.size):
                return point, total
            closed = np.append(wrong.enter, np.setdiff1d(np.flatnonzero(point.closed), wrong.leave))
            current, anchor = point.current, point.v
    raise ConvergenceError(f"the active set did not become optimal within {total} linear circuits of the dual method")


def _dual_sets(solver: _Solver, closed: np.ndarray) -> LinearPoint:
    """The linear circuit at the optimal set."""
    seen: set[bytes] = set()
    while True:
        point = solver.at(closed)
        wrong = kkt_violations(point)
        closed = np.flatnonzero(point.closed)
        if wrong.leave.size:  # only before the first diode enters, except for rounding
            closed = np.setdiff1d(closed, wrong.leave)
            continue
        if not wrong.enter.size:
            return point
        key = closed.tobytes()
        if key in seen:
            raise ConvergenceError("the dual active-set method cycles because of rounding")
        seen.add(key)
        closed = _enter(solver, point, int(wrong.enter[0]))


def _enter(solver: _Solver, point: LinearPoint, entering: int) -> np.ndarray:
    """The conducting diodes after the current of ``entering`` has risen until its voltage is zero."""
    amperes = 0.0
    while True:
        closed = np.flatnonzero(point.closed)
        change = solver.response(closed, entering)
        falls = -_forward(change, entering)
        full = max(_forward(point, entering), 0.0) / falls if falls > 0.0 else np.inf
        slope = change.current[closed]
        reduced = slope < -4.0 * change.correction[closed]
        steps = np.maximum(point.current[closed[reduced]], 0.0) / -slope[reduced]
        shortest = steps.min(initial=np.inf)
        if full <= shortest:
            if full == np.inf:
                raise ConvergenceError("a loop of sources and conducting diodes has a nonzero voltage")
            return np.append(closed, entering)
        amperes += float(shortest)
        leaving = closed[reduced][np.argmin(steps)]
        point = solver.at(closed[closed != leaving], entering, amperes)


def _forward(point: LinearPoint, diode: int) -> float:
    """Forward voltage of a diode, V."""
    return float(voltages_between(point, np.array([diode]))[0])


def _floating(net: Network) -> np.ndarray:
    """A node of each component that resistors and sources do not connect to ground."""
    edges = np.concatenate([net.fixed, net.ascending])
    label = component_labels(net.n_nodes, net.first[edges], net.second[edges])
    touched = np.zeros(net.n_nodes, dtype=bool)
    touched[net.first] = touched[net.second] = True
    return np.flatnonzero((label == np.arange(net.n_nodes)) & touched & (label != label[0]))


def _grounded(net: Network, floating: np.ndarray, share: float) -> Network:
    """The network with a resistor from each ``floating`` node to ground, of this fraction of the smallest
    conductance."""
    kind, first, second, _, _ = net.structure.arrays
    ohms = np.full(floating.size, max(float(net.ohms.max(initial=0.0)), 1e-30) / share)
    arrays = net.structure.arrays._replace(
        kind=np.append(kind, np.full(floating.size, RESISTOR, dtype=kind.dtype)),
        first=np.append(first, floating),
        second=np.append(second, np.zeros(floating.size, dtype=second.dtype)),
        value=np.append(net.ohms + net.emf + net.source, ohms),
    )
    return network(analyse_arrays(arrays), direct=True)


def _from_references(net: Network, v: np.ndarray) -> np.ndarray:
    """Potentials relative to the reference of each part without ground, V."""
    carries = np.concatenate([net.fixed, net.ascending, net.diodes])
    part = component_labels(net.n_nodes, net.first[carries], net.second[carries])
    return v - np.where(part == part[0], 0.0, v[part])
