"""Operating points of all blocks, one after the other: states of all diodes, and what is proven about others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from circuitsim.controlled.blocks import Block, port_values
from circuitsim.controlled.equations import Equations
from circuitsim.controlled.follow import followed
from circuitsim.controlled.lemke import lemke
from circuitsim.controlled.ports import Hybrid, Ports, ports_from_base
from circuitsim.controlled.states import ALL, CLEAR, Found, enumerated, holds, searched, values

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
    eq : Equations
    order : list of Block
    right : (size,) float array
    start : (size,) float array, optional
        Unknowns of an operating point to continue.
    """

    def __init__(
        self, eq: Equations, order: list[Block], right: np.ndarray, start: np.ndarray | None = None
    ) -> None:
        self.eq, self.order, self.right, self.start = eq, order, right, start
        self.proven, self.failed, self.tried = True, -1, 0

    def run(self, wanted: int = 2) -> Outcome:
        """Up to ``wanted`` operating points."""
        choices = []
        conducting = np.zeros(self.eq.diode.size, dtype=bool)
        for choice in self._from(0, np.zeros(self.eq.size), conducting, ()):
            choices.append(choice)
            if len(choices) == wanted:
                break
        failed = self.order[self.failed] if not choices and self.failed >= 0 else None
        return Outcome(choices, self.proven, failed)

    def _from(
        self, k: int, x: np.ndarray, conducting: np.ndarray, jumped: tuple[Block, ...]
    ) -> Iterator[Choice]:
        """Operating points with the unknowns of the blocks before ``k``."""
        x, conducting = x.copy(), conducting.copy()
        while k < len(self.order):
            block = self.order[k]
            found, doubt = block.linear(x, self.right)
            if not block.diodes.size:
                x[block.columns] = found
                k += 1
                continue
            ports = block.ports(x, found, doubt)
            problem = block.problem(ports)
            solutions, jump = self._solutions(block, problem, ports)
            if len(solutions) > 1:
                for number, basic in enumerate(solutions):
                    self.tried += 1
                    if self.tried > TRIED:
                        self.proven = False
                        return
                    self._take(block, problem, ports, basic, found, x, conducting)
                    yield from self._from(k + 1, x, conducting, (*jumped, block) if jump and not number else jumped)
                return
            if not solutions:
                self.failed = max(self.failed, k)
                return
            self._take(block, problem, ports, solutions[0], found, x, conducting)
            jumped = (*jumped, block) if jump else jumped
            k += 1
        yield Choice(conducting, x, jumped)

    def _take(
        self, block: Block, problem: Hybrid, ports: Ports, basic: np.ndarray, found: np.ndarray, x: np.ndarray,
        conducting: np.ndarray,
    ) -> None:  # fmt: skip
        z = ports_from_base(problem, ports, basic)
        assert z is not None
        x[block.columns] = found + block.response @ z
        conducting[block.diodes] = problem.conducting(basic)

    def _solutions(self, block: Block, problem: Hybrid, ports: Ports) -> tuple[list[np.ndarray], bool]:
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
        found = enumerated(q, m) if q.size <= ALL else searched(q, m)
        self.proven = self.proven and found.complete and problem.clear
        return _preferred(found, first, q, m), jump


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
