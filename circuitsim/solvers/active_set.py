"""Exact solution by active sets: which diodes conduct is a finite question, and each guess is one linear circuit.

`primal_dual` changes all wrong diodes at once and is nearly always done in a few rounds. Where it cycles, `dual_method`
(Goldfarb & Idnani 1983, on a spanning forest of the conducting diodes as in the network simplex method) goes on from
the same point one diode at a time; its energy rises at every step, so it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from circuitsim.errors import ConvergenceError
from circuitsim.program import QuadraticProgram
from circuitsim.program.components import component_labels
from circuitsim.program.flow import NOISE, forest_flow
from circuitsim.solvers.contracted import (
    Network,
    Settled,
    prepare,
    refined,
    respond,
    scatter,
    settle,
)
from circuitsim.solvers.doubt import beyond_doubt
from circuitsim.solvers.linear import ACCURACY, ROUGH
from circuitsim.solvers.refinement import dead_resistors
from circuitsim.solvers.solution import Solution

FAR = 1e100
"""Where a part with a net current and no path to earth ends up, V: beyond every diode that could stop it."""

BALANCED = 1e-12
"""Currents below this share of a node's scale are nothing that a certificate could mind."""

STALLED = 0.9
"""A round that leaves more than this share of the fewest wrong diodes so far is followed by one that drops none."""


class ActiveSet(NamedTuple):
    """The exact solver of every size and shape.

    Attributes
    ----------
    rounds : int
        Most rounds of the primal–dual method before the dual method takes over.
    steps : int
        Most steps of the dual method per diode.
    soon : int
        Most rounds that begin with the diodes of the solve before.
    """

    rounds: int = 40
    steps: int = 20
    soon: int = 8

    def solve(self, program: QuadraticProgram, start: np.ndarray, on: np.ndarray | None = None) -> Solution:
        """Minimise the program.

        Parameters
        ----------
        program : QuadraticProgram
            Feasible and bounded (`circuitsim.program.existence`).
        start : (n + 1,) float array
            Potentials, V, that parts left free stay near.
        on : (d,) bool array, optional
            A guess at the diodes that conduct. Otherwise the rounds begin with those of the solve before (of this
            program's structure, if any), but only where that cannot show: else with none.

        Raises
        ------
        ConvergenceError
            The diode constraints contradict each other after all: the circuit is beyond double precision.
        """
        network = prepare(program)
        memo = {} if program.memo is None else program.memo
        on = np.zeros(program.tail.size, dtype=bool) if on is None else on
        asked = bool(on.any())
        guess = on if asked else memo.pop("conducting", None)
        found, equal = None, None
        if guess is not None and not network.laplacian.iterative:
            found, equal = self._carried_on(network, start, guess)
        if found is None or (equal is None and not asked):
            found, equal = self._solved(network, start, on)
        if equal is not None:
            memo["conducting"] = equal
        return found

    def _carried_on(
        self, network: Network, start: np.ndarray, known: np.ndarray
    ) -> tuple[Solution | None, np.ndarray | None]:
        """As `_solved`, with rounds that begin with the diodes ``known`` and keep all that they can; None where these
        are not done soon.
        """
        try:
            settled, done, rounds = primal_dual(network, known, start, self.soon, keep=True)
            found, equal = canonical(network, settled) if done else (None, None)
        except ConvergenceError:
            return None, None
        return None if found is None else _solution(network, found, rounds), equal

    def _solved(self, network: Network, start: np.ndarray, on: np.ndarray) -> tuple[Solution, np.ndarray | None]:
        """The solution of rounds that begin with the diodes ``on``; where they could begin with any others, the diodes
        whose ends are equal (d,).
        """
        if network.laplacian.iterative:
            try:
                return self._approached(network, start, on), None
            except ConvergenceError:
                network = prepare(network.program, direct=True)
        settled, rounds, steps, doubt = self._rest(network, on, start)
        found, equal = canonical(network, settled)
        if found is None:
            settled = settle(network, settled.on, settled.x)  # its factor has been used up
            settled, more = self._settled_exactly(network, settled)
            rounds += more
            found, equal = canonical(network, settled)
        return _solution(network, settled if found is None else found, rounds, steps, doubt), equal

    def _rest(self, network: Network, on: np.ndarray, start: np.ndarray) -> tuple[Settled, int, int, str]:
        """Where the diodes come to rest: by rounds that begin with those that are ``on``, by rounds that begin with all
        (along a chain, diodes come on one a round but go off together), or one diode at a time.

        Returns
        -------
        settled : Settled
        rounds, steps : int
            Made by the primal–dual and by the dual method.
        doubt : str
            What to tell should the certificate fail.
        """
        settled, done, rounds = primal_dual(network, on, start, self.rounds)
        if not done:
            other, done, more = primal_dual(network, np.ones(on.size, dtype=bool), settled.x, self.rounds)
            settled, rounds = other if done else settled, rounds + more
        steps, limit = 0, self.steps * (on.size + 10)
        if not done:
            settled, steps = dual_method(network, settled, limit)
        return settled, rounds, steps, f"its diodes did not settle within {steps} steps" if steps >= limit else ""

    def _settled_exactly(self, network: Network, settled: Settled) -> tuple[Settled, int]:
        """Potentials that were rounding before may contradict a diode once they are exact: polished, after more rounds
        (how many is returned too) if it takes some.
        """
        settled = polish(network, settled)
        wrong, on = _judge(network, settled)
        if not wrong:
            return settled, 0
        again, done, rounds = primal_dual(network, on, settled.x, self.rounds, polish)
        return again if done else settled, rounds

    def _approached(self, network: Network, start: np.ndarray, on: np.ndarray) -> Solution:
        """The solution by conjugate gradients."""
        rounds = 0
        if on.size:
            rough, _, rounds = primal_dual(network, on, start, self.rounds, accuracy=ROUGH)
            start, on = rough.x, _judge(network, rough)[1]
        settled, more, steps, doubt = self._rest(network, on, start)
        settled, further = self._settled_exactly(network, settled)
        if not settled.missing <= BALANCED:
            raise ConvergenceError("conjugate gradients left currents beyond rounding: use a factorisation")
        return _solution(network, settled, rounds + more + further, steps, doubt)


def _solution(network: Network, settled: Settled, rounds: int, steps: int = 0, doubt: str = "") -> Solution:
    """What a settled circuit says; its factor is kept for other values."""
    program = network.program
    network.laplacian.keep(settled.factored)
    carrying = np.zeros(program.tail.size, dtype=bool)
    carrying[settled.forest] = True
    closed = carrying | (settled.x[program.tail] - settled.x[program.head] >= program.bound)
    info: dict[str, object] = {"rounds": rounds, "steps": steps, "linear": network.laplacian.way}
    return Solution(settled.x, "active-set", info, closed, carrying, doubt=doubt)


def primal_dual(
    network: Network,
    on: np.ndarray,
    before: np.ndarray,
    rounds: int,
    finish: Callable[[Network, Settled], Settled] = lambda network, settled: settled,
    accuracy: float = ACCURACY,
    keep: bool = False,
) -> tuple[Settled, bool, int]:
    """Drop every conducting diode with a negative current, add every violated one, until neither exists.

    Every linear circuit is handed to ``finish`` before it is judged. With ``keep``, diodes whose ends are equal stay
    closed also where fewer carry the current: good where few change, but trees that `exchange` found are forgotten.

    Returns
    -------
    settled : Settled
        The last linear circuit.
    done : bool
        Whether it is optimal; otherwise a set of diodes came back, or the rounds ran out.
    rounds : int
        Linear circuits solved.
    """
    seen: set[bytes] = set()
    fewest = network.program.tail.size + 1
    settled = finish(network, settle(network, on, before, previous=network.laplacian.kept(), accuracy=accuracy))
    for count in range(1, rounds + 1):
        wrong, on = _judge(network, settled, keep)
        if not wrong:
            return settled, not settled.stranded.any(), count
        carrying = settled.equal.copy() if keep else np.zeros(on.size, dtype=bool)
        carrying[settled.forest] = True
        many = int((on != carrying).sum())
        if many >= STALLED * fewest and (on & ~carrying).any():
            on |= carrying
        fewest = min(fewest, many)
        key = on.tobytes()
        if key in seen or count == rounds:
            return settled, False, count
        seen.add(key)
        settled = finish(network, settle(network, on, settled.x, previous=settled.factored, accuracy=accuracy))
    raise AssertionError("unreachable")


def _judge(network: Network, settled: Settled, keep: bool = False) -> tuple[bool, np.ndarray]:
    """Whether a diode conducts backwards or is held forward, and which diodes should conduct next (d,).

    With ``keep``, also those beside the forest whose ends stay equal.
    """
    program, forest = network.program, settled.forest
    negative = settled.flow < -NOISE * settled.noise
    on = violation(program, settled) > 0.0
    on[forest] = False
    wrong = bool(negative.any() or on.any())
    kept = forest[~negative]
    on[kept] = True
    if keep:
        spare = settled.equal & ~on
        if negative.any():
            part = component_labels(program.n + 1, program.tail[kept], program.head[kept])
            spare &= part[program.tail] == part[program.head]
        on |= spare
    return wrong, on


def polish(network: Network, settled: Settled) -> Settled:
    """The same linear circuit with everything that carries no current held at exactly equal potentials, and refined."""
    iterative = network.laplacian.iterative is not None
    dead = dead_resistors(network.program, settled.last, settled.w, settled.x, iterative)
    if not dead.size:
        return refined(network, settled._replace(x=settled.x.copy()), None, thorough=True)
    return settle(network, settled.on, settled.x, previous=settled.factored, dead=dead)


def canonical(network: Network, settled: Settled) -> tuple[Settled | None, np.ndarray | None]:
    """The same operating point, polished, with all diodes as shorts whose ends are equal in it.

    Which rounds led there is then forgotten, to the last bit. None where this leads elsewhere. Returns these diodes
    (d,) too, if it is beyond doubt that rounds from anywhere end with them.
    """
    for _ in range(3):
        on = _equal(network.program, settled)
        if not np.array_equal(on, settled.on):
            settled = settle(network, on, settled.x, previous=settled.factored)
        settled = polish(network, settled)
        if _judge(network, settled)[0] or settled.stranded.any():
            break
        if np.array_equal(on, _equal(network.program, settled)):
            return settled, on if beyond_doubt(network, settled) else None
    return None, None


def _equal(program: QuadraticProgram, settled: Settled) -> np.ndarray:
    """The diodes whose ends are equal (d,), be it that shorts join them or that they block nothing but rounding."""
    xt, xh = settled.x[program.tail], settled.x[program.head]
    gap = xt - xh - program.bound
    near: np.ndarray = np.abs(gap) <= NOISE * (np.abs(xt) + np.abs(xh) + np.abs(program.bound))
    return near | settled.equal


def violation(program: QuadraticProgram, settled: Settled) -> np.ndarray:
    """How far each diode is held forward, V, where that is more than rounding; else 0. Stranded parts are far away."""
    xt, xh = settled.x[program.tail], settled.x[program.head]
    gap = xt - xh - program.bound
    wrong = np.where(gap > NOISE * (np.abs(xt) + np.abs(xh) + np.abs(program.bound)), gap, 0.0)
    if settled.stranded.any():
        far = np.sign(settled.stranded)[settled.part] * FAR
        # Among the diodes that could stop a stranded part, the one it meets first counts as the most violated.
        first_met = 1.0 + 0.5 * gap / (1.0 + np.abs(gap))
        wrong += np.maximum(0.0, far[program.tail] - far[program.head]) * first_met
    return wrong


def dual_method(network: Network, settled: Settled, limit: int) -> tuple[Settled, int]:
    """Goldfarb–Idnani from the diodes that conduct forward in ``settled``; returns the optimum and the steps taken.

    Where only rounding is left to decide (a tie at exactly zero volts, say) the steps may run out: the last point comes
    back after ``limit`` steps, and exact potentials tell.
    """
    program = network.program
    on = np.zeros(program.tail.size, dtype=bool)
    on[settled.forest] = True
    steps = 0
    # A start that is optimal for its own diodes: none of them may carry a current backwards.
    while True:
        on[settled.forest] = settled.flow >= -NOISE * settled.noise
        if on[settled.forest].all():
            break
        settled, steps = settle(network, on, settled.x, previous=settled.factored), steps + 1
    while steps < limit:
        wrong = violation(program, settled)
        wrong[settled.forest] = 0.0
        if not wrong.any():
            return settled, steps
        settled, taken = _admit(network, settled, int(np.argmax(wrong)), limit - steps)
        steps += taken
    return settled, steps


def _admit(network: Network, settled: Settled, entering: int, limit: int) -> tuple[Settled, int]:
    """Let one violated diode conduct, taking out those whose current would turn negative on the way.

    The diode carries a growing current u; the potentials and the other diodes' currents change linearly with u until
    either the violation is gone (the diode joins the forest) or a diode of the forest runs dry (it leaves).
    """
    program = network.program
    n, tail, head = program.n, int(program.tail[entering]), int(program.head[entering])
    on = np.zeros(program.tail.size, dtype=bool)
    on[settled.forest] = True
    carried = 0.0
    unit = np.zeros(n + 1)
    unit[tail], unit[head] = -1.0, 1.0
    for step in range(1, limit + 1):
        rate, resistance = _response(network, settled, unit)
        shrinks = rate < -NOISE
        room = np.where(shrinks, np.maximum(settled.flow, 0.0) / np.where(shrinks, -rate, 1.0), np.inf)
        leaving = int(np.argmin(room)) if room.size else -1
        dry = float(room[leaving]) if room.size else np.inf
        enough = _current_to_admit(program, settled, entering, resistance)
        if dry == np.inf and enough == np.inf:
            raise ConvergenceError(f"the diode constraints contradict each other at {program.diode[entering]}")
        carried += min(dry, enough)
        if enough <= dry:
            on[entering] = True
            return settle(network, on, settled.x, previous=settled.factored), step
        on[settled.forest[leaving]] = False
        settled = settle(network, on, settled.x, carried * unit, settled.factored)
    return settled, limit


def _response(network: Network, settled: Settled, unit: np.ndarray) -> tuple[np.ndarray, float]:
    """Change of the forest's currents per ampere of ``unit`` (−1 at a node, +1 at another), and the resistance between.

    The resistance is 0 inside a group of conducting diodes and infinite between parts without a common path.
    """
    program = network.program
    n = program.n
    tail, head = int(np.argmin(unit)), int(np.argmax(unit))
    x = respond(settled, unit)
    need = unit - scatter(program, program.g * (x[program.a] - x[program.b]))
    rate, _ = forest_flow(n, program.tail[settled.forest], program.head[settled.forest], need, np.abs(need))
    if settled.part[tail] != settled.part[head]:
        return rate, np.inf
    return rate, x[head] - x[tail]


def _current_to_admit(program: QuadraticProgram, settled: Settled, entering: int, resistance: float) -> float:
    """Current at which the entering diode's violation is gone, A; infinite inside a group of conducting diodes."""
    tail, head = program.tail[entering], program.head[entering]
    part, stranded = settled.part, settled.stranded
    if resistance == np.inf:
        return max(stranded[part[tail]], -stranded[part[head]], 0.0)
    if resistance <= 0.0:
        return np.inf
    return max(settled.x[tail] - settled.x[head] - program.bound[entering], 0.0) / resistance
