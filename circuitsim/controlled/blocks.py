"""Block triangular form: the smallest sub-circuits that can be solved one after another.

Every unknown is matched with an equation and depends on the other unknowns in it; the strongly connected components of
this graph are the blocks (Dulmage & Mendelsohn). A stage with a voltage output that drives the next one is a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from circuitsim.controlled.equations import Equations, RawBlock
from circuitsim.controlled.linear import Pattern, Terms
from circuitsim.controlled.matrices import EPS, equilibrated, in_watts, inverted, is_p_matrix
from circuitsim.controlled.ports import ROUNDING, Hybrid, Ports, base_of, hybrid, matrix_of, with_constant
from circuitsim.controlled.rational import RationalBlock

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
        Responses P and Q of the ports' voltages, and of their currents times ρ, to z (`circuitsim.controlled.ports`),
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
        return p_matrix(self.matrices, self.loads)


def p_matrix(matrices: tuple[np.ndarray, ...], loads: np.ndarray) -> bool:
    """Whether the ports of a block (`Inverse.matrices`) provably have a P-matrix, given their resistances ρ (d,), Ω."""
    p, q, dp, dq = matrices
    if loads.size == 1:
        return bool(p[0, 0] > dp[0, 0] and q[0, 0] < -dq[0, 0])
    m, dm = (in_watts(part, loads) for part in matrix_of(base_of(p), *matrices))
    return is_p_matrix(m, dm + 4 * EPS * np.abs(m))


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

    matrix = pattern.matrix(None)
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
    owner = label[eq.own[eq.diode]]
    groups: list[list[int]] = [[] for _ in range(count)]
    for k, block in enumerate(owner.tolist()):
        groups[block].append(k)
    return [
        RawBlock(
            members[ends[b] : ends[b + 1]],
            column_of[members[ends[b] : ends[b + 1]]],
            np.array(groups[b], dtype=np.int64),
        )
        for b in order
    ]


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
