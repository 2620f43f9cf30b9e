"""Block triangular form: the smallest sub-circuits that determine themselves, each from those before it.

Every unknown is matched with an equation; an unknown depends on those in its equation, and the strong components of
this graph are the blocks (Dulmage & Mendelsohn). Stages that hold the voltage of the next one are blocks of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from circuitsim.controlled.equations import Equations
from circuitsim.controlled.linear import Pattern
from circuitsim.controlled.matrices import in_watts, is_p_matrix
from circuitsim.controlled.ports import ROUNDING, Hybrid, Ports, hybrid, with_constant

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class StructureError(ArithmeticError):
    """Equations without unknowns of their own.

    Attributes
    ----------
    rows : (k,) int array
        These equations.
    """

    def __init__(self, rows: np.ndarray) -> None:
        super().__init__("structurally singular")
        self.rows = rows


class Block:
    """One block: its equations and unknowns, its diodes, and what z of its ports does.

    Parameters
    ----------
    rows, columns : (k,) int arrays
        Equations and unknowns, matched.
    matrix : csr_matrix
        The whole matrix, all ports loaded.
    eq : Equations
    diodes : (d,) int array
        Diodes whose equations are among the rows, by their places in ``eq.diode``.

    Raises
    ------
    ArithmeticError
        It is singular.
    """

    def __init__(
        self, rows: np.ndarray, columns: np.ndarray, matrix: csr_matrix, eq: Equations, diodes: np.ndarray
    ) -> None:
        self.rows, self.columns, self.diodes, self.eq = rows, columns, diodes, eq
        self.whole = matrix[rows]
        self.size = abs(self.whole)
        self.inner = inner = self.whole[:, columns].toarray()
        self.inner_size = np.abs(inner)
        left = np.exp2(-np.round(np.log2(np.abs(inner).max(axis=1))))
        inner = inner * left[:, None]
        right = np.exp2(-np.round(np.log2(np.abs(inner).max(axis=0))))
        inner *= right
        try:
            inverse = np.linalg.inv(inner)
        except np.linalg.LinAlgError as error:
            raise ArithmeticError("singular") from error
        if not np.abs(inverse).max() * np.abs(inner).max() * len(inner) < 1e15:
            raise ArithmeticError("singular")
        self.inverse = right[:, None] * inverse * left
        self.inverse_size = np.abs(self.inverse)
        place = {int(r): k for k, r in enumerate(rows)}
        self.rows_of_diodes = np.array([place[int(r)] for r in eq.own[eq.diode[diodes]]], dtype=np.int64)
        self.loads = eq.load[diodes]
        self.response = self.inverse[:, self.rows_of_diodes]
        self._hybrid: Hybrid | None = None
        self._regular: bool | None = None

    def linear(
        self, x: np.ndarray, rounding: np.ndarray, right: np.ndarray, z: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The unknowns for given z (d,) of its ports, V, or zero, given those of earlier blocks in ``x`` (size,), and
        their possible rounding.

        ``rounding`` (size,) is the possible rounding of earlier unknowns.
        """
        known, given = x.copy(), right[self.rows]
        known[self.columns] = 0.0
        if z is not None:
            given[self.rows_of_diodes] += z
        wanted = given - self.whole @ known
        found = self.inverse @ wanted
        found += self.inverse @ (wanted - self.inner @ found)
        terms = np.abs(given) + self.size @ np.abs(known) + self.inner_size @ np.abs(found)
        return found, self.inverse_size @ (ROUNDING * terms + self.size @ rounding)

    def in_states(
        self, x: np.ndarray, rounding: np.ndarray, right: np.ndarray, z: np.ndarray, conducting: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The unknowns for given states of its diodes (d,), near those for ``z``; see `linear`."""
        p, q = self._matrices
        here, own = x.copy(), rounding.copy()
        own[self.columns] = 0.0
        try:
            back = np.linalg.inv(np.where(conducting[:, None], p, q))
        except np.linalg.LinAlgError:
            back = np.zeros_like(p)
        for _ in range(2):
            here[self.columns], possible = self.linear(here, own, right, z)
            v, i = port_values(self.eq, self.diodes, here)
            z = z - back @ np.where(conducting, v, i)
        here[self.columns], possible = self.linear(here, own, right, z)
        own[self.columns] = possible
        dv, di = port_values(self.eq, self.diodes, own, 1.0)
        return here[self.columns], possible + np.abs(self.response) @ (np.abs(back) @ np.where(conducting, dv, di))

    def ports(self, x: np.ndarray, rounding: np.ndarray) -> Ports:
        """The ports, given earlier unknowns and the block's own for z = 0, in ``x``, with their possible rounding."""
        v0, i0 = port_values(self.eq, self.diodes, x)
        dv, di = port_values(self.eq, self.diodes, rounding, 1.0)
        return Ports(v0, i0, *self._matrices, dv, di)

    @property
    def _matrices(self) -> tuple[np.ndarray, np.ndarray]:
        if not hasattr(self, "_pq"):
            wide = np.zeros((self.eq.size, self.diodes.size))
            wide[self.columns] = self.response
            self._pq = port_values(self.eq, self.diodes, wide)
        return self._pq

    def problem(self, ports: Ports) -> Hybrid:
        """The complementarity problem; its base and matrix are found once."""
        if self._hybrid is None:
            self._hybrid = hybrid(ports)
        return with_constant(self._hybrid, ports)

    def regular(self, problem: Hybrid) -> bool:
        """Whether its matrix is a P-matrix: one solution for any sources."""
        if self._regular is None:
            self._regular = is_p_matrix(in_watts(problem.matrix, self.loads))
        return self._regular


def port_values(eq: Equations, diodes: np.ndarray, x: np.ndarray, sign: float = -1.0) -> tuple[np.ndarray, np.ndarray]:
    """Voltages of diodes, and their currents times ρ, from unknowns (size,) or columns of such; with ``sign`` 1 sums
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
        No matching: some equations have no unknowns of their own, whatever the values are.
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
    order = _ordered(count, label[rows], label[row_of[matrix.indices]])
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


class RawBlock(NamedTuple):
    """Equations, unknowns and diodes of a block."""

    rows: np.ndarray
    columns: np.ndarray
    diodes: np.ndarray


def _ordered(count: int, user: np.ndarray, used: np.ndarray) -> Sequence[int]:
    """Components, each behind those it uses."""
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
