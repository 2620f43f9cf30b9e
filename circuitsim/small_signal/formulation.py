"""The equations (A₀ + s A₁) x = b element by element, in node potentials or in voltages of tree branches.

Terms are not summed up: the admittances at a node round where they are. A potential is the sum of the unknowns on the
path from the node to ground. In the nodal basis that is the node's own unknown. In the basis of a spanning tree it is
the voltages of the branches on the way, and Kirchhoff's current law holds for the cut-sets of these branches (Desoer &
Kuh, Basic Circuit Theory, chapter 11). With the tree of largest admittances no current in a cut-set is small beside
those that its sum leaves out, so small voltages and currents keep their digits beside large ones.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from circuitsim.circuit import GROUND
from circuitsim.circuit.elements import CAPACITOR, CURRENT, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.laws import Quantity
from circuitsim.program.precise import Pairs

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix, csr_matrix

    from circuitsim.small_signal.equations import SmallSignalEquations

TURN = Pairs(np.array(6.283185307179586), np.array(2.4492935982947064e-16))
"""2π to 32 digits: the double nearest to it, and the double nearest to what it misses."""

FEW = 100
"""Most unknowns of a dense matrix, which is quicker than a sparse one."""


class Sums:
    """Sums of terms by rows, in pairs of doubles: neighbours in pairs, until each row has one.

    Parameters
    ----------
    row : (t,) int array
        Ascending.
    size : int
        Number of rows.
    """

    def __init__(self, row: np.ndarray, size: int) -> None:
        self.size, self.halves, left = size, list[tuple[np.ndarray, np.ndarray]](), row
        while left.size and (left[1:] == left[:-1]).any():
            place = np.arange(left.size)
            begin = np.maximum.accumulate(np.where(np.r_[True, left[1:] != left[:-1]], place, 0))
            even = np.flatnonzero((place - begin) % 2 == 0)
            paired = np.append(left, -1)[even + 1] == left[even]
            self.halves.append((even, np.where(paired, even + 1, left.size)))
            left = left[even]
        self.row = left

    def of(self, terms: Pairs) -> Pairs:
        """The sums (size,)."""
        for even, odd in self.halves:
            padded = Pairs(*(np.append(part, 0.0) for part in terms))
            terms = padded.at(even).plus(padded.at(odd))
        total = Pairs(*(np.zeros(self.size, part.dtype) for part in terms))
        total.high[self.row], total.low[self.row] = terms
        return total


class Coefficients(NamedTuple):
    """The matrix at one s, and the real equations for real parts, then imaginary parts of the unknowns.

    Attributes
    ----------
    matrix : csc_matrix or array (size, size)
        Summed up, in complex doubles; an array of up to `FEW` unknowns.
    row, column : (t,) int arrays
        Of the terms of the real equations; rows ascend.
    value : Pairs
    sums : Sums
    """

    matrix: csc_matrix | np.ndarray
    row: np.ndarray
    column: np.ndarray
    value: Pairs
    sums: Sums

    def left_over(self, x: Pairs, right: Pairs) -> Pairs:
        """right − A x (2 size,)."""
        return right.minus(self.sums.of(self.value.times(x.at(self.column))))


class _Terms:
    """Collects rows, columns and values."""

    def __init__(self) -> None:
        self.parts: list[tuple[np.ndarray, np.ndarray, Pairs]] = []

    def add(self, row: np.ndarray, column: np.ndarray, value: Pairs) -> None:
        """Terms as they are."""
        self.parts.append((row, column, value))

    def products(self, q: csr_matrix, value: Pairs) -> None:
        """value qᵀ q for each row q."""
        count = np.diff(q.indptr)
        which = np.repeat(np.arange(count.size), count * count)
        place = np.arange(which.size) - np.repeat(np.cumsum(count * count) - count * count, count * count)
        one, other = q.indptr[which] + place // count[which], q.indptr[which] + place % count[which]
        sign = (q.data[one] * q.data[other]).astype(float)
        self.add(q.indices[one], q.indices[other], value.at(which).times(Pairs.of(sign)))

    def rows(self, row: np.ndarray, q: csr_matrix, value: Pairs, transposed: bool = False) -> None:
        """value q in the equations ``row``, or with ``transposed`` value qᵀ of the unknowns ``row``."""
        which = np.repeat(np.arange(row.size), np.diff(q.indptr))
        found = value.at(which).times(Pairs.of(q.data.astype(float)))
        at, other = (q.indices, row[which]) if transposed else (row[which], q.indices)
        self.add(at, other, found)

    def joined(self) -> tuple[np.ndarray, np.ndarray, Pairs]:
        """Rows, columns and values of those that are not zero."""
        row, column = (np.concatenate(part) for part in zip(*((r, c) for r, c, _ in self.parts)))
        high, low = (np.concatenate(part) for part in zip(*(value for *_, value in self.parts)))
        there = high != 0.0
        return row[there], column[there], Pairs(high[there], low[there])


class Formulation:
    """The equations of a circuit in one basis.

    Parameters
    ----------
    system : SmallSignalEquations
    paths : (n_nodes, k) csr_matrix of int
        Potentials are ``paths`` times the first k unknowns; zero rows of ground and of reference nodes.
    """

    def __init__(self, system: SmallSignalEquations, paths: csr_matrix) -> None:
        _, first, second, _, n = system.linear.arrays
        self.system, self.paths, self.voltages = system, paths, paths.shape[1]
        self.drop = _reduced(paths[first] - paths[second])
        own = system.unknowns.own
        self.own = np.where(own >= 0, own - (n - 1) + self.voltages, -1)
        self.size = self.voltages + int((own >= 0).sum())
        constant, storage = self._constant(), self._storage()
        self.row, self.column, self.real = constant
        self.stored_row, self.stored_column, self.imaginary = storage

    def _constant(self) -> tuple[np.ndarray, np.ndarray, Pairs]:
        kind, _, _, value, _ = self.system.linear.arrays
        found, own, one = _Terms(), self.own, Pairs.of(np.ones(kind.size))
        nodal = np.flatnonzero((kind == RESISTOR) & (own < 0))
        found.products(self.drop[nodal], one.at(nodal).over(Pairs.of(value[nodal])))
        held = np.flatnonzero(own >= 0)
        found.rows(own[held], self.drop[held], one.at(held), transposed=True)
        across = held[(kind[held] == VOLTAGE) | (kind[held] == INDUCTOR) | (kind[held] == RESISTOR)]
        found.rows(own[across], self.drop[across], one.at(across))
        ohmic = across[kind[across] == RESISTOR]
        found.add(own[ohmic], own[ohmic], Pairs.of(-value[ohmic]))
        for k, law in self.system.linear.laws.items():
            row, gain = own[[k]], Pairs.of(np.array([-1.0 if np.isnan(value[k]) else -value[k]]))
            if law.quantity is Quantity.VOLTAGE:
                found.rows(row, self.drop[[k]], one.at([k]))
            elif law.quantity is Quantity.CURRENT:
                found.add(row, row, one.at([k]))
            for c, plus, minus in law.voltages:
                q = _reduced(self.paths[[plus]] - self.paths[[minus]])
                found.rows(row, q, gain.times(Pairs.of(np.array([c]))))
            for c, e in law.currents:
                share = gain.times(Pairs.of(np.array([c])))
                if own[e] >= 0:
                    found.add(row, own[[e]], share)
                elif kind[e] == RESISTOR:
                    found.rows(row, self.drop[[e]], share.over(Pairs.of(value[[e]])))
        return found.joined()

    def _storage(self) -> tuple[np.ndarray, np.ndarray, Pairs]:
        """Capacitances, and inductances −M between two currents.

        Of ideal couplings M is Uᵀ D U, whose rank is the number of inductors with energy of their own.
        """
        kind, _, _, value, _ = self.system.linear.arrays
        found, own, ideal = _Terms(), self.own, self.system.windings
        plates, coils = np.flatnonzero(kind == CAPACITOR), np.flatnonzero(kind == INDUCTOR)
        found.products(self.drop[plates], Pairs.of(value[plates]))
        circuit = self.system.linear.expansion.circuit
        alone = coils if ideal is None else coils[~np.isin(coils, ideal.coils)]
        found.add(own[alone], own[alone], Pairs.of(-value[alone]))
        if ideal is not None:
            r, c = (part.ravel() for part in np.indices(ideal.turns.shape))
            for turns, inductance in zip(ideal.turns, ideal.inductance):
                share = Pairs.of(turns[r]).times(Pairs.of(turns[c])).times(Pairs.of(np.full(r.size, -inductance)))
                found.add(own[ideal.coils[r]], own[ideal.coils[c]], share)
        elif self.system.couplings:
            names = list(self.system.couplings)
            one, other = (np.array([circuit.element_index(pair[k]) for pair in names]) for k in (0, 1))
            root = Pairs.of(value[one]).times(Pairs.of(value[other])).root()
            mutual = root.times(Pairs.of(-np.array(list(self.system.couplings.values()))))
            found.add(own[one], own[other], mutual)
            found.add(own[other], own[one], mutual)
        return found.joined()

    def coefficients(self, hertz: float, growth: float = 0.0) -> Coefficients:
        """A₀ + s A₁ at s = growth + 2πj hertz."""
        from scipy.sparse import csc_matrix

        n, row, column = self.size, self.stored_row, self.stored_column
        turning = TURN.times(Pairs.of(np.array(hertz))).times(self.imaginary)
        growing = Pairs.of(np.array(growth)).times(self.imaginary)
        value = np.concatenate([self.real.high, growing.high + 1j * turning.high])
        place = np.append(self.row, row), np.append(self.column, column)
        matrix: csc_matrix | np.ndarray
        if n <= FEW:
            at = place[0] * n + place[1]
            sums = np.bincount(at, value.real, n * n) + 1j * np.bincount(at, value.imag, n * n)
            matrix = sums.reshape(n, n)
        else:
            matrix = csc_matrix((value, place), shape=(n, n))
        order, rows, columns, of_rows = self._real_places
        minus = Pairs(-turning.high, -turning.low)
        parts = [self.real, self.real, growing, growing, minus, turning]
        whole = Pairs(*(np.concatenate(part)[order] for part in zip(*parts)))
        return Coefficients(matrix, rows, columns, whole, of_rows)

    @cached_property
    def _real_places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, Sums]:
        """Order, rows and columns of the terms of the real equations, and the sums of their rows."""
        n, r, c, row, column = self.size, self.stored_row, self.stored_column, self.row, self.column
        rows = np.concatenate([row, row + n, r, r + n, r, r + n])
        columns = np.concatenate([column, column + n, c, c + n, c + n, c])
        order = np.argsort(rows, kind="stable")
        return order, rows[order], columns[order], Sums(rows[order], 2 * n)

    def right_side(self, amplitudes: np.ndarray) -> Pairs:
        """b for complex amplitudes (m,) of the sources, V or A, as (2 size,)."""
        system, kind = self.system, self.system.linear.arrays.kind
        sources = np.flatnonzero((kind == CURRENT) & (amplitudes != 0.0))
        q = self.drop[sources].tocoo()
        order = np.argsort(q.col, kind="stable")
        currents = -q.data[order] * amplitudes[sources][q.row[order]]
        b = Sums(q.col[order], self.size).of(Pairs.of(currents))
        held = self.own >= 0
        b.high[self.own[held]] = system.right_side(amplitudes)[system.unknowns.own[held]]
        return Pairs(*(np.concatenate([part.real, part.imag]) for part in b))

    def potentials(self, x: Pairs) -> Pairs:
        """Of the nodes (n_nodes,), V, for complex unknowns (size,)."""
        return _along(self.paths, self._path_sums, x)

    def drops(self, x: Pairs) -> np.ndarray:
        """Branch voltages (m,), V."""
        return _along(self.drop, self._drop_sums, x).high

    @cached_property
    def _path_sums(self) -> Sums:
        return _sums(self.paths)

    @cached_property
    def _drop_sums(self) -> Sums:
        return _sums(self.drop)

    @cached_property
    def reach(self) -> tuple[csr_matrix, csr_matrix]:
        """Which unknowns the potentials, and the branch voltages, are sums of."""
        return abs(self.paths), abs(self.drop)

    def currents(self, drops: np.ndarray, x: np.ndarray, s: complex, amplitudes: np.ndarray) -> np.ndarray:
        """Branch currents (m,) of the elementary elements, A, for branch voltages (m,) and unknowns (size,)."""
        kind = self.system.linear.arrays.kind
        found = self.system.admittances(s) * drops + np.where(kind == CURRENT, amplitudes, 0.0)
        held = self.own >= 0
        found[held] = x[self.own[held]]
        return np.asarray(found)


def _reduced(matrix: csr_matrix) -> csr_matrix:
    matrix = matrix.tocsr()
    matrix.eliminate_zeros()
    return matrix


def _sums(matrix: csr_matrix) -> Sums:
    return Sums(np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.shape[0])


def _along(matrix: csr_matrix, sums: Sums, x: Pairs) -> Pairs:
    """A matrix of ±1 times the first unknowns."""
    own = x.at(matrix.indices)
    return sums.of(Pairs(matrix.data * own.high, matrix.data * own.low))


def nodal(system: SmallSignalEquations) -> Formulation:
    """The equations in node potentials."""
    from scipy.sparse import csr_matrix

    n, pinned = system.linear.arrays.n_nodes, system.unknowns.pinned
    free = np.setdiff1d(np.arange(n), np.append(pinned, GROUND))
    paths = csr_matrix((np.ones(free.size, np.int64), (free, np.arange(free.size))), shape=(n, free.size))
    return Formulation(system, paths)


def of_tree(system: SmallSignalEquations, s: complex, most: int) -> Formulation | None:
    """The equations in voltages of the tree of largest admittances at s; None with paths of more than ``most`` branches
    in all."""
    from scipy.sparse import csr_matrix

    kind, first, second, value, n = system.linear.arrays
    size = np.abs(system.admittances(s))
    held = np.flatnonzero(system.unknowns.own >= 0)
    size[held] = np.inf  # sources and shorts
    for k in held[(kind[held] == RESISTOR) | (kind[held] == INDUCTOR)].tolist():
        impedance = abs(value[k] if kind[k] == RESISTOR else s * value[k])
        size[k] = np.inf if impedance == 0.0 else 1.0 / impedance
    neighbours: list[list[int]] = [[] for _ in range(n)]
    root = list(range(n))

    def top(node: int) -> int:
        while root[node] != node:
            root[node] = root[root[node]]
            node = root[node]
        return node

    for node in system.unknowns.pinned.tolist():
        root[top(node)] = top(GROUND)
    for k in np.argsort(-size, kind="stable").tolist():
        a, b = int(first[k]), int(second[k])
        if top(a) != top(b):
            root[top(a)] = top(b)
            neighbours[a].append(b)
            neighbours[b].append(a)
    waiting = [GROUND, *system.unknowns.pinned.tolist()]
    path: dict[int, list[int]] = {node: [] for node in waiting}
    total = branches = 0
    while waiting:
        node = waiting.pop()
        for other in neighbours[node]:
            if other not in path:
                path[other] = [*path[node], branches]
                branches += 1
                total += len(path[other])
                waiting.append(other)
        if total > most:
            return None
    rows = np.repeat(np.arange(n), [len(path.get(node, ())) for node in range(n)])
    columns = np.array([k for node in range(n) for k in path.get(node, ())], dtype=np.int64)
    paths = csr_matrix((np.ones(rows.size, np.int64), (rows, columns)), shape=(n, branches))
    return Formulation(system, paths)


__all__ = ["Coefficients", "Formulation", "nodal", "of_tree"]
