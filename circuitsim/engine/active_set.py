"""The active-set loop for operating points: which ideal diodes conduct, by semismooth Newton steps, and what to do when
these cycle.

A diode's voltage d and current i are parametrised by w = d + ρ i: d = min(w, 0), i = max(w, 0)/ρ (Minty 1962). A
Newton step in w is one linear circuit, in which diodes with w > 0 are shorts and all others are open: the primal–dual
active-set method (Hintermüller, Ito & Kunisch 2003).

    first guess     Douglas–Rachford steps (`nodal.Potentials.guess`)
    plain steps     on node voltages in doubles; the next w of a diode is its voltage or its current
    safeguard       the method of multipliers (Rockafellar 1976), which converges if an operating point exists
    refined steps   plain steps on refined branch currents, for signs that doubles do not resolve
    dual method     one diode at a time (`circuitsim.engine.dual`), where refined steps do not terminate

The safeguard's proximal steps minimise, over the node voltages v at currents y of the diodes,

    φ(v) = ½ vᵀLv − Jᵀv + Σ max(w, 0)²/(2r),    w = Bv + r y,

which is convex and once differentiable, by semismooth Newton steps with an exact line search (Li, Sun & Toh 2018), to a
relative error (Solodov & Svaiter 1999). Then y becomes max(w, 0)/r, and r falls. Plain steps from there end it.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from circuitsim.engine import nodal
from circuitsim.engine.dual import solve_dual
from circuitsim.engine.network import Network
from circuitsim.engine.nodal import Potentials, Step
from circuitsim.engine.refinement import LinearPoint, kkt_violations, solve_linear
from circuitsim.errors import ConvergenceError
from circuitsim.solvers.linear import Factored

PLAIN, AGAIN, REFINED = 6, 2, 12
"""Numbers of consecutive plain steps without a new minimum of violations after which they end: at first, after a
proximal step, and with refined currents."""

PROXIMAL, INNER, SHRINK, ENOUGH = 20, 40, 0.03, 0.1
"""Maximum number of proximal steps, and of Newton steps in each; factor of r from one to the next; tolerance of the
error in power, relative to r (i − y)² of all diodes."""

HELD = 1e-9
"""Fraction of its conductance that a blocking diode keeps in Newton steps of parts tied to ground by diodes alone."""

STILL, STUCK = 0.999, 5
"""A Newton step that keeps more than this fraction of the decrement, this often in a row, is stalled by rounding."""

DIGITS = 1e-12
"""Lower bound on r y relative to the voltages at a diode's ends, below which rounding of these would be a current."""

WIDE = 1e16
"""Ratio of conductances beyond which some branch voltages have no correct digit in doubles."""

PLACES = 4
"""Maximum number of linear circuits solved to move components without a path to ground closer to 0 V."""


class Circuits(Protocol):
    """Linear circuits of one network at different sets of conducting diodes."""

    count: int
    """Linear circuits solved."""

    def conducting(self, current: np.ndarray) -> np.ndarray:
        """Initial conducting diodes (positions among them), most important first, from their currents (d,), A."""

    def solve(self, conducting: np.ndarray) -> Step:
        """The linear circuit in which these diodes conduct; where they close loops, the first ones do."""


def plain(circuits: Circuits, conducting: np.ndarray, patience: int, limit: int) -> tuple[Step, bool]:
    """Newton steps until no diode is in the wrong state; returns the last step and whether there is no violation left.

    They stop when a set of conducting diodes recurs, after ``patience`` steps without a new minimum of violations, or
    at ``limit`` linear circuits.
    """
    seen: set[bytes] = set()
    fewest, idle = float("inf"), 0
    while True:
        step = circuits.solve(conducting)
        idle = 0 if step.wrong < fewest else idle + 1
        fewest = min(fewest, step.wrong)
        if not step.wrong or step.key in seen or idle > patience or circuits.count >= limit:
            return step, not step.wrong
        seen.add(step.key)
        conducting = step.following


def multipliers(voltages: Potentials, circuits: Circuits, step: Step, limit: int) -> tuple[Step, bool]:
    """The safeguard: proximal steps on the diode currents, each followed by a few plain steps.

    Does nothing where conductances differ by more than `WIDE`.

    Parameters
    ----------
    voltages : Potentials
        For the proximal steps.
    circuits : Circuits
        For the plain steps.
    step : Step
        The last plain step.
    limit : int
        Maximum number of linear circuits.
    """
    energy, g = Energy(voltages), voltages.net.resistances.conductances
    ended, failed = False, 0 if g.max(initial=0.0) <= WIDE * g.min(initial=np.inf) else 2
    for _ in range(PROXIMAL):
        if ended or failed > 1 or circuits.count >= limit:
            break
        failed += not energy.proximal_step()
        step, ended = plain(circuits, circuits.conducting(energy.currents()), AGAIN, limit)
        energy.shrink()
    return step, ended


class Energy:
    """The objective φ of the current proximal step.

    Attributes
    ----------
    x : (n + 1,) float array
        Voltages of the super-nodes, V.
    y : (k,) float array
        Currents of the diodes between different super-nodes, A.
    ohms : (k,) float array
        r, Ω.
    """

    def __init__(self, circuits: Potentials) -> None:
        guess, net, plan = circuits.guess(), circuits.net, circuits.plan
        self._circuits, self._there, self._solver = circuits, circuits.there, net.resistances.direct
        self._line, self.y, self.x = 1.0 / guess.siemens[self._there], guess.current[self._there], guess.x
        self.ohms, self._share = self._line, 1.0
        first = np.append(plan.resistor_first, plan.anode[self._there])
        second = np.append(plan.resistor_second, plan.cathode[self._there])
        self._a, self._b, self._r = plan.coordinate[first], plan.coordinate[second], plan.resistor.size
        self._held, self._g = circuits.offset[first] - circuits.offset[second], net.resistances.siemens
        self._reach = np.abs(circuits.offset[first]) + np.abs(circuits.offset[second])
        self._injected = np.bincount(plan.coordinate, circuits.injected, plan.n + 1)
        self._factored: Factored | None = None
        self._weak = 0.0 if net.structure.grounded else HELD

    def proximal_step(self) -> bool:
        """Minimise φ by Newton's method, then set ``y`` to the currents there; returns whether it has converged."""
        last, still, ohms, y = np.inf, 0, self.ohms, self.y
        drop = self.x[self._a] - self.x[self._b] + self._held
        for _ in range(INNER):
            w = drop[self._r :] + ohms * y
            on = w > 0.0
            self.y = np.where(on, w / ohms, 0.0)
            current = np.append(self._g * drop[: self._r], self.y)
            left = self._injected - np.bincount(self._a, current, self.x.size)
            left += np.bincount(self._b, current, self.x.size)
            self._factored = self._solver.with_conductances(np.where(on, 1.0, self._weak) / ohms, self._factored)
            self._circuits.count += 1
            step = self._factored.solve(left[:-1])
            decrement = float(left @ step)
            if decrement <= ENOUGH * float((ohms * (self.y - y) ** 2).sum()):
                return True
            still = still + 1 if decrement > STILL * last else 0
            if still == STUCK:
                return False
            last, change = decrement, step[self._a] - step[self._b]
            curvature = float((self._g * change[: self._r] ** 2).sum())
            share = least_energy(curvature, decrement, w, change[self._r :], ohms)
            self.x = self.x + share * step
            drop = self.x[self._a] - self.x[self._b] + self._held
            w = drop[self._r :] + ohms * y
            if share == 1.0 and ((w > 0.0) == on).all():
                self.y = np.where(on, w / ohms, 0.0)
                return True
        return False

    def currents(self) -> np.ndarray:
        """Currents of all diodes (d,), A."""
        found = np.zeros(self._circuits.siemens.size)
        found[self._there] = self.y
        return found

    def shrink(self) -> None:
        """Reduce r, as far as the rounding of the voltages permits."""
        self._share *= SHRINK
        reach = (np.abs(self.x[self._a]) + np.abs(self.x[self._b]) + self._reach)[self._r :]
        with np.errstate(divide="ignore", invalid="ignore"):
            resolved = DIGITS * reach / self.y
        self.ohms = np.minimum(self._line, np.fmax(self._share * self._line, resolved))


def least_energy(curvature: float, decrement: float, w: np.ndarray, change: np.ndarray, ohms: np.ndarray) -> float:
    """Exact line search: the fraction of a Newton step that minimises φ, whose slope along it starts at
    −``decrement``."""
    from scipy.optimize import brentq

    start = np.maximum(w, 0.0)

    def slope(share: float) -> float:
        diodes = (np.maximum(w + share * change, 0.0) - start) / ohms
        return share * curvature - decrement + float(diodes @ change)

    end = 1.0
    if abs(slope(end)) <= 1e-6 * decrement:
        return end
    while slope(end) < 0.0 and end < 1e30:
        end *= 4.0
    return float(brentq(slope, 0.0, end, xtol=1e-12 * end, rtol=1e-10)) if slope(end) > 0.0 else end


class Refined:
    """Linear circuits with refined branch currents.

    Parameters
    ----------
    net : Network
    guess : (m,) float array
        Initial branch currents, A.
    anchor : (n_nodes,) float array
        Potentials that components without a path to ground are kept close to, V.
    factored : Factored or None
        The nodal matrix at any set; consumed.
    count : int
        Linear circuits solved before.
    """

    point: LinearPoint

    def __init__(
        self, net: Network, guess: np.ndarray, anchor: np.ndarray, factored: Factored | None, count: int
    ) -> None:
        self.net, self.count, self._guess, self._anchor, self._factored = net, count, guess, anchor, factored

    def conducting(self, current: np.ndarray) -> np.ndarray:
        """See `Circuits.conducting`: a forest that carries these currents, except those around loops."""
        coordinate, d = self.net.structure.coordinate, self.net.diodes
        flow = nodal.without_loops(coordinate[self.net.first[d]], coordinate[self.net.second[d]], current)
        return nodal.falling(flow, flow > 0.0)

    def solve(self, conducting: np.ndarray) -> Step:
        """See `Circuits.solve`."""
        d, self.count = self.net.diodes, self.count + 1
        self.point = point = solve_linear(self.net, d[conducting], self._guess, self._anchor, self._factored)
        self._guess, self._anchor, self._factored = point.current, point.v, point.factored
        found, on = kkt_violations(point), point.closed.copy()
        key = np.packbits(on[d]).tobytes()
        on[found.leave] = False
        following = np.append(np.searchsorted(d, found.enter), nodal.falling(point.current[d], on[d]))
        return Step(key, found.leave.size + found.enter.size, following)

    def settle(self, anchor: np.ndarray) -> None:
        """Move components without a path to ground to the potentials ``anchor``, or as close as blocking diodes allow.

        Earlier sets may have driven them so far that doubles do not resolve their drops. A diode that would be violated
        conducts zero current.
        """
        point, free = self.point, self.point.tree.root_of == np.arange(self.net.n_nodes)
        free[self.net.structure.roots] = False
        if (point.v[free] == anchor[free]).all():
            return
        conducting = np.searchsorted(self.net.diodes, np.flatnonzero(point.closed))
        self._guess, self._factored = point.current, None
        for _ in range(PLACES):
            self._anchor = anchor
            step = self.solve(conducting)
            if not step.wrong:
                return
            conducting = step.following
        self.point = point


def solve_active_set(
    net: Network,
    closed: np.ndarray,
    guess: np.ndarray,
    anchor: np.ndarray,
    limit: int,
    factored: Factored | None = None,
) -> tuple[LinearPoint, int]:
    """The steady state from the conducting diodes ``closed``, and the linear circuits solved.

    Parameters
    ----------
    net : Network
    closed : int array
        Initial conducting diodes, most important first.
    guess : (m,) float array
        Initial branch currents, A.
    anchor : (n_nodes,) float array
        Potentials that components without a path to ground are kept close to, V.
    limit : int
        Maximum number of linear circuits before the dual method takes over, which may solve more (`solve_dual`).
    factored : Factored, optional
        The nodal matrix at any set; consumed.

    Raises
    ------
    ConvergenceError
        The dual method failed too, or ``limit`` is zero.
    """
    if limit < 1:
        raise ConvergenceError("the iteration limit is zero")
    conducting, done, doubles = np.searchsorted(net.diodes, closed), 0, nodal.suits(net)
    if doubles:
        circuits = Potentials(net, factored)
        if not closed.size and limit > 1 and net.laplacian.direct:
            conducting = circuits.conducting(circuits.guess().current)
        step, ended = plain(circuits, conducting, PLAIN, limit)
        if not ended:
            step, _ = multipliers(circuits, circuits, step, limit)
        conducting, guess, factored, done = step.following, circuits.currents(), circuits.factored, circuits.count
    refined = Refined(net, guess, anchor, factored, done)
    step, ended = plain(refined, conducting, REFINED, done + limit)
    if not (doubles or ended):
        _, ended = multipliers(Potentials(net), refined, step, limit)
    if not ended:
        refined.point, dual = solve_dual(net, np.flatnonzero(refined.point.closed), refined.point.current, limit)
        refined.count += dual
    refined.settle(anchor)
    return refined.point, refined.count
