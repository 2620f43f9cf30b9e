"""Modified nodal analysis of small signals, (A₀ + s A₁) x = b: A₁ holds capacitances and inductances.

The unknowns are those of `circuitsim.controlled.equations`: node voltages, then currents of voltage sources,
inductors, controlled elements and small resistors. A system is solved to about 30 digits, with an estimate of the
remaining error.

The factors of the matrix in doubles are corrected with residuals that are exact except for one rounding (iterative
refinement in extended precision: Demmel et al., 2006). Whether corrections converge to *the* solution is measured on a
known vector: their initial relative error there applies to any solution. For a singular matrix the null vector is lost,
for any right-hand side. Where they fail, elimination in decimals decides.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, localcontext
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from circuitsim.analysis.collapse import elementary_point
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.solve import solve
from circuitsim.circuit import GROUND, Circuit, CircuitArrays
from circuitsim.circuit.couplings import windings_of
from circuitsim.circuit.elements import CAPACITOR, CURRENT, DIODE, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.expansion import Expansion, expanded
from circuitsim.circuit.laws import Law
from circuitsim.controlled.certificate import law_arrays
from circuitsim.controlled.equations import Equations, RightSide, equations, references, right_side
from circuitsim.controlled.linear import Terms, corrected, factored, scaled
from circuitsim.errors import UsageError
from circuitsim.kernels import kernel
from circuitsim.models.junction_diode import charge, junction
from circuitsim.models.smooth import SmoothDevice
from circuitsim.program.precise import Pairs

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


class Entries(NamedTuple):
    """A matrix as unsummed terms, because sums of admittances at a node round: rows, columns and values (t,)."""

    row: np.ndarray
    column: np.ndarray
    value: Pairs

    @classmethod
    def of(cls, memory: csr_matrix, storages: np.ndarray) -> Entries:
        """P diag(storages) Pᵀ from Pᵀ (k, size): the products of all pairs of entries of each row."""
        many = np.diff(memory.indptr)
        pairs = many * many
        row = np.repeat(np.arange(many.size), pairs)
        place = np.arange(row.size) - np.repeat(np.cumsum(pairs) - pairs, pairs)
        left, right = (memory.indptr[row] + part for part in np.divmod(place, many[row]))
        value = Pairs.of(memory.data[left]).times(Pairs.of(memory.data[right])).times(Pairs.of(storages[row]))
        return cls(memory.indices[left], memory.indices[right], value)

    @classmethod
    def joined(cls, parts: Sequence[Entries]) -> Entries:
        """The sum of several."""
        none = np.zeros(0, dtype=np.int64)
        row, column, value = zip((none, none, Pairs.of(np.zeros(0))), *parts)
        return cls(np.concatenate(row), np.concatenate(column), Pairs(*map(np.concatenate, zip(*value))))

    def block(self, row: int, column: int, factor: Pairs) -> Entries:
        """As a block of a larger matrix that begins there, times a number."""
        return Entries(self.row + row, self.column + column, self.value.times(factor))

    def transposed(self) -> Entries:
        """The transposed matrix."""
        return self._replace(row=self.column, column=self.row)

    def terms(self, size: int) -> Terms:
        """The terms of the rows; the low parts of values are terms of their own."""
        low = np.flatnonzero(self.value.low)
        row, column = (np.append(place, place[low]) for place in self[:2])
        order, value = np.argsort(row, kind="stable"), np.append(self.value.high, self.value.low[low])
        row, column, value = row[order], column[order], value[order]
        none = np.full(row.size, -1)
        return Terms(value, column, row, np.searchsorted(row, np.arange(size + 1)), value, none, none)


FEW = 100
"""Maximum number of unknowns of a dense matrix, which is then faster than a sparse one."""


class SmallSignalEquations(NamedTuple):
    """The equations of a linearized circuit.

    Attributes
    ----------
    linear : Linearized
    eq : Equations
        Their unknowns.
    constant, stored : Entries
        A₀ and A₁.
    sources : RightSide
        From the amplitudes of sources to b.
    memory : (k, size) sparse array
        Pᵀ, where A₁ = P diag(storages) Pᵀ, if ``factored``. For coupled inductors with the inductances M = Uᵀ D U its
        rows are those of U, in the equations of their currents.
    storages : (k,) float array
        C of capacitors, −L of inductors, −D of coupled ones, F and H.
    elements : (k,) int array
        Their positions.
    ideal : bool
        Whether some coupled inductors store no energy of their own.
    """

    linear: Linearized
    eq: Equations
    constant: Entries
    stored: Entries
    sources: RightSide
    memory: csr_matrix
    storages: np.ndarray
    elements: np.ndarray
    ideal: bool

    def admittances(self, s: complex) -> np.ndarray:
        """Admittances of resistors and capacitors (m,), S; 0 for all other elements."""
        kind, _, _, value, _ = self.linear.arrays
        found = np.where(kind == CAPACITOR, s * value, 0.0)
        ohmic = (kind == RESISTOR) & (self.eq.own < 0)
        found[ohmic] = 1.0 / value[ohmic]
        return found

    def transposed(self) -> SmallSignalEquations:
        """Those of the adjoint circuit."""
        return self._replace(constant=self.constant.transposed(), stored=self.stored.transposed())

    def matrix(self, s: complex) -> csc_matrix | np.ndarray:
        """A₀ + s A₁ in doubles; an array of up to `FEW` unknowns."""
        from scipy.sparse import csc_matrix

        whole = Entries.joined([self.constant, self.stored])
        entry = np.append(self.constant.value.high, s * self.stored.value.high)
        found = csc_matrix((entry, (whole.row, whole.column)), shape=(self.eq.size, self.eq.size))
        return found.toarray() if self.eq.size <= FEW else found

    def right_side(self, amplitudes: np.ndarray) -> np.ndarray:
        """b (size,) for complex amplitudes (m,) of the sources, V or A."""
        return self.sources.of(amplitudes.real)[0] + 1j * self.sources.of(amplitudes.imag)[0]

    def at_nodes(self, x: np.ndarray) -> np.ndarray:
        """Potentials (…, n_nodes), V, of unknowns (…, size)."""
        return np.insert(x[..., : self.linear.arrays.n_nodes - 1], GROUND, 0, axis=-1)

    def drops(self, x: np.ndarray) -> np.ndarray:
        """Branch voltages (…, m), V, of unknowns (…, size)."""
        nodes = self.at_nodes(x)
        return np.asarray(nodes[..., self.linear.arrays.first] - nodes[..., self.linear.arrays.second])

    def currents(self, x: np.ndarray, drops: np.ndarray, s: complex) -> np.ndarray:
        """Branch currents (…, m), A, of unknowns (…, size) with these branch voltages; 0 in current sources."""
        return np.asarray(np.where(self.eq.own >= 0, x[..., self.eq.own], self.admittances(s) * drops))


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
    from scipy.sparse import csr_matrix

    arrays, circuit = linear.arrays, linear.expansion.circuit
    kind, first, second, value, _ = arrays
    windings = windings_of(circuit, couplings)
    ideal = windings.independent < windings.inductors.size
    # A capacitor connects its nodes at every frequency.
    tied = arrays._replace(kind=np.where(kind == CAPACITOR, RESISTOR, kind))
    eq = equations(arrays, linear.laws, references(tied))
    gain, under = (np.where(place >= 0, value[place], 1.0) for place in (eq.gain, eq.under))
    factor = Pairs.of(np.where(np.isnan(gain), 1.0, gain))
    constant = Entries(eq.row, eq.column, Pairs.of(eq.share).times(factor).over(Pairs.of(under)))

    plates, inductors = np.flatnonzero(kind == CAPACITOR), np.flatnonzero(kind == INDUCTOR)
    coupled = windings.inductors
    alone = inductors[~np.isin(inductors, coupled)]
    turns, inductance = np.eye(coupled.size), value[coupled]
    if ideal or factored:
        turns, inductance = windings.turns, windings.inductance
    winding, turned = np.nonzero(turns)
    k, begin = np.arange(plates.size + inductors.size), plates.size + alone.size
    row = np.concatenate([k[: plates.size], k[:begin], begin + winding])
    column = np.concatenate([first[plates] - 1, second[plates] - 1, eq.own[alone], eq.own[coupled[turned]]])
    entry = np.concatenate([np.repeat([1.0, -1.0], plates.size), np.ones(alone.size), turns[winding, turned]])
    inside = (column >= 0) & ~np.isin(column, eq.pinned - 1)
    memory = csr_matrix((entry[inside], (row[inside], column[inside])), shape=(k.size, eq.size))
    storages = np.concatenate([value[plates], -value[alone], -inductance])
    stored = [Entries.of(memory, storages)]
    if coupled.size and not (ideal or factored):
        a, b = (np.array([circuit.element_index(pair[k]) for pair in couplings]) for k in (0, 1))
        henries, factors = Pairs.of(value), Pairs.of(-np.array(list(couplings.values())))
        mutual = Entries(eq.own[a], eq.own[b], henries.at(a).times(henries.at(b)).root().times(factors))
        stored += [mutual, mutual.transposed()]
    return SmallSignalEquations(
        linear,
        eq,
        constant,
        Entries.joined(stored),
        right_side(arrays, law_arrays(linear.laws), eq),
        memory,
        storages,
        np.concatenate([plates, alone, coupled]),
        ideal,
    )


CONTRACTION = 1e-2
"""Largest relative error of a first correction on a known vector: each further one gains two digits or more."""

CORRECTIONS = 20
"""Maximum number of corrections: at 1e-2 each, 16 reach the 32 digits of pairs of doubles."""

EACH = 2.0**-106
"""Relative error of a pair of doubles."""

ROUNDING = 2.0**-103
"""Relative error of a sum of products of pairs of doubles, relative to its terms: some units of 2⁻¹⁰⁵."""

DECIMALS, EXACT = Context(120), 100
"""120 digits, and the maximum number of unknowns for elimination in them, which takes some seconds."""

GOLDEN = 0.5 * (5.0**0.5 - 1.0)
"""Fraction of a turn whose multiples have scattered cosines."""


decimals = np.frompyfunc(Decimal, 1, 1)


def inverse(matrix: np.ndarray) -> np.ndarray:
    """The inverse of a matrix of decimals, by Gauss–Jordan elimination with partial pivoting.

    Raises
    ------
    ArithmeticError
        A pivot is zero.
    """
    size = len(matrix)
    whole = np.concatenate([matrix, decimals(np.eye(size))], axis=1)
    for k in range(size):
        p = k + int(np.abs(whole[k:, k]).argmax())
        whole[[k, p]] = whole[[p, k]]
        whole[k] /= whole[k, k]
        rows, columns = np.flatnonzero(whole[:, k]), np.flatnonzero(whole[k])
        rows = rows[rows != k]
        whole[np.ix_(rows, columns)] -= np.outer(whole[rows, k], whole[k, columns])
    return whole[:, size:]


def phasors(parts: np.ndarray) -> np.ndarray:
    """Complex numbers (…, n) from their real and imaginary parts (…, 2, n), of any type."""
    real, imaginary = np.moveaxis(parts.astype(float), -2, 0)
    return np.asarray(real + 1j * imaginary)


ONE, ZERO = Pairs.of(np.ones(())), Pairs.of(np.zeros(()))


class Solution:
    """The solution of (A₀ + s A₁) x = b for any b, at s = growth + j turn: of twice as many real equations, in the real
    parts, then the imaginary parts.

    Parameters
    ----------
    system : SmallSignalEquations
    growth, turn : Pairs
        1/s, rad/s.
    exact : bool
        Whether to eliminate in decimals.

    Raises
    ------
    ArithmeticError
        The matrix is singular: to the precision of doubles, or, if ``exact``, to that of s A₁ as pairs.
    """

    def __init__(
        self, system: SmallSignalEquations, growth: Pairs = ZERO, turn: Pairs = ZERO, exact: bool = False
    ) -> None:
        n, stored, constant = system.eq.size, system.stored, system.constant
        self.size, self.exact = 2 * n, exact
        self._branch = np.tile(np.arange(n) >= system.linear.arrays.n_nodes - 1, 2)
        blocks = (0, 0, growth), (n, n, growth), (n, 0, turn), (0, n, ZERO.minus(turn))
        self._moving = Entries.joined([stored.block(*own) for own in blocks if own[2].high])
        whole = Entries.joined([constant, constant.block(n, n, ONE), self._moving])
        self.terms = whole.terms(self.size)
        with np.errstate(all="ignore"), localcontext(DECIMALS):
            matrix, self._left, self._right = scaled(system.matrix(complex(growth.high, turn.high)))
            self.scale = np.tile(self._right, 2)
            known = self.scale * self._scattered(np.cos, 1)
            if exact:
                exactly = np.full((self.size, self.size), Decimal(0))
                np.add.at(exactly, (self.terms.row, self.terms.column), decimals(self.terms.value))
                left, right = decimals(np.tile(self._left, 2)), decimals(self.scale)[:, None]
                self._inverse = right * inverse(left[:, None] * exactly * right[:, 0]) * left
                missed = self._moved(known) + (self._inverse @ (exactly @ decimals(known))).astype(float) - known
            else:
                self._lu = factored(matrix)
                left = self._residual(np.zeros(self.size), known, np.zeros((2, self.size)))
                missed = (known + self._rough(left)) * self.size
            if not np.abs(missed / known).max() <= CONTRACTION:
                raise ArithmeticError("singular")

    def _rough(self, right: np.ndarray) -> np.ndarray:
        """The solution in doubles."""
        found = self._right * self._lu.solve(self._left * phasors(right.reshape(2, -1)))
        return np.append(found.real, found.imag)

    def _residual(self, right: np.ndarray, change: np.ndarray, x: np.ndarray) -> np.ndarray:
        """The residual (size,) of a solution (2, size), to which a change is added before."""
        terms, left = self.terms, np.empty(right.size)
        kernel(corrected, right.size)(terms.value, terms.column, terms.ends, right, change, *x, left)
        if not np.isfinite(left).all():
            raise ArithmeticError("singular")
        return left

    def _scattered(self, wave: Callable[[np.ndarray], np.ndarray], first: int) -> np.ndarray:
        """Numbers between −1 and 1."""
        return wave(2.0 * np.pi * GOLDEN * np.arange(first, self.size + first))

    def of(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The solution for b (n,), and its error contributions.

        Returns
        -------
        x : (2, 2, n) array
            Real and imaginary parts as unevaluated sums; decimals if ``exact``.
        errors : (k, n) complex array
            The corrections for the remaining residual and for its rounding; if ``exact``, for the rounding of s A₁.

        Raises
        ------
        ArithmeticError
            Overflow.
        """
        with np.errstate(all="ignore"), localcontext(DECIMALS):
            x, errors = (self._eliminated if self.exact else self._refined)(np.append(b.real, b.imag))
        return x.reshape(2, 2, -1), phasors(errors.reshape(-1, 2, b.size))

    def _refined(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`of` by corrections."""
        x, change, before = np.zeros((2, self.size)), self._rough(b), np.inf
        for _ in range(CORRECTIONS):
            left = self._rough(self._residual(b, change, x))
            size = float(np.abs(left / self.scale).max(initial=0.0))
            if not size < 0.5 * before:
                break
            change, before = left, size
        terms = np.bincount(self.terms.row, np.abs(self.terms.value * x[0][self.terms.column]), self.size)
        rounding = ROUNDING * (terms + np.abs(b))
        probes = (self._rough(rounding * self._scattered(wave, 0)) for wave in (np.cos, np.sin))
        return x, np.stack([left, *probes])

    def _eliminated(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`of` by elimination."""
        x = self._inverse @ decimals(b)
        high = x.astype(float)
        return np.array([decimals(high), x - decimals(high)]), self._moved(high)

    def _moved(self, x: np.ndarray) -> np.ndarray:
        """How far (2, size) a solution moves as s A₁ is rounded."""
        row, column, value = self._moving
        terms = value.high * x[column]
        # The capacitances of a node round together, the factors of coupled windings each on their own.
        whole, apart = (np.bincount(row, own, self.size) for own in (terms, np.abs(terms)))
        waves = (self._scattered(wave, 0) for wave in (np.cos, np.sin))
        right = np.stack([EACH * np.where(self._branch, wave * apart, whole) for wave in waves], axis=1)
        return (self._inverse @ decimals(right)).T.astype(float)


def solution_at(system: SmallSignalEquations, growth: Pairs = ZERO, turn: Pairs = ZERO) -> Solution:
    """The solution from doubles; from decimals where these fail, of up to `EXACT` unknowns.

    Raises
    ------
    ArithmeticError
        The matrix is singular.
    """
    try:
        return Solution(system, growth, turn)
    except ArithmeticError:
        if system.eq.size > EXACT:
            raise
        return Solution(system, growth, turn, exact=True)


__all__ = [
    "EXACT",
    "Linearized",
    "SmallSignalEquations",
    "Solution",
    "linearized",
    "of_elements",
    "phasors",
    "small_signal_equations",
    "solution_at",
]
