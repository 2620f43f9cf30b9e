"""Operating points of all blocks in turn: states of all diodes, and proofs about others.

In rational arithmetic (`circuitsim.controlled.rational`) each answer is proven; in double precision, for larger
circuits, only where all blocks have P-matrices.

As sources move from one operating point to new values, q(t) = q_before + t (q_now − q_before), the basic variables for
given states are affine in t. Where the first one changes sign its diode changes state, and the path continues unless t
turns back there (a fold): the branch has ended, and the circuit jumps.

Where every block has a P-matrix there is one operating point for any sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from circuitsim.controlled.blocks import Block, Inverse, p_matrix, port_values
from circuitsim.controlled.equations import Equations, RawBlock
from circuitsim.controlled.linear import Terms, factored, scaled
from circuitsim.controlled.matrices import EPS, in_watts
from circuitsim.controlled.ports import Hybrid, Ports, ports_from_base
from circuitsim.controlled.rational import LARGEST as BLOCK
from circuitsim.controlled.rational import RationalBlock, Read, binary, decimal
from circuitsim.controlled.states import ALL, CLEAR, holds, lemke, same, searched, sizes, tried


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
    x : (size,) array
        Unknowns: floats, or fractions without rounding.
    jumped : tuple of Block
        Blocks whose branch ended between the start and this point.
    determined : bool
        Whether the states of the diodes determine the unknowns; otherwise only with their signs.
    """

    conducting: np.ndarray
    x: np.ndarray
    jumped: tuple[Block, ...] = ()
    determined: bool = True


class _Solution(NamedTuple):
    """Conducting diodes of a block (d,), z of its ports (d,), V; see `Choice`."""

    conducting: np.ndarray
    z: np.ndarray
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
    right : (size,) array
        Fractions if the blocks are in rational arithmetic, otherwise floats.
    start : (size,) float array, optional
        Unknowns of an operating point to continue.
    proven : bool
        Whether the equations are complete, so that a finished search is a proof.
    """

    def __init__(
        self, eq: Equations, order: list[Block], right: np.ndarray, start: np.ndarray | None = None, proven: bool = True
    ) -> None:
        self.eq, self.order, self.right, self.start = eq, order, right, start
        self.exact, self.rounding = right.dtype == object, np.zeros(right.size)
        self.proven, self.failed, self.tried = proven and all(block.proven for block in order), -1, 0

    def run(self, wanted: int = 2) -> Outcome:
        """Up to ``wanted`` operating points."""
        choices: list[Choice] = []
        for choice in self._from(0, Choice(np.zeros(self.eq.diode.size, dtype=bool), np.zeros_like(self.right))):
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
        return self.exact and bool(np.delete(one.x == other.x, self.eq.own[self.eq.own >= 0]).all())

    def _from(self, k: int, before: Choice) -> Iterator[Choice]:
        """Operating points that extend the unknowns of the blocks before ``k``."""
        state = before._replace(x=before.x.copy())
        while k < len(self.order):
            block = self.order[k]
            state.x[block.columns] = block.unknowns(state.x, self.right)
            self.rounding[block.columns] = block.rounding(state.x, self.rounding)
            k += 1
            if not block.diodes.size:
                continue
            solutions, jump = self._solutions(block, state.x)
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
        yield state

    def _taken(self, before: Choice, block: Block, solution: _Solution, jump: bool) -> Choice:
        """The state extended by these states of a block's diodes."""
        x, conducting = before.x.copy(), before.conducting.copy()
        x[block.columns] = block.unknowns(x, self.right, solution.z)
        conducting[block.diodes] = solution.conducting
        jumped = (*before.jumped, block) if jump else before.jumped
        return Choice(conducting, x, jumped, before.determined and solution.determined)

    def _solutions(self, block: Block, x: np.ndarray) -> tuple[list[_Solution], bool]:
        """The solutions of a block, first the one on the branch of the start, or else on Lemke's path; whether a branch
        ended."""
        ports = block.ports(x, self.rounding)
        problem = block.problem(ports)
        q, m = problem.constant, problem.matrix
        first, jump = None, False
        if self.start is not None:
            first, jump = followed(problem, ports, *port_values(self.eq, block.diodes, self.start))
        first = lemke(q, m) if first is None else first
        front = None
        if first is not None and holds(q, m, first):
            z = ports_from_base(problem, ports, first)
            front = None if z is None else _Solution(problem.conducting(first), z)
        if front is not None and block.regular:
            only = self._in_state(block, x, front)
            if only:
                return only[:1], False
        found = [front] if front is not None and not self.exact else []
        self.proven = self.proven and self.exact
        for candidate in self._enumerated(ports) if q.size <= ALL else searched(problem, ports):
            for one in self._in_state(block, x, _Solution(*candidate)):
                if not any(self._same(one.z, other.z) for other in found):
                    found.append(one)
        if front is not None and len(found) > 1:
            nearest = min(found, key=lambda one: float(np.abs(one.z - front.z).max()))
            found = [nearest, *(one for one in found if one is not nearest)]
        return found, jump

    def _in_state(self, block: Block, x: np.ndarray, one: _Solution) -> list[_Solution]:
        """The solutions in the states of another one: in double precision itself."""
        if block.exact is None:
            return [one]
        try:
            found = block.exact.in_state(*block.exact.ports(x), one.conducting.tolist())
        except ArithmeticError:
            self.proven = False
            return []
        self.proven = self.proven and not found.open
        return [_Solution(one.conducting, np.array(z), found.determined) for z in found.points]

    def _enumerated(self, ports: Ports) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """States of a block's diodes that may be solutions, and z; to rounding, in double precision."""
        states = tried(ports)
        candidates = np.flatnonzero(states.possible)
        if candidates.size > STATES:
            self.proven, candidates = False, candidates[:STATES]
        for k in candidates.tolist():
            z = states.z[k]
            if self.exact or (z <= CLEAR * np.abs(z).max()).all():
                yield states.conducting[k], z

    def _same(self, a: np.ndarray, b: np.ndarray) -> bool:
        return bool((a == b).all()) if self.exact else same(a, b)


PASSIVE = 1e-10
"""Power from all ports, relative to that of the loads ρ, that may be rounding."""

DECIDED = 50
"""Maximum number of blocks decided in rational arithmetic."""

POOR = 1e-3
"""Condition number times unit roundoff above which a large block without diodes counts as singular."""


def all_regular(
    eq: Equations,
    terms: Terms,
    exact: Callable[[int, Read], RationalBlock],
    blocks: Sequence[RawBlock],
    inverse: Mapping[int, Inverse],
    curves: np.ndarray | None = None,
) -> bool:
    """Whether every block is proven regular, and its ports to have a P-matrix or to satisfy
    `RationalBlock.one_of_curves`.

    Parameters
    ----------
    terms : Terms
        Of the matrix with all ports loaded.
    exact : callable
        A block, by its number, in rational arithmetic.
    inverse : mapping
        Of blocks, by their numbers.
    curves : (d,) int array, optional
        Curves of the diodes (`circuitsim.controlled.rational.IDEAL` …), for `RationalBlock.one_of_curves`.
    """
    large = [b for b in range(len(blocks)) if b not in inverse]
    if any(blocks[b].diodes.size for b in large):
        return False
    left = [
        b
        for b, own in inverse.items()
        if not (own.proven and (not blocks[b].diodes.size or p_matrix(own.matrices, eq.load[blocks[b].diodes])))
    ]
    if len(left) > DECIDED or any(
        blocks[b].rows.size > BLOCK or (curves is None and blocks[b].diodes.size) for b in left
    ):
        return False
    kinds = [[] if curves is None else curves[blocks[b].diodes].tolist() for b in left]
    return all(_decided(partial(exact, b), own) for b, own in zip(left, kinds)) and all(
        _well_conditioned(terms, blocks[b]) for b in large
    )


def _decided(exact: Callable[[Read], RationalBlock], curves: list[int]) -> bool:
    """Whether exact arithmetic proves a block to have one operating point."""
    try:
        return all(exact(read).one_of_curves(curves) for read in (binary, decimal))
    except ArithmeticError:
        return False


def _well_conditioned(terms: Terms, block: RawBlock) -> bool:
    """Whether the estimated condition number (Higham & Tisseur 2000) of a large block is far from singular."""
    from scipy.sparse.linalg import LinearOperator, onenormest

    matrix, _, _ = scaled(terms.matrix()[block.rows][:, block.columns])
    try:
        lu = factored(matrix)
    except ArithmeticError:
        return False
    inverse = LinearOperator(matrix.shape, matvec=lu.solve, rmatvec=lambda x: lu.solve(x, trans="T"))
    condition = onenormest(inverse) * abs(matrix).sum(axis=0).max()
    return bool(condition * EPS < POOR)


def all_monotone(eq: Equations, blocks: Sequence[RawBlock], inverse: Mapping[int, Inverse]) -> bool:
    """Whether the rest of every block draws no power from its diodes, except for rounding: two operating points then
    differ in nothing that dissipates, and all between them are operating points too."""
    own = [b for b, block in enumerate(blocks) if block.diodes.size]
    return all(b in inverse and _passive(inverse[b], eq.load[blocks[b].diodes]) for b in own)


def _passive(inverse: Inverse, load: np.ndarray) -> bool:
    p, q, _, _ = inverse.matrices
    power = in_watts(p, load).T @ in_watts(q, load)
    return bool(np.linalg.eigvalsh(0.5 * (power + power.T)).max() <= PASSIVE)
