"""Modified nodal analysis of small signals, (A₀ + s A₁) x = b: A₁ holds capacitances and inductances.

The unknowns are those of `circuitsim.controlled.equations`: node voltages, then currents of voltage sources,
inductors, controlled elements and small resistors. Both matrices are sums of terms value · left ⊗ right, of which an
element has one or two: a conductance its incidence on both sides.

Terms are not summed, because sums of the admittances at a node round. A potential is the sum of the unknowns on the
path from the node to ground. In the nodal basis that is the node's own unknown. In the basis of a spanning tree it is
the sum of the branch voltages on the path, and Kirchhoff's current law holds for the fundamental cut-sets (Desoer &
Kuh, Basic Circuit Theory, chapter 11). With the tree of largest admittances no current in a cut-set is a difference of
far larger ones, so small voltages and currents keep their digits next to large ones.

A system is solved to about 30 digits, with an estimate of the remaining error.

The factors of the matrix in doubles, or where these fail in pairs of doubles, are corrected with residuals that are
exact except for one rounding (iterative refinement in extended precision: Demmel et al., 2006). Whether corrections
converge to *the* solution is measured on a known vector: their initial relative error there applies to any solution.
For a singular matrix the null vector is lost, for any right-hand side.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from circuitsim.analysis.amplified import elementary_point
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.solve import solve
from circuitsim.circuit import GROUND, Circuit, CircuitArrays
from circuitsim.circuit.couplings import windings_of
from circuitsim.circuit.elements import CAPACITOR, CURRENT, DIODE, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.expansion import Expansion, expanded
from circuitsim.circuit.laws import Law, Quantity
from circuitsim.controlled.equations import equations, references
from circuitsim.controlled.linear import factored, scaled
from circuitsim.errors import UsageError
from circuitsim.models.junction_diode import charge, junction
from circuitsim.models.smooth import SmoothDevice
from circuitsim.program.components import spanning_forest
from circuitsim.program.precise import PairFactor, Pairs

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix, csr_matrix


class Linearized(NamedTuple):
    """Elements of the small-signal circuit.

    Attributes
    ----------
    circuit : Circuit
        The original; its nodes and elements come first.
    expansion : Expansion
        Its devices as elementary elements.
    arrays : CircuitArrays
        Of the elementary elements: conducting diodes become voltage sources, blocking ones current sources; all sources
        are zero. Capacitors are kept.
    laws : dict of int to Law
        Of controlled sources, without their constants.
    kinks : tuple of str
        Diodes with zero current and voltage, whose state is ambiguous.
    """

    circuit: Circuit
    expansion: Expansion
    arrays: CircuitArrays
    laws: dict[int, Law]
    kinks: tuple[str, ...]


def linearized(circuit: Circuit) -> Linearized:
    """The small-signal circuit at the operating point; without diodes and devices none is computed.

    Raises
    ------
    UsageError
        A circuit with bidirectional amplifiers.
    InfeasibleError, UnboundedError, ConvergenceError
        No certified operating point.
    """
    if circuit.amplified:
        raise UsageError("a circuit with bidirectional amplifiers has no small-signal analysis")
    expansion = expanded(circuit)
    inner, conducting = expansion.circuit, np.zeros(len(expansion.circuit), dtype=bool)
    kinks: tuple[str, ...] = ()
    if (inner.arrays().kind == DIODE).any() or circuit.devices:
        solved = solve(circuit)
        point = elementary_point(solved)
        inner, conducting = point.circuit, point.currents > 0.0
        at_kink = np.flatnonzero((inner.arrays().kind == DIODE) & point.kink).tolist()
        kinks = tuple(expansion.original(inner.names[k] for k in at_kink))
        expansion = _with_charges(expansion, inner, circuit, solved)
        inner = expansion.circuit
        conducting = np.append(conducting, np.zeros(len(inner) - conducting.size, dtype=bool))
    kind = inner.arrays().kind
    for k, law in inner.laws.items():
        if any(kind[control.element] == CAPACITOR for control in law.currents):
            name = inner.names[k]
            raise UsageError(f"{name} follows the current of a capacitor: sense it with a source of 0 V in series")
    return of_elements(circuit, inner, conducting)._replace(expansion=expansion, kinks=kinks)


def _with_charges(expansion: Expansion, inner: Circuit, circuit: Circuit, point: OperatingPoint) -> Expansion:
    """The expansion with junction capacitances at an operating point, inside the series resistance."""
    kind, first, second, value = (own.tolist() for own in inner.arrays()[:4])
    names, nodes = [str(name) for name in inner.names], [str(name) for name in inner.node_names]
    owner, hidden = dict(expansion.owner), set(expansion.hidden)
    for k, device in circuit.devices.items():
        if not (isinstance(device, SmoothDevice) and device.stores()):
            continue
        row, slope = device.row(), expansion.parts[k][0]
        current, conductance = junction(row, point.junctions[k])
        farads = charge(row, point.junctions[k], current, conductance)[1]
        middle, end = len(nodes), second[slope]
        nodes.append(f"{names[slope]}:junction")
        hidden.add(nodes[-1])
        value[slope], second[slope] = row[0], middle
        for code, amount, word in ((RESISTOR, 1.0 / max(conductance, 1e-100), "law"), (CAPACITOR, farads, "charge")):
            names.append(f"{names[slope]}:{word}")
            owner[names[-1]] = str(circuit.names[k])
            for column, entry in zip((kind, first, second, value), (code, middle, end, amount)):
                column.append(entry)
    if len(names) == len(inner):
        return expansion._replace(circuit=inner)
    columns = array("b", kind), array("q", first), array("q", second), array("d", value)
    made = Circuit.from_columns(inner.title, columns, names, nodes, laws=inner.laws)
    return expansion._replace(circuit=made, owner=owner, hidden=hidden)


def of_elements(circuit: Circuit, inner: Circuit, conducting: np.ndarray, capacitors: int = CAPACITOR) -> Linearized:
    """The small-signal circuit of elementary elements, with capacitors as elements of the given kind."""
    kind, first, second, value, n_nodes = inner.arrays()
    diode, value = kind == DIODE, value.copy()
    kind = np.where(kind == CAPACITOR, capacitors, np.where(diode, np.where(conducting, VOLTAGE, CURRENT), kind))
    value[(kind == VOLTAGE) | (kind == CURRENT)] = 0.0
    laws = {k: law._replace(constant=0.0) for k, law in inner.laws.items()}
    arrays = CircuitArrays(kind, first, second, value, n_nodes)
    return Linearized(circuit, expanded(circuit), arrays, laws, ())


FEW = 100
"""Maximum number of unknowns of a dense matrix, which is then faster than a sparse one."""


class Products(NamedTuple):
    """The matrix Σ valueₜ leftₜ ⊗ rightₜ: vectors (t, unknowns) and their values (t,)."""

    left: csr_matrix
    right: csr_matrix
    value: Pairs

    @classmethod
    def of(cls, parts: Iterable[tuple[csr_matrix, csr_matrix, Pairs]]) -> Products:
        """The sum of several."""
        from scipy.sparse import vstack

        left, right, value = zip(*parts)
        return cls(vstack(left, "csr"), vstack(right, "csr"), Pairs(*(np.concatenate(part) for part in zip(*value))))


class SmallSignalEquations(NamedTuple):
    """The equations of a linearized circuit, in potentials of all nodes, then branch currents.

    Attributes
    ----------
    linear : Linearized
    own : (m,) int array
        Unknown that is the current of an element, or −1.
    pinned : (p,) int array
        Reference nodes of parts without ground.
    incidence : (m, nodes) sparse array
    constant, storage : Products
        A₀ and A₁.
    sources : (m, unknowns) sparse array
        From the amplitudes of sources to b.
    memory : (k, unknowns) sparse array
        Pᵀ, where A₁ = P diag(storages) Pᵀ. For coupled inductors with the inductances M = Uᵀ D U its rows are those of
        U, in the equations of their currents.
    storages : (k,) float array
        C of capacitors, −L of inductors, −D of coupled ones, F and H.
    elements : (k,) int array
        Their positions.
    ideal : bool
        Whether some coupled inductors store no energy of their own.
    """

    linear: Linearized
    own: np.ndarray
    pinned: np.ndarray
    incidence: csr_matrix
    constant: Products
    storage: Products
    sources: csr_matrix
    memory: csr_matrix
    storages: np.ndarray
    elements: np.ndarray
    ideal: bool

    def admittances(self, s: complex) -> np.ndarray:
        """Admittances of resistors and capacitors (m,), S; 0 for all other elements."""
        kind, _, _, value, _ = self.linear.arrays
        found = np.where(kind == CAPACITOR, s * value, 0.0)
        ohmic = (kind == RESISTOR) & (self.own < 0)
        found[ohmic] = 1.0 / value[ohmic]
        return found


def small_signal_equations(
    linear: Linearized, couplings: Mapping[tuple[str, str], float], factored: bool = False
) -> SmallSignalEquations:
    """The equations of a linearized circuit with couplings of inductors.

    Parameters
    ----------
    linear : Linearized
    couplings : mapping of (str, str) to float
        Coupling factors.
    factored : bool
        Whether A₁ = P diag(storages) Pᵀ must hold to the last digit for all couplings, or only for ideal ones.

    Raises
    ------
    UsageError
        Couplings of other elements, out of range, or that store negative energy.
    """
    from scipy.sparse import csr_matrix, diags, vstack

    arrays, circuit = linear.arrays, linear.expansion.circuit
    kind, first, second, value, n = arrays
    windings = windings_of(circuit, couplings)
    ideal = windings is not None and windings.independent < windings.inductors.size
    # A capacitor connects its nodes at every frequency.
    tied = arrays._replace(kind=np.where(kind == CAPACITOR, RESISTOR, kind))
    unknowns = equations(arrays, linear.laws, references(tied, linear.laws))
    own = np.where(unknowns.own >= 0, unknowns.own + 1, -1)
    every, held, size = np.arange(kind.size), np.flatnonzero(own >= 0), unknowns.size + 1
    signs = np.repeat([1.0, -1.0], kind.size)
    drop = csr_matrix((signs, (np.append(every, every), np.append(first, second))), shape=(kind.size, size))
    drop.eliminate_zeros()
    current = csr_matrix((np.ones(held.size), (held, own[held])), shape=(kind.size, size))
    one, ohms = Pairs.of(np.ones(kind.size)), Pairs.of(value)
    nodal = np.flatnonzero((kind == RESISTOR) & (own < 0))
    across = held[(kind[held] == VOLTAGE) | (kind[held] == INDUCTOR) | (kind[held] == RESISTOR)]
    small = across[kind[across] == RESISTOR]
    constant = [
        (drop[nodal], drop[nodal], one.at(nodal).over(ohms.at(nodal))),
        (drop[held], current[held], one.at(held)),
        (current[across], drop[across], one.at(across)),
        (current[small], current[small], Pairs.of(-value[small])),
    ]
    sources = diags(np.where(kind == CURRENT, -1.0, 0.0)) @ drop + diags(np.where(kind == VOLTAGE, 1.0, 0.0)) @ current
    for k, law in linear.laws.items():
        row, gain = current[[k]], 1.0 if np.isnan(value[k]) else float(value[k])
        if law.quantity is not Quantity.NEITHER:
            constant.append((row, (drop if law.quantity is Quantity.VOLTAGE else current)[[k]], one.at([k])))
        ends = [csr_matrix(([1.0, -1.0], ([0, 0], nodes)), shape=(1, size)) for _, *nodes in law.voltages]
        controls = [(c, vector, one.at([k])) for (c, *_), vector in zip(law.voltages, ends)]
        for c, e in law.currents:
            if own[e] >= 0 or kind[e] == RESISTOR:
                controls.append((c, *((current[[e]], one.at([e])) if own[e] >= 0 else (drop[[e]], ohms.at([e])))))
            else:
                sources = sources + csr_matrix(([gain * c], ([e], [own[k]])), shape=sources.shape)
        for c, control, under in controls:
            constant.append((row, control, Pairs.of(np.array([-gain])).times(Pairs.of(np.array([c]))).over(under)))
    plates, inductors = np.flatnonzero(kind == CAPACITOR), np.flatnonzero(kind == INDUCTOR)
    if windings is not None:
        inductors = np.append(inductors[~np.isin(inductors, windings.inductors)], windings.inductors)
    memory, storages = vstack([drop[plates], current[inductors]], "csr"), np.append(value[plates], -value[inductors])
    storage = [(memory, memory, Pairs.of(storages))]
    if windings is not None:
        alone = storages.size - windings.inductors.size
        turned = vstack([memory[:alone], csr_matrix(windings.turns) @ current[windings.inductors]], "csr")
        inner = np.append(storages[:alone], -windings.inductance)
        if ideal or factored:
            memory, storages = turned, inner
            storage = [(memory, memory, Pairs.of(storages))]
        else:
            a, b = (np.array([circuit.element_index(pair[k]) for pair in couplings]) for k in (0, 1))
            henries = Pairs.of(value)
            mutual = henries.at(a).times(henries.at(b)).root().times(Pairs.of(-np.array(list(couplings.values()))))
            storage += [(current[a], current[b], mutual), (current[b], current[a], mutual)]
    return SmallSignalEquations(
        linear,
        own,
        unknowns.pinned,
        drop[:, :n],
        Products.of(constant),
        Products.of(storage),
        sources.tocsr(),
        memory,
        storages,
        np.append(plates, inductors),
        ideal,
    )


class Terms:
    """A matrix as unsummed terms.

    Parameters
    ----------
    shape : (int, int)
    row, column : (t,) int arrays
    value : Pairs
    """

    def __init__(self, shape: tuple[int, int], row: np.ndarray, column: np.ndarray, value: Pairs) -> None:
        order = np.argsort(row, kind="stable")
        self.shape, self.row, self.column, self.value = shape, row[order], column[order], value.at(order)
        self._halves = _halves(self.row)

    @classmethod
    def of(cls, matrix: csr_matrix) -> Terms:
        """The entries of a sparse matrix."""
        entries = matrix.tocoo()
        return cls(matrix.shape, entries.row, entries.col, Pairs.of(entries.data))

    @classmethod
    def products(cls, products: Products, basis: csr_matrix) -> Terms:
        """The terms of products, with the vectors in a basis (unknowns, size)."""
        left, right = products.left @ basis, products.right @ basis
        inner = np.diff(right.indptr)
        many = np.diff(left.indptr) * inner
        which = np.repeat(np.arange(many.size), many)
        place = np.arange(which.size) - np.repeat(np.cumsum(many) - many, many)
        one, other = left.indptr[which] + place // inner[which], right.indptr[which] + place % inner[which]
        sign = Pairs.of(left.data[one]).times(Pairs.of(right.data[other]))
        value = products.value.at(which).times(sign)
        there = value.high != 0.0
        size = basis.shape[1]
        return cls((size, size), left.indices[one][there], right.indices[other][there], value.at(there))

    def sums(self, terms: Pairs) -> Pairs:
        """Sums of terms (t,) by rows, in pairs of doubles, by pairwise summation."""
        halves, row = self._halves
        for even, odd in halves:
            padded = Pairs(*(np.append(part, 0.0) for part in terms))
            terms = padded.at(even).plus(padded.at(odd))
        total = Pairs(*(np.zeros(self.shape[0], part.dtype) for part in terms))
        total.high[row], total.low[row] = terms
        return total

    def times(self, x: Pairs) -> Pairs:
        """The product with a vector, real or complex."""
        return self.sums(self.value.times(x.at(self.column)))

    def magnitudes(self, x: np.ndarray) -> np.ndarray:
        """Sums of the magnitudes of the terms of a product."""
        return np.bincount(self.row, np.abs(self.value.high * x[self.column]), self.shape[0])

    def summed(self) -> csc_matrix | np.ndarray:
        """The matrix in doubles; an array of up to `FEW` unknowns."""
        from scipy.sparse import csc_matrix

        found = csc_matrix((self.value.high, (self.row, self.column)), shape=self.shape)
        return found.toarray() if self.shape[0] <= FEW else found

    def dense(self) -> Pairs:
        """The matrix in pairs of doubles."""
        place = self.row * self.shape[1] + self.column
        whole = Terms((self.shape[0] * self.shape[1], 1), place, np.zeros_like(place), self.value)
        return Pairs(*(part.reshape(self.shape) for part in whole.sums(whole.value)))


def _halves(row: np.ndarray) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray]:
    """Neighbours to add in each pass over terms in ascending rows, and the rows that are left."""
    found = list[tuple[np.ndarray, np.ndarray]]()
    while row.size and (row[1:] == row[:-1]).any():
        place = np.arange(row.size)
        begin = np.maximum.accumulate(np.where(np.r_[True, row[1:] != row[:-1]], place, 0))
        even = np.flatnonzero((place - begin) % 2 == 0)
        paired = np.append(row, -1)[even + 1] == row[even]
        found.append((even, np.where(paired, even + 1, row.size)))
        row = row[even]
    return found, row


class Formulation:
    """The equations of a circuit in one basis.

    Parameters
    ----------
    system : SmallSignalEquations
    paths : (n_nodes, k) csr_matrix
        Potentials are ``paths`` times the first k unknowns; zero rows of ground and of reference nodes.
    """

    def __init__(self, system: SmallSignalEquations, paths: csr_matrix) -> None:
        from scipy.sparse import block_diag, identity

        n = paths.shape[0]
        self.basis = basis = block_diag([paths, identity(system.sources.shape[1] - n)], "csr")
        self.system, self.paths, self.voltages, self.size = system, paths, paths.shape[1], basis.shape[1]
        self.own = np.where(system.own >= 0, system.own - n + self.voltages, -1)
        self.fixed, self.stored = (Terms.products(own, basis) for own in (system.constant, system.storage))
        self._fixed, self._stored = self.fixed.summed(), self.stored.summed()
        self.drop, self.memory = system.incidence @ paths, system.memory @ basis
        self.drop.eliminate_zeros()
        self._sources, self._potentials, self._drops = map(Terms.of, ((system.sources @ basis).T, paths, self.drop))

    def matrix(self, s: complex) -> csc_matrix | np.ndarray:
        """A₀ + s A₁ in complex doubles."""
        return self._fixed + s * self._stored

    def right_side(self, amplitudes: np.ndarray) -> Pairs:
        """b (size,) for complex amplitudes (m,) of the sources, V or A."""
        return self._sources.times(Pairs.of(amplitudes))

    def potentials(self, x: Pairs) -> Pairs:
        """Of the nodes (n_nodes,), V, for unknowns (size,)."""
        return self._potentials.times(x)

    def drops(self, x: Pairs) -> np.ndarray:
        """Branch voltages (m,), V."""
        return self._drops.times(x).high

    @cached_property
    def reach(self) -> tuple[csr_matrix, csr_matrix]:
        """Which unknowns the potentials and the branch voltages depend on."""
        return abs(self.paths), abs(self.drop)

    def currents(self, drops: np.ndarray, x: np.ndarray, s: complex, amplitudes: np.ndarray) -> np.ndarray:
        """Branch currents (m,) of the elementary elements, A, for branch voltages (m,) and unknowns (size,)."""
        kind = self.system.linear.arrays.kind
        found = self.system.admittances(s) * drops + np.where(kind == CURRENT, amplitudes, 0.0)
        held = self.own >= 0
        found[held] = x[self.own[held]]
        return np.asarray(found)


def nodal(system: SmallSignalEquations) -> Formulation:
    """The equations in node voltages."""
    from scipy.sparse import csr_matrix

    n, pinned = system.linear.arrays.n_nodes, system.pinned
    free = np.setdiff1d(np.arange(n), np.append(pinned, GROUND))
    paths = csr_matrix((np.ones(free.size), (free, np.arange(free.size))), shape=(n, free.size))
    return Formulation(system, paths)


def of_tree(system: SmallSignalEquations, s: complex, most: int) -> Formulation | None:
    """The equations in voltages of the tree of largest admittances at s; None if its paths have more than ``most``
    branches in all."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import breadth_first_order

    kind, first, second, value, n = system.linear.arrays
    size = np.abs(system.admittances(s))
    held = np.flatnonzero(system.own >= 0)
    size[held] = np.inf  # sources and shorts
    for k in held[(kind[held] == RESISTOR) | (kind[held] == INDUCTOR)].tolist():
        impedance = abs(value[k] if kind[k] == RESISTOR else s * value[k])
        size[k] = np.inf if impedance == 0.0 else 1.0 / impedance
    # Reference nodes are at ground's potential.
    first, second = (np.where(np.isin(end, system.pinned), GROUND, end) for end in (first, second))
    kept = spanning_forest(n - 1, first, second, np.argsort(-size, kind="stable"))
    tree = csr_matrix((np.ones(kept.size), (first[kept], second[kept])), shape=(n, n))
    nodes, above = breadth_first_order(tree, GROUND, directed=False)
    path: dict[int, list[int]] = {GROUND: []}
    total, branches = 0, nodes.size - 1
    for branch, node in enumerate(nodes[1:].tolist()):
        path[node] = [*path[int(above[node])], branch]
        total += len(path[node])
        if total > most:
            return None
    rows = np.repeat(np.arange(n), [len(path.get(node, ())) for node in range(n)])
    columns = np.array([k for node in range(n) for k in path.get(node, ())], dtype=np.int64)
    paths = csr_matrix((np.ones(rows.size), (rows, columns)), shape=(n, branches))
    return Formulation(system, paths)


TURN = Pairs(np.array(6.283185307179586), np.array(2.4492935982947064e-16))
"""2π to 32 digits: the nearest double, and the double nearest to its error."""

CONTRACTION = 1e-2
"""Largest relative error of a first correction on a known vector: each further one gains two digits or more."""

CORRECTIONS = 20
"""Maximum number of corrections: at 1e-2 each, 16 reach the 32 digits of pairs of doubles."""

ROUNDING = 2.0**-103
"""Relative error of a sum of products of pairs of doubles, relative to its terms: some units of 2⁻¹⁰⁵."""

DENSE = 200
"""Maximum number of unknowns for factors in pairs of doubles, which take two seconds at 200."""

GOLDEN = 0.5 * (5.0**0.5 - 1.0)
"""Fraction of a turn whose multiples have scattered cosines."""


class Solution:
    """The solution of (A₀ + s A₁) x = b for any b, at s = growth + 2πj hertz.

    Parameters
    ----------
    made : Formulation
    hertz, growth : float
        Hz, 1/s.
    dense : bool
        Whether factors in pairs of doubles are an alternative.

    Raises
    ------
    ArithmeticError
        The matrix is singular to the precision of the arithmetic used for its size.
    """

    def __init__(self, made: Formulation, hertz: float, growth: float = 0.0, dense: bool = True) -> None:
        self.made, self.size, self.growth = made, made.size, growth
        self._turn = TURN.times(Pairs.of(np.array(hertz)))
        self.matrix = made.matrix(complex(growth, float(self._turn.high)))
        self._rough: Callable[[Pairs], Pairs] | None
        with np.errstate(all="ignore"):
            self._rough, left, self.scale = _factored(self.matrix)
            if self._rough is None or not self.missed() <= CONTRACTION:
                if not dense or self.size > DENSE:
                    raise ArithmeticError("singular")
                self._rough = self._in_pairs(left)
                if not self.missed() <= CONTRACTION:
                    raise ArithmeticError("singular")

    def _approximate(self, right: Pairs) -> Pairs:
        assert self._rough is not None
        return self._rough(right)

    def _residual(self, x: Pairs, right: Pairs) -> Pairs:
        """The residual."""
        stored = self.made.stored.times(x)
        turned = Pairs(1j * stored.high, 1j * stored.low).times(self._turn)
        left = right.minus(self.made.fixed.times(x)).minus(turned)
        if self.growth:
            left = left.minus(stored.times(Pairs.of(np.array(self.growth))))
        if not np.isfinite(left.high).all():
            raise ArithmeticError("singular")
        return left

    def missed(self) -> float:
        """The largest relative error of a first solution for a known vector, times the number of unknowns."""
        known = self.scale * _scattered(self.size, np.cos, 1)
        try:
            found = self._approximate(self._residual(Pairs.of(known), Pairs.of(np.zeros(known.size, complex))))
        except ArithmeticError:
            return np.inf
        left = Pairs.of(known).plus(found).high
        return float(np.abs(left.view(float) / known.view(float)).max(initial=0.0)) * self.size

    def of(self, b: Pairs) -> tuple[Pairs, list[Pairs]]:
        """The solution (size,) for b (size,), and its error contributions.

        These are the corrections for the remaining residual, and for its rounding.

        Raises
        ------
        ArithmeticError
            Overflow.
        """
        with np.errstate(all="ignore"):
            x, before = self._approximate(b), np.inf
            for _ in range(CORRECTIONS):
                left = self._approximate(self._residual(x, b))
                size = float(np.abs(left.high / self.scale).max(initial=0.0))
                if not size < 0.5 * before:
                    break
                x, before = x.plus(left), size
            s = complex(self.growth, float(self._turn.high))
            terms = self.made.fixed.magnitudes(x.high) + abs(s) * self.made.stored.magnitudes(x.high)
            rounding = ROUNDING * (terms + np.abs(b.high))
            probes = (Pairs.of(rounding * _scattered(self.size, wave, 0)) for wave in (np.cos, np.sin))
            return x, [left, *map(self._approximate, probes)]

    def _in_pairs(self, left: np.ndarray) -> Callable[[Pairs], Pairs]:
        """Solutions from dense factors in pairs of doubles, of real and imaginary parts.

        Raises
        ------
        ArithmeticError
            A pivot is zero.
        """
        fixed, stored = self.made.fixed.dense(), self.made.stored.dense()
        turned, real = stored.times(self._turn), fixed.plus(stored.times(Pairs.of(np.array(self.growth))))
        rows, columns = np.tile(left, 2), np.tile(self.scale, 2)
        factor = PairFactor(
            Pairs(*(rows[:, None] * np.block([[a, -c], [c, a]]) * columns for a, c in zip(real, turned)))
        )

        def solved(right: Pairs) -> Pairs:
            found = factor.solve(Pairs(*(rows * np.append(part.real, part.imag) for part in right)))
            parts = (np.split(columns * part, 2) for part in found)
            return Pairs(*(real + 1j * imaginary for real, imaginary in parts))

        return solved


def _scattered(size: int, wave: Callable[[np.ndarray], np.ndarray], first: int) -> np.ndarray:
    """Complex numbers with parts scattered between −1 and 1."""
    real, imaginary = np.split(wave(2.0 * np.pi * GOLDEN * np.arange(first, 2 * size + first)), 2)
    return real + 1j * imaginary


def _factored(
    matrix: csc_matrix | np.ndarray,
) -> tuple[Callable[[Pairs], Pairs] | None, np.ndarray, np.ndarray]:
    """A solver in doubles, None where a pivot is zero or overflows, and the scales of rows and columns."""
    matrix, left, right = scaled(matrix)
    try:
        solve = factored(matrix).solve
    except ArithmeticError:
        return None, left, right
    return lambda b: Pairs.of(right * solve(left * b.high)), left, right


__all__ = [
    "DENSE",
    "Formulation",
    "Linearized",
    "SmallSignalEquations",
    "Solution",
    "linearized",
    "nodal",
    "of_elements",
    "of_tree",
    "small_signal_equations",
]
