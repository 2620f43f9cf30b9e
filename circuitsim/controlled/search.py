"""Block triangular form, and the operating points of all blocks in turn: states of all diodes, and proofs about others.

Every unknown is matched with an equation and depends on the other unknowns in it; the strongly connected components of
this graph are the blocks (Dulmage & Mendelsohn), the smallest sub-circuits that can be solved one after another. A
stage with a voltage output that drives the next one is a block.

In rational arithmetic (`circuitsim.controlled.rational`) each answer is proven; in double precision, for larger
circuits, only where all blocks have P-matrices: then there is one operating point for any sources.

As sources move from one operating point to new values, q(t) = q_before + t (q_now − q_before), the basic variables for
given states are affine in t. Where the first one changes sign its diode changes state, and the path continues unless t
turns back there (a fold): the branch has ended, and the circuit jumps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from circuitsim.controlled.equations import Equations, RawBlock
from circuitsim.controlled.linear import (
    EPS,
    Pattern,
    Terms,
    equilibrated,
    factored,
    in_watts,
    inverted,
    positive_definite,
    scaled,
)
from circuitsim.controlled.rational import LARGEST as BLOCK
from circuitsim.controlled.rational import RationalBlock, Read, binary, decimal
from circuitsim.controlled.states import (
    ALL,
    CLEAR,
    ROUNDING,
    Hybrid,
    Ports,
    holds,
    hybrid,
    lemke,
    p_matrix,
    ports_from_base,
    same,
    searched,
    sizes,
    tried,
    with_constant,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class StructureError(ArithmeticError):
    """Equations that cannot be matched with unknowns.

    Attributes
    ----------
    rows : (k,) int array
        These equations.
    """

    def __init__(self, rows: np.ndarray) -> None:
        super().__init__("structurally singular")
        self.rows = rows


INVERTED = 300
"""Maximum number of unknowns of a block whose regularity is proven by its inverse."""

ENTRIES = 4_000_000
"""Maximum number of entries of the inverses of all blocks."""


class Inverse(NamedTuple):
    """A block, all ports loaded.

    Attributes
    ----------
    inverse : (n, n) float array
        Unknowns by equations; zero where the block is singular.
    matrices : tuple of four (d, d) float arrays
        Responses P and Q of the ports' voltages, and of their currents times ρ, to z (`circuitsim.controlled.states`),
        and bounds on their errors, the rounding of all element values included.
    proven : bool
        Whether the block is proven to be regular.
    """

    inverse: np.ndarray
    matrices: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    proven: bool


def inverses(eq: Equations, terms: Terms, blocks: Sequence[RawBlock]) -> list[Inverse]:
    """The inverses of some blocks, batched by size: a chain of stages is many small blocks.

    Parameters
    ----------
    terms : Terms
        Of the whole matrix, all ports loaded.
    """
    sizes = np.array([block.rows.size for block in blocks])
    block_of, column_of = np.full(eq.size, -1), np.full(eq.size + 1, -1)  # the last column is ground's
    row_at, column_at = np.zeros(eq.size, dtype=np.int64), np.zeros(eq.size + 1, dtype=np.int64)
    for b, block in enumerate(blocks):
        block_of[block.rows] = column_of[block.columns] = b
        row_at[block.rows] = column_at[block.columns] = np.arange(block.rows.size)
    inside = np.flatnonzero((block_of[terms.row] >= 0) & (block_of[terms.row] == column_of[terms.column]))
    found = dict[int, Inverse]()
    for n in np.unique(sizes).tolist():
        members = np.flatnonzero(sizes == n)
        own = inside[sizes[block_of[terms.row[inside]]] == n]
        row, column = terms.row[own], terms.column[own]
        at = (np.searchsorted(members, block_of[row]) * n + row_at[row]) * n + column_at[column]
        matrix, size, count = (
            np.bincount(at, part, members.size * n * n).reshape(members.size, n, n)
            for part in (terms.value[own], np.abs(terms.value[own]), np.ones(own.size))
        )
        # Terms are quotients of products of values, each rounded, and then summed.
        for b, inverse, error in zip(members.tolist(), *inverted(matrix, (count + 4) * EPS * size)):
            diodes = blocks[b].diodes
            carriers, load = eq.own[eq.diode[diodes]], eq.load[diodes][:, None]
            ends = [
                np.where(column_of[end] == b, column_at[end], n)
                for end in (eq.plus[diodes], eq.minus[diodes], carriers)
            ]
            (plus, minus, current), (d_plus, d_minus, d_current) = (
                [np.concatenate([part[:, row_at[carriers]], np.zeros((1, diodes.size))])[end] for end in ends]
                for part in (inverse, error)
            )
            p, q = plus - minus, load * current
            off = d_plus + d_minus + EPS * np.abs(p), load * d_current + EPS * np.abs(q)
            found[b] = Inverse(inverse, (p, q, *off), bool(np.isfinite(error).all()))
    return [found[b] for b in range(len(blocks))]


class Block:
    """One block: its equations and unknowns, its diodes, and the response to z of its ports.

    Parameters
    ----------
    eq : Equations
    raw : RawBlock
    known : Inverse or RationalBlock
        For this block; in rational arithmetic doubles only order the trials.
    matrix : (size, size) csr_matrix or float array
        Of all blocks, all ports loaded.

    Raises
    ------
    ArithmeticError
        It is singular.
    """

    def __init__(
        self, eq: Equations, raw: RawBlock, known: Inverse | RationalBlock, matrix: csr_matrix | np.ndarray
    ) -> None:
        self.eq, (self.rows, self.columns, self.diodes) = eq, raw
        self.loads = eq.load[self.diodes]
        self.exact, self.proven = known if isinstance(known, RationalBlock) else None, True
        if isinstance(known, Inverse):
            self._in_doubles(known, matrix)
        else:
            p, q = (np.array(part, dtype=float).reshape(2 * self.loads.shape) for part in (known.p, known.q))
            self.matrices = p, q, EPS * np.abs(p), EPS * np.abs(q)

    def _in_doubles(self, known: Inverse, matrix: csr_matrix | np.ndarray) -> None:
        self.inverse, self.matrices, self.proven = known
        self.whole = matrix[self.rows]
        inner = self.whole[:, self.columns]
        self.inner = inner if isinstance(inner, np.ndarray) else inner.toarray()
        left, right = equilibrated(self.inner)
        if not 0.0 < (np.abs(self.inverse) / (left * right).T).max() * len(self.rows) < 1e15:
            raise ArithmeticError("singular")
        place = {int(r): k for k, r in enumerate(self.rows)}
        self.rows_of_diodes = np.array([place[int(r)] for r in self.eq.own[self.eq.diode[self.diodes]]], dtype=np.int64)

    def unknowns(self, known: np.ndarray, right: np.ndarray, z: np.ndarray | None = None) -> np.ndarray:
        """Its unknowns, given those of earlier blocks and the right-hand side (size,), for z (d,) of its ports, V, or
        zero; in rational arithmetic for fractions."""
        if self.exact is not None:
            exact = self.exact.unknowns(known, right, z)
            return np.array([exact[c] for c in self.columns.tolist()])
        outside, given = known.copy(), right[self.rows]
        outside[self.columns] = 0.0
        if z is not None:
            given[self.rows_of_diodes] += z
        wanted = given - self.whole @ outside
        found = self.inverse @ wanted
        return np.asarray(found + self.inverse @ (wanted - self.inner @ found))

    def rounding(self, x: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Bounds on the errors of its unknowns in ``x``, given those of earlier blocks' (size,)."""
        if self.exact is not None:
            return np.zeros(self.columns.size)
        known = before.copy()
        known[self.columns] = 0.0
        return np.asarray(np.abs(self.inverse) @ (abs(self.whole) @ (ROUNDING * np.abs(x) + known)))

    def ports(self, x: np.ndarray, rounding: np.ndarray) -> Ports:
        """The ports, given earlier unknowns and the block's own for z = 0 in ``x``, with bounds on their errors."""
        if self.exact is not None:
            v0, i0 = (np.array(part, dtype=float) for part in self.exact.ports(x))
            return Ports(v0, i0, *self.matrices[:2], EPS * np.abs(v0), EPS * np.abs(i0), *self.matrices[2:])
        off = port_values(self.eq, self.diodes, rounding, 1.0)
        return Ports(*port_values(self.eq, self.diodes, x), *self.matrices[:2], *off, *self.matrices[2:])

    @cached_property
    def _hybrid(self) -> Hybrid:
        return hybrid(*self.matrices[:2])

    def problem(self, ports: Ports) -> Hybrid:
        """The complementarity problem; its base and matrix are computed once."""
        return with_constant(self._hybrid, ports)

    @cached_property
    def regular(self) -> bool:
        """Whether it is proven to have a P-matrix, hence one solution for any sources."""
        return one_solution(self.matrices, self.loads)


def one_solution(matrices: tuple[np.ndarray, ...], loads: np.ndarray) -> bool:
    """Whether the ports of a block (`Inverse.matrices`) provably have a P-matrix, given their resistances ρ (d,), Ω:
    of a block that only draws power, and of any with few diodes."""
    p, q, dp, dq = matrices
    if loads.size == 1:
        return bool(p[0, 0] > dp[0, 0] and q[0, 0] < -dq[0, 0])
    v, i, dv, di = (in_watts(part, loads) for part in matrices)
    size = np.abs(v).T @ np.abs(i)
    off = np.abs(v).T @ di + dv.T @ (np.abs(i) + di) + (loads.size + 16) * EPS * size
    return positive_definite(-v.T @ i, off) or (loads.size <= ALL and p_matrix(*matrices))


def port_values(eq: Equations, diodes: np.ndarray, x: np.ndarray, sign: float = -1.0) -> tuple[np.ndarray, np.ndarray]:
    """Voltages of diodes, and their currents times ρ, from unknowns (size,) or columns of such; with ``sign`` 1, sums
    in place of differences.
    """
    plus, minus = eq.plus[diodes], eq.minus[diodes]
    zero = np.zeros((1, *x.shape[1:]))
    padded = np.concatenate([x, zero])  # −1 is ground
    load = eq.load[diodes].reshape(-1, *[1] * (x.ndim - 1))
    return padded[plus] + sign * padded[minus], load * x[eq.own[eq.diode[diodes]]]


def blocks(eq: Equations, pattern: Pattern) -> list[RawBlock]:
    """The blocks in an order in which each depends on earlier ones only.

    Raises
    ------
    StructureError
        No matching: some equations have no unknowns of their own at any values.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

    matrix = pattern.terms(None).matrix()
    column_of = np.asarray(maximum_bipartite_matching(matrix, perm_type="column"))
    if (column_of < 0).any():
        raise StructureError(np.flatnonzero(column_of < 0))
    size = eq.size
    row_of = np.empty(size, dtype=np.int64)
    row_of[column_of] = np.arange(size)
    rows = np.repeat(np.arange(size), np.diff(matrix.indptr))
    # Equation r depends on the equations matched with the unknowns in it.
    graph = csr_matrix((np.ones(rows.size), (rows, row_of[matrix.indices])), shape=(size, size))
    count, label = connected_components(graph, directed=True, connection="strong")
    order = ordered(count, label[rows], label[row_of[matrix.indices]])
    members = np.argsort(label, kind="stable")
    ends = np.searchsorted(label[members], np.arange(count + 1))
    own, of_diode = np.split(members, ends[1:-1]), label[eq.own[eq.diode]]
    return [RawBlock(own[b], column_of[own[b]], np.flatnonzero(of_diode == b)) for b in order]


def ordered(count: int, user: np.ndarray, used: np.ndarray) -> Sequence[int]:
    """Numbers below ``count`` in topological order, each ``user`` after others that it ``used``; without those on a
    cycle."""
    pairs = np.unique(np.stack([user, used])[:, user != used], axis=1)
    waiting = np.bincount(pairs[0], minlength=count)
    by_used = pairs[0][np.argsort(pairs[1], kind="stable")]
    ends = np.searchsorted(np.sort(pairs[1]), np.arange(count + 1))
    ready = np.flatnonzero(waiting == 0).tolist()[::-1]
    order = []
    while ready:
        b = ready.pop()
        order.append(b)
        for other in by_used[ends[b] : ends[b + 1]].tolist():
            waiting[other] -= 1
            if waiting[other] == 0:
                ready.append(other)
    return order


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
        if not (own.proven and (not blocks[b].diodes.size or one_solution(own.matrices, eq.load[blocks[b].diodes])))
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
