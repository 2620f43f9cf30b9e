"""Operating points of all blocks, one after the other: states of all diodes, and what is proven about others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from circuitsim.controlled.blocks import Block, port_values
from circuitsim.controlled.follow import followed
from circuitsim.controlled.lemke import lemke
from circuitsim.controlled.linear import Pattern
from circuitsim.controlled.matrices import in_watts
from circuitsim.controlled.ports import Hybrid, Ports, ports_from_base
from circuitsim.controlled.singular import only_points
from circuitsim.controlled.states import ALL, CLEAR, Found, enumerated, holds, searched, strongly_regular, values

TRIED = 200
"""Most choices of solutions of blocks that are followed up."""


class Choice(NamedTuple):
    """One operating point.

    Attributes
    ----------
    conducting : (d,) bool array
    x : (size,) float array
        Unknowns in double precision.
    jumped : tuple of Block
        Blocks whose branch ended between the start and here.
    """

    conducting: np.ndarray
    x: np.ndarray
    jumped: tuple[Block, ...]


class _State(NamedTuple):
    """Unknowns of the blocks so far with their possible rounding (size,), conducting diodes, blocks that jumped."""

    x: np.ndarray
    rounding: np.ndarray
    conducting: np.ndarray
    jumped: tuple[Block, ...]

    def copy(self) -> _State:
        return _State(self.x.copy(), self.rounding.copy(), self.conducting.copy(), self.jumped)

    def taken(
        self, block: Block, problem: Hybrid, ports: Ports, basic: np.ndarray, jump: bool, right: np.ndarray
    ) -> _State:
        """With these states of a block's diodes."""
        z = ports_from_base(problem, ports, basic)
        assert z is not None
        state, conducting = self.copy(), problem.conducting(basic)
        state.rounding[block.columns] = 0.0
        state.x[block.columns], state.rounding[block.columns] = block.in_states(
            state.x, state.rounding, right, z, conducting
        )
        state.conducting[block.diodes] = conducting
        return state._replace(jumped=(*self.jumped, block)) if jump else state


class Outcome(NamedTuple):
    """What the search found.

    Attributes
    ----------
    choices : list of Choice
        Up to two operating points; the first is the one asked for.
    proven : bool
        Whether all operating points are among them.
    failed : Block or None
        Where no operating point was found: the first block without one; its states were all tried if ``proven``.
    """

    choices: list[Choice]
    proven: bool
    failed: Block | None


class Search:
    """Walks through the blocks.

    Parameters
    ----------
    pattern : Pattern
    order : list of Block
    right : (size,) float array
    start : (size,) float array, optional
        Unknowns of an operating point to continue.
    """

    def __init__(
        self, pattern: Pattern, order: list[Block], right: np.ndarray, start: np.ndarray | None = None
    ) -> None:
        self.pattern, self.eq, self.order, self.right, self.start = pattern, pattern.eq, order, right, start
        self.proven, self.failed, self.tried = True, -1, 0

    def run(self, wanted: int = 2) -> Outcome:
        """Up to ``wanted`` operating points."""
        choices = []
        size = self.eq.size
        blocking = np.zeros(self.eq.diode.size, dtype=bool)
        for choice in self._from(0, _State(np.zeros(size), np.zeros(size), blocking, ())):
            choices.append(choice)
            if len(choices) == wanted:
                break
        failed = self.order[self.failed] if not choices and self.failed >= 0 else None
        return Outcome(choices, self.proven, failed)

    def _from(self, k: int, before: _State) -> Iterator[Choice]:
        """Operating points with the unknowns of the blocks before ``k``."""
        state = before.copy()
        while k < len(self.order):
            block = self.order[k]
            columns = block.columns
            state.rounding[columns] = 0.0
            state.x[columns], state.rounding[columns] = block.linear(state.x, state.rounding, self.right)
            k += 1
            if not block.diodes.size:
                continue
            ports = block.ports(state.x, state.rounding)
            problem = block.problem(ports)
            solutions, jump = self._solutions(block, problem, ports, state)
            if not solutions:
                self.failed = max(self.failed, k - 1)
                return
            if len(solutions) == 1:
                state = state.taken(block, problem, ports, solutions[0], jump, self.right)
                continue
            for number, basic in enumerate(solutions):
                self.tried += 1
                if self.tried > TRIED:
                    self.proven = False
                    return
                yield from self._from(k, state.taken(block, problem, ports, basic, jump and not number, self.right))
            return
        yield Choice(state.conducting, state.x, state.jumped)

    def _solutions(self, block: Block, problem: Hybrid, ports: Ports, state: _State) -> tuple[list[np.ndarray], bool]:
        """Basic variables of the solutions of a block, the preferred one first; whether a branch ended."""
        q, m = problem.constant, problem.matrix
        first, jump = None, False
        if self.start is not None:
            near = port_values(self.eq, block.diodes, self.start)
            first, jump = followed(problem, ports, *near)
        if block.regular(problem):
            only = first if first is not None else _one(q, m)
            if only is not None:
                return [only], False

        def possible(basic: np.ndarray) -> list[np.ndarray] | None:
            conducting = state.conducting.copy()
            conducting[block.diodes] = problem.conducting(basic)
            terms = self.pattern.terms(conducting)
            found = only_points(block, terms, conducting, state.x, self.right, state.rounding)
            return None if found is None else [np.where(problem.base, -v, block.loads * i) for v, i in found]

        found = enumerated(q, m, possible) if q.size <= ALL else searched(q, m)
        self.proven = self.proven and found.complete and (problem.clear or _steady(block, problem, found))
        return _preferred(found, first, q, m), jump


def _steady(block: Block, problem: Hybrid, found: Found) -> bool:
    """Whether rounding of the constant moves the solutions, and makes or removes none."""
    watts = in_watts(problem.matrix, block.loads)
    constant = problem.constant / np.sqrt(block.loads)
    return all(strongly_regular(constant, watts, basic) for basic in found.basic)


def _one(q: np.ndarray, m: np.ndarray) -> np.ndarray | None:
    """The solution for a P-matrix: all in the wrong state change at once, else Lemke's path."""
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
    """The solutions with ``first`` (or, without one, that of Lemke's path) in front."""
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
