"""Operating points of all blocks in turn: states of all diodes, and proofs about others.

In rational arithmetic (`circuitsim.controlled.rational`) each answer is proven; in double precision, for larger
circuits, only where error bounds decide all states.

As sources move from one operating point to new values, q(t) = q_before + t (q_now − q_before), the basic variables for
given states are affine in t. Where the first one changes sign its diode changes state, and the path continues unless t
turns back there (a fold): the branch has ended, and the circuit jumps.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from circuitsim.controlled.blocks import Block, port_values
from circuitsim.controlled.equations import Equations
from circuitsim.controlled.lemke import lemke
from circuitsim.controlled.matrices import EPS
from circuitsim.controlled.ports import Hybrid, Ports, ports_from_base
from circuitsim.controlled.rational import Solutions
from circuitsim.controlled.states import ALL, CLEAR, Found, enumerated, holds, searched, sizes, tried, values


def followed(problem: Hybrid, ports: Ports, volts: np.ndarray, amperes: np.ndarray) -> tuple[np.ndarray | None, bool]:
    """Basic variables on the branch of an operating point, and whether the branch ended before the new sources.

    Parameters
    ----------
    problem, ports
        For the new sources.
    volts, amperes : (d,) float arrays
        Voltages of the diodes, and their currents times ρ, V, at the operating point to continue.
    """
    now, m, d = problem.constant, problem.matrix, volts.size
    before = _constant_at(problem, volts, amperes)
    basic = problem.basic(amperes > 0.0)
    if holds(now, m, basic):
        return basic, False
    at = 0.0
    for _ in range(20 * d + 20):
        table = np.where(basic, -m, np.eye(d))
        try:
            here, slope = np.linalg.solve(table, np.stack([before, now - before], axis=1)).T
        except np.linalg.LinAlgError:
            return None, True
        ends = np.where(slope < 0.0, here / np.where(slope < 0.0, -slope, 1.0), np.inf)
        scale = sizes(now, m, basic, here + slope)
        if (here + slope >= -CLEAR * scale).all():
            return basic, False
        k = int(np.argmin(np.where(ends >= at - 1e-9, ends, np.inf)))
        at = max(at, float(ends[k]))
        turned = basic.copy()
        turned[k] = not turned[k]
        rate = _rate(m, turned, now - before, k)
        if rate is None or rate <= 0.0:
            return None, True  # beyond the fold the path runs backwards
        basic = turned
    return None, True


def _rate(m: np.ndarray, basic: np.ndarray, change: np.ndarray, k: int) -> float | None:
    """Derivative of basic variable ``k`` by t."""
    try:
        return float(np.linalg.solve(np.where(basic, -m, np.eye(basic.size)), change)[k])
    except np.linalg.LinAlgError:
        return None


def _constant_at(problem: Hybrid, volts: np.ndarray, amperes: np.ndarray) -> np.ndarray:
    """The constant for which these voltages and currents satisfy y = constant + matrix z."""
    z = np.where(problem.base, -volts, amperes)
    y = np.where(problem.base, amperes, -volts)
    return np.asarray(y - problem.matrix @ z)


TRIED = 200
"""Maximum number of combinations of block solutions that are followed."""

STATES = 1024
"""Maximum number of states of a block decided in rational arithmetic where rounding leaves them open (some seconds)."""


class Choice(NamedTuple):
    """One operating point.

    Attributes
    ----------
    conducting : (d,) bool array
    x : (size,) float array
        Unknowns in double precision.
    jumped : tuple of Block
        Blocks whose branch ended between the start and this point.
    exact : list of Fraction or None
        Unknowns (size,) without rounding.
    determined : bool
        Whether the states of the diodes determine the unknowns; otherwise only with their signs.
    """

    conducting: np.ndarray
    x: np.ndarray
    jumped: tuple[Block, ...]
    exact: list[Fraction] | None = None
    determined: bool = True


class _State(NamedTuple):
    """Unknowns of the blocks so far with bounds on their rounding (size,), conducting diodes, blocks that jumped; see
    `Choice`."""

    x: np.ndarray
    rounding: np.ndarray
    conducting: np.ndarray
    jumped: tuple[Block, ...]
    exact: list[Fraction]
    determined: bool

    def copy(self) -> _State:
        return self._replace(
            x=self.x.copy(), rounding=self.rounding.copy(), conducting=self.conducting.copy(), exact=self.exact.copy()
        )


class _Solution(NamedTuple):
    """Conducting diodes of a block (d,), z of its ports (d,), V, the same without rounding; see `Choice.determined`."""

    conducting: np.ndarray
    z: np.ndarray
    exact: list[Fraction] | None = None
    determined: bool = True


class Outcome(NamedTuple):
    """Result of the search.

    Attributes
    ----------
    choices : list of Choice
        Up to two operating points; the first is the requested one.
    proven : bool
        Whether all operating points are among them.
    failed : Block or None
        Where no operating point was found: the first block without one; its states were all tried if ``proven``.
    """

    choices: list[Choice]
    proven: bool
    failed: Block | None


class Search:
    """Depth-first search over the blocks.

    Parameters
    ----------
    eq : Equations
    order : list of Block
        All in rational arithmetic, or none.
    right : (size,) float array
    exact : list of Fraction
        The same without rounding; empty in double precision.
    start : (size,) float array, optional
        Unknowns of an operating point to continue.
    proven : bool
        Whether the equations are complete, so that a finished search is a proof.
    """

    def __init__(
        self,
        eq: Equations,
        order: list[Block],
        right: np.ndarray,
        exact: list[Fraction],
        start: np.ndarray | None = None,
        proven: bool = True,
    ) -> None:
        self.eq, self.order, self.right, self.exact, self.start = eq, order, right, exact, start
        self.proven, self.failed, self.tried = proven and all(block.proven for block in order), -1, 0

    def run(self, wanted: int = 2) -> Outcome:
        """Up to ``wanted`` operating points."""
        choices: list[Choice] = []
        size = self.eq.size
        blocking = np.zeros(self.eq.diode.size, dtype=bool)
        exact = [Fraction(0)] * len(self.exact)
        for choice in self._from(0, _State(np.zeros(size), np.zeros(size), blocking, (), exact, True)):
            if any(self._one_potential(choice, other) for other in choices):
                self.proven = False  # loops may share a current in any proportion
                continue
            choices.append(choice)
            if len(choices) == wanted:
                break
        failed = self.order[self.failed] if not choices and self.failed >= 0 else None
        return Outcome(choices, self.proven, failed)

    def _one_potential(self, one: Choice, other: Choice) -> bool:
        """Whether two operating points, hence all between them, have the same potentials."""
        if one.exact is None or other.exact is None:
            return False
        currents = set(self.eq.own.tolist())
        return all(k in currents or a == b for k, (a, b) in enumerate(zip(one.exact, other.exact)))

    def _from(self, k: int, before: _State) -> Iterator[Choice]:
        """Operating points that extend the unknowns of the blocks before ``k``."""
        state = before.copy()
        while k < len(self.order):
            block = self.order[k]
            self._put(state, block)
            k += 1
            if not block.diodes.size:
                continue
            solutions, jump = self._solutions(block, state)
            if not solutions:
                self.failed = max(self.failed, k - 1)
                return
            if len(solutions) == 1:
                state = self._taken(state, block, solutions[0], jump)
                continue
            for number, solution in enumerate(solutions):
                self.tried += 1
                if self.tried > TRIED:
                    self.proven = False
                    return
                yield from self._from(k, self._taken(state, block, solution, jump and not number))
            return
        yield Choice(state.conducting, state.x, state.jumped, state.exact or None, state.determined)

    def _put(self, state: _State, block: Block, z: list[Fraction] | None = None) -> None:
        """Fill in a block's unknowns for z of its ports, or zero."""
        state.rounding[block.columns] = 0.0
        if block.exact is None:
            found = block.linear(state.x, state.rounding, self.right)
            state.x[block.columns], state.rounding[block.columns] = found
            return
        for column, value in block.exact.unknowns(state.exact, self.exact, z).items():
            state.exact[column], state.x[column] = value, float(value)

    def _taken(self, before: _State, block: Block, solution: _Solution, jump: bool) -> _State:
        """The state extended by these states of a block's diodes."""
        state = before.copy()
        if solution.exact is not None:
            self._put(state, block, solution.exact)
        else:
            state.rounding[block.columns] = 0.0
            state.x[block.columns], state.rounding[block.columns] = block.in_states(
                state.x, state.rounding, self.right, solution.z, solution.conducting
            )
        state.conducting[block.diodes] = solution.conducting
        jumped = (*state.jumped, block) if jump else state.jumped
        return state._replace(jumped=jumped, determined=state.determined and solution.determined)

    def _solutions(self, block: Block, state: _State) -> tuple[list[_Solution], bool]:
        """The solutions of a block, the preferred one first; whether a branch ended."""
        ports = self._ports(block, state)
        problem = block.problem(ports)
        q, m = problem.constant, problem.matrix
        first, jump = None, False
        if self.start is not None:
            near = port_values(self.eq, block.diodes, self.start)
            first, jump = followed(problem, ports, *near)

        def solution(basic: np.ndarray) -> _Solution | None:
            z = ports_from_base(problem, ports, basic)
            return None if z is None else _Solution(problem.conducting(basic), z)

        if block.regular:
            basic = first if first is not None else _one(q, m)
            only = None if basic is None else solution(basic)
            if only is not None and block.exact is not None:
                only = next(iter(self._in_state(block, state, only.conducting)[0]), None)
            if only is not None:
                return [only], False
        if block.exact is not None:
            found = self._decided(block, state, ports)
        else:
            basics = enumerated(ports, problem.base) if q.size <= ALL else searched(q, m)
            self.proven = self.proven and basics.complete
            found = [one for one in map(solution, _preferred(basics, first, q, m)) if one is not None]
        if block.exact is not None and len(found) > 1:
            front = first if first is not None else lemke(q, m)
            target = None if front is None else solution(front)
            if target is not None:
                nearest = min(found, key=lambda one: float(np.abs(one.z - target.z).max()))
                found = [nearest, *(one for one in found if one is not nearest)]
        return found, jump

    def _ports(self, block: Block, state: _State) -> Ports:
        """The ports of a block, given the unknowns so far and its own for z = 0."""
        if block.exact is None:
            return block.ports(state.x, state.rounding)
        v0, i0 = (np.array(part, dtype=float) for part in block.exact.ports(state.exact))
        p, q, dp, dq = block.matrices
        return Ports(v0, i0, p, q, EPS * np.abs(v0), EPS * np.abs(i0), dp, dq)

    def _in_state(self, block: Block, state: _State, conducting: np.ndarray) -> tuple[list[_Solution], bool]:
        """The solutions in one state of a block's diodes, and whether they are all."""
        assert block.exact is not None
        try:
            found = block.exact.in_state(*block.exact.ports(state.exact), conducting.tolist())
        except ArithmeticError:
            found = Solutions([], True, True)
        made = [_Solution(conducting, np.array(z, dtype=float), z, found.determined) for z in found.points]
        return made, not found.open

    def _decided(self, block: Block, state: _State, ports: Ports) -> list[_Solution]:
        """All solutions of a block; records whether they are complete."""
        states = tried(ports)
        found: list[_Solution] = []
        candidates = np.flatnonzero(states.possible)
        if candidates.size > STATES:
            self.proven, candidates = False, candidates[:STATES]
        for k in candidates.tolist():
            here, complete = self._in_state(block, state, states.conducting[k])
            self.proven = self.proven and complete
            found += [one for one in here if all(one.exact != other.exact for other in found)]
        return found


def _one(q: np.ndarray, m: np.ndarray) -> np.ndarray | None:
    """The solution for a P-matrix: change all wrong states at once, or else follow Lemke's path."""
    basic = q < 0.0
    for _ in range(20):
        found = values(q, m, basic)
        if found is None:
            break
        wrong = found[0] < -CLEAR * found[1]
        if not wrong.any():
            return np.asarray(basic)
        basic = basic ^ wrong
    ended = lemke(q, m)
    return ended if ended is not None and holds(q, m, ended) else None


def _preferred(found: Found, first: np.ndarray | None, q: np.ndarray, m: np.ndarray) -> list[np.ndarray]:
    """The solutions with ``first`` (by default that of Lemke's path) in front."""
    front = first if first is not None else lemke(q, m)
    solutions = list(found.basic)
    if front is None or not holds(q, m, front):
        return solutions
    mine = values(q, m, front)
    assert mine is not None
    point = np.where(front, mine[0], 0.0)
    rest = []
    for basic in solutions:
        other = values(q, m, basic)
        if other is not None and np.abs(np.where(basic, other[0], 0.0) - point).max() > 1e-7 * max(
            np.abs(point).max(), np.abs(np.where(basic, other[0], 0.0)).max()
        ):
            rest.append(basic)
    return [front, *rest]
