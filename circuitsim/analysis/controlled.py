"""Circuits with controlled sources: equations, blocks and factors for one set of resistances; certified operating
points, with a verdict on uniqueness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.convex import prepared_convex
from circuitsim.analysis.operating_point import OperatingPoint, Uniqueness, Values, changed_by, check_start
from circuitsim.analysis.solution_warnings import (
    floating,
    floating_control,
    jump,
    listed,
    nonunique_currents,
    nonunique_potential,
    same_point,
    several,
)
from circuitsim.certificate import Certificate, largest_at_nodes
from circuitsim.circuit import Circuit, CircuitArrays
from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
from circuitsim.controlled.certificate import LawArrays, certify_controlled, demanded_of_currents, law_arrays
from circuitsim.controlled.equations import (
    OPEN,
    Equations,
    RawBlock,
    RightSide,
    Ties,
    equations,
    floating_controls,
    lowest_nodes,
    parts,
    right_side,
)
from circuitsim.controlled.linear import DENSE, Factor, Pair, Pattern, Terms
from circuitsim.controlled.rational import LARGEST, PORTS, RationalBlock, Read, binary, decimal
from circuitsim.controlled.search import (
    ENTRIES,
    INVERTED,
    Block,
    Choice,
    Inverse,
    Outcome,
    Search,
    StructureError,
    all_monotone,
    all_regular,
    blocks,
    inverses,
    port_values,
)
from circuitsim.controlled.sections import levels, stages
from circuitsim.controlled.states import CLEAR
from circuitsim.engine.loops import WireLoops
from circuitsim.errors import ConvergenceError, NoOperatingPointError, NoSteadyStateError, TopologyError, some

SMALL = 200
"""Maximum number of unknowns for rational arithmetic, whose numbers then have 3,000 digits."""

KEPT = 8
"""Maximum number of factors kept, one for each set of conducting diodes."""


class Roles(NamedTuple):
    """Positions of elements (k,); ``transfer`` are positions of equations.

    Attributes
    ----------
    inside : int array
        Elements whose current is an unknown.
    nodal, ohmic : int arrays
        Resistors whose current follows from their drop, and whose drop follows from their current.
    held, given : int arrays
        Voltage sources; current sources.
    transfer : int array
        Equations of voltages controlled by currents alone.
    """

    inside: np.ndarray
    nodal: np.ndarray
    ohmic: np.ndarray
    held: np.ndarray
    given: np.ndarray
    transfer: np.ndarray


class ControlledSystem:
    """Equations and blocks of a circuit, for one set of values except those of sources; ``varying`` resistances: see
    `circuitsim.controlled.equations.equations`."""

    def __init__(
        self, circuit: Circuit, arrays: CircuitArrays, laws: LawArrays, varying: np.ndarray | None = None
    ) -> None:
        self.circuit, self.arrays, self.laws = circuit, arrays, laws
        self.eq: Equations = equations(arrays, circuit.laws, None, varying)
        self.pattern = Pattern(self.eq)
        self.ties = Ties(arrays, laws, self.eq)
        self.sources: RightSide = right_side(arrays, laws, self.eq)
        self._exact: dict[tuple[int, Read], RationalBlock] = {}
        self._orders: dict[tuple[Read | None, bool], list[Block]] = {}
        self.factors: dict[tuple[bytes, bool, str], Factor] = {}

    @cached_property
    def roles(self) -> Roles:
        """How each element's current and drop are obtained."""
        kind, inside = self.arrays.kind, self.eq.own >= 0
        resistor, places = kind == RESISTOR, np.flatnonzero
        return Roles(
            places(inside),
            places(resistor & ~inside),
            places(resistor & inside),
            places(kind == VOLTAGE),
            places(kind == CURRENT),
            places(self.laws.of_currents()),
        )

    @cached_property
    def raw(self) -> list[RawBlock]:
        """Equations, unknowns and diodes of the blocks in topological order."""
        try:
            return blocks(self.eq, self.pattern)
        except StructureError as error:
            raise self.singular(error.rows) from None

    @cached_property
    def decidable(self) -> bool:
        """Whether the circuit is small enough for rational arithmetic."""
        return self.eq.size <= SMALL and all(b.rows.size <= LARGEST and b.diodes.size <= PORTS for b in self.raw)

    def order(self, read: Read | None = None, whole: bool = False) -> list[Block]:
        """The blocks for the search: in double precision, or in rational arithmetic with ``read`` values; as one block
        if ``whole``."""
        key = read, whole
        if key not in self._orders:
            loaded, raws, made = self.pattern.terms(None), [self.everything] if whole else self.raw, []
            matrix = loaded.dense() if self.eq.size <= DENSE else loaded.matrix()
            inverse = {} if whole or read is not None else dict(self.inverse)
            left = [] if read is not None else [k for k in range(len(raws)) if k not in inverse]
            inverse |= zip(left, inverses(self.eq, loaded, [raws[k] for k in left]))
            for k, raw in enumerate(raws):
                try:
                    known = inverse[k] if read is None else self.exact(-1 if whole else k, read)
                    made.append(Block(self.eq, raw, known, matrix))
                except ArithmeticError:
                    raise self.singular(raw.rows) from None
            self._orders[key] = made
        return self._orders[key]

    @property
    def everything(self) -> RawBlock:
        """All blocks as one."""
        return RawBlock(*map(np.concatenate, zip(*self.raw)))

    def exact(self, k: int, read: Read) -> RationalBlock:
        """Block ``k``, or all as one for −1, in rational arithmetic.

        Raises
        ------
        ArithmeticError
            It is singular.
        """
        value = self.arrays.value
        if all(x != x or binary(x) == decimal(x) for x in value.tolist()):
            read = binary
        if (k, read) not in self._exact:
            raw = self.everything if k < 0 else self.raw[k]
            self._exact[k, read] = RationalBlock(self.eq, self.pattern.terms(None), value, raw, read)
        return self._exact[k, read]

    @cached_property
    def inverse(self) -> dict[int, Inverse]:
        """The inverses of blocks, by number: of all small ones, or only of those with diodes where these would be too
        many."""
        small = [b for b, raw in enumerate(self.raw) if raw.rows.size <= INVERTED]
        if sum(self.raw[b].rows.size ** 2 for b in small) > ENTRIES:
            small = [b for b in small if self.raw[b].diodes.size]
        if sum(self.raw[b].rows.size ** 2 for b in small) > ENTRIES:
            return {}
        return dict(zip(small, inverses(self.eq, self.pattern.terms(None), [self.raw[b] for b in small])))

    @cached_property
    def regular(self) -> bool:
        """Whether there is provably one operating point for any sources."""
        if self.arbitrary:
            return False
        try:
            return all_regular(self.eq, self.pattern.terms(None), self.exact, self.raw, self.inverse)
        except NoOperatingPointError:
            return False  # sections may give the reason

    @cached_property
    def arbitrary(self) -> list[int]:
        """Controlled elements that depend on the potential of a part not tied to ground."""
        return floating_controls(self.arrays, self.circuit.laws)

    @cached_property
    def monotone(self) -> bool:
        """Whether the rest of the circuit draws no power from its diodes; see `all_monotone`."""
        try:
            return all_monotone(self.eq, self.raw, self.inverse)
        except NoOperatingPointError:
            return False  # as for `regular`

    def states(self, currents: np.ndarray | None) -> np.ndarray:
        """The diodes (d,) that conduct at these currents (m,), A; without any, none."""
        diode = self.eq.diode
        return np.zeros(diode.size, dtype=bool) if currents is None else currents[diode] > 0.0

    def factor(self, conducting: np.ndarray | None, quick: bool = False) -> Factor:
        """Factors of the matrix for these diodes, cached; see `Factor`."""
        return self._kept(self.pattern.terms, conducting, quick)

    def tied(self, conducting: np.ndarray, quick: bool = False) -> Factor:
        """`factor`, with what these diodes leave indeterminate resolved; see `Ties`."""
        return self._kept(self.tied_terms if self.ties.terms(conducting) else self.pattern.terms, conducting, quick)

    def tied_terms(self, conducting: np.ndarray, values: np.ndarray | None = None) -> Terms:
        """The terms of that matrix; see `Pattern.terms`."""
        terms, more = self.pattern.terms(conducting, values), self.ties.terms(conducting)
        return terms if more is None else terms.plus(*more)

    def _kept(self, terms: Callable[[Any], Terms], conducting: np.ndarray | None, quick: bool) -> Factor:
        key = b"" if conducting is None else conducting.tobytes(), quick, terms.__name__
        if key not in self.factors:
            if len(self.factors) >= KEPT:
                self.factors.pop(next(iter(self.factors)))
            self.factors[key] = Factor(terms(conducting), quick)
        return self.factors[key]

    def singular(self, rows: np.ndarray) -> NoOperatingPointError:
        """The error for equations without a unique solution in any diode states."""
        elements, nodes = self.members(rows, rows[:0])
        return NoOperatingPointError(
            f"the equations of {listed(elements, nodes)} do not determine currents and voltages (a loop of voltage "
            "sources, an input without feedback, a loop gain of exactly one): check the controls, or add a resistance",
            elements,
            nodes,
        )

    def driven(self, value: np.ndarray) -> NoOperatingPointError | None:
        """The error for a part without ground into which current sources drive a net current, at these values (m,);
        None without one."""
        label, (kind, first, second, _, _) = parts(self.arrays), self.arrays
        source = np.flatnonzero(kind == CURRENT)
        for node in self.eq.pinned.tolist():
            inside = label == label[node]
            across = source[inside[first[source]] != inside[second[source]]]
            net = [
                sum((1 if inside[second[k]] else -1) * read(value[k]) for k in across.tolist())
                for read in (binary, decimal)
            ]
            if all(net):
                elements = [self.circuit.names[k] for k in across.tolist()]
                nodes = [self.circuit.node_names[k] for k in np.flatnonzero(inside).tolist()]
                return NoOperatingPointError(
                    f"no operating point exists: the sources {some(elements)} drive {float(net[0]):.6g} A into the "
                    f"nodes {some(nodes)}, which have no path to ground; add one (a large resistor, say)",
                    elements,
                    nodes,
                    proven=True,
                )
        return None

    def given(self, block: Block) -> str:
        """List the potentials and currents that a block takes from others."""
        outside = np.setdiff1d(self.pattern.terms(None).matrix()[block.rows].indices, block.columns)
        n, own = self.arrays.n_nodes, self.carriers
        names = [
            f"v({self.circuit.node_names[u + 1]})" if u < n - 1 else f"i({self.circuit.names[own[u]]})"
            for u in outside.tolist()
            if u < n - 1 or u in own
        ]
        return some(names)

    @property
    def carriers(self) -> dict[int, int]:
        """The elements whose currents are unknowns, by unknown."""
        return {int(u): k for k, u in enumerate(self.eq.own) if u >= 0}

    def members(self, rows: np.ndarray, columns: np.ndarray) -> tuple[list[str], list[str]]:
        """Elements and nodes of given equations and unknowns."""
        kind, first, second, _, n = self.arrays
        own = self.carriers
        inside = {int(u) + 1 for u in columns if u < n - 1}
        elements = {own[int(r)] for r in (*rows, *columns) if r >= n - 1}
        resistors = np.flatnonzero((kind == RESISTOR) | (kind == CURRENT)).tolist()
        elements |= {k for k in resistors if inside & {int(first[k]), int(second[k])}}
        nodes = sorted(inside | {int(r) + 1 for r in rows if r < n - 1})
        return [self.circuit.names[k] for k in sorted(elements)], [self.circuit.node_names[k] for k in nodes]


NEGLIGIBLE = 1e-75
"""Voltages below it, V, count as zero: `circuitsim.newton.steps.NOTHING` times 1e15 Ω."""

NOISE = 2.0**-80
"""Fraction of the largest current or voltage below which others are zero where noise would be their scale."""

Branches = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Potentials, their low-order parts (n_nodes,), V, currents, A, and drops, V (m,)."""


def branches(
    system: ControlledSystem, value: np.ndarray, x: Pair, conducting: np.ndarray, noise: float = 0.0
) -> Branches:
    """Branch quantities from the unknowns, for the values (m,) of all elements.

    Zero are potentials below `NEGLIGIBLE`, potentials and drops below the fraction ``noise`` of the largest, and
    currents below it of the largest current, of that which the largest voltage drives through the largest resistance,
    or of what this voltage drives through the element itself, if that is no resistor through the smallest one at its
    ends.
    """
    roles, arrays, eq = system.roles, system.arrays, system.eq
    first, second, n = arrays.first, arrays.second, arrays.n_nodes
    voltages, low, least = np.zeros(n), np.zeros(n), NEGLIGIBLE
    voltages[1:], low[1:] = x.high[: n - 1], x.low[: n - 1]
    on = joined = eq.diode[conducting]
    if noise:
        reach = largest_voltage(arrays, value, voltages)
        least = max(noise * reach, NEGLIGIBLE)
        drops = (voltages[first] - voltages[second]) + (low[first] - low[second])
        joined = np.append(on, np.flatnonzero(np.abs(drops) < least))
    nothing = np.abs(voltages) < least
    voltages[nothing] = low[nothing] = 0.0
    same = lowest_nodes(arrays, value, joined)
    voltages, low = voltages[same], low[same]
    drops = (voltages[first] - voltages[second]) + (low[first] - low[second])
    currents = np.zeros(value.size)
    currents[roles.inside] = x.high[eq.own[roles.inside]]
    currents[roles.nodal] = drops[roles.nodal] / value[roles.nodal]
    currents[roles.given] = value[roles.given]
    drops[roles.held] = value[roles.held]
    drops[on] = 0.0
    currents[eq.diode[~conducting]] = 0.0
    if noise:
        ohmic = (arrays.kind == RESISTOR) & (value > 0.0) & (value < OPEN)
        own = np.where(ohmic, 1.0 / np.where(ohmic, value, 1.0), 0.0)
        at_node, size = largest_at_nodes(arrays, own), np.abs(currents)
        own = np.where(ohmic, own, np.maximum(at_node[first], at_node[second]))
        least = noise * max(size.max(), reach * own[ohmic].min(initial=np.inf) if ohmic.any() else 0.0)
        currents[size < np.maximum(least, noise * reach * own)] = 0.0
    drops[roles.ohmic] = value[roles.ohmic] * currents[roles.ohmic]
    if roles.transfer.size:
        demanded = demanded_of_currents(system.laws, value, currents)
        drops[system.laws.element[roles.transfer]] = demanded[roles.transfer]
    return voltages, low, currents, drops


def largest_voltage(arrays: CircuitArrays, value: np.ndarray, voltages: np.ndarray) -> float:
    """The largest node voltage, V, except at nodes inside a companion model, between an `OPEN` resistance and a voltage
    source; with values (m,) and voltages (n_nodes,)."""
    kind, first, second, _, n = arrays
    nothing, source = (kind == RESISTOR) & (value >= OPEN), kind == VOLTAGE
    parts, of_tangent = (
        np.bincount(first[own], minlength=n) + np.bincount(second[own], minlength=n)
        for own in (np.ones(kind.size, dtype=bool), nothing | source)
    )
    ends = np.zeros(n, dtype=bool)
    ends[second[nothing]] = ends[first[nothing]] = True
    return float(np.abs(voltages[~(ends & (parts == 2) & (of_tangent == 2))]).max())


def measured(
    system: ControlledSystem, circuit: Circuit, x: Pair, conducting: np.ndarray, tolerance: float, noise: float = 0.0
) -> OperatingPoint:
    """The operating point of unknowns, with its certificate; voltages and currents below the fraction ``noise`` of the
    largest are zero, or below `NOISE` where only that passes a certificate."""
    for share in (noise, NOISE):
        found = branches(system, circuit.arrays().value, x, conducting, share)
        voltages, low, currents, drops = found
        certificate = certify_controlled(circuit.arrays(), system.laws, voltages, currents, drops, tolerance, low)
        if certificate.certified:
            break
    return point_of(system, circuit, found, certificate)


def point_of(system: ControlledSystem, circuit: Circuit, found: Branches, certificate: Certificate) -> OperatingPoint:
    """The operating point from the result of `branches`."""
    voltages, low, currents, drops = found
    info: dict[str, object] = {
        "name": "complementary-pivoting",
        "why": "controlled sources have no energy function",
        "iterations": 1,
        "linear": "LU",
    }
    pinned = [floating([circuit.node_names[k]]) for k in system.eq.pinned.tolist()]
    warnings = (*circuit.notes, *pinned)
    point = OperatingPoint(
        circuit, voltages, currents, {}, np.ones(currents.size, dtype=bool), certificate, info, warnings, drops
    )
    point.low = low
    return point


CHANGES = 8
"""Maximum number of changes of diode states after refinement."""

CARRIES = 1e-12
"""A current in a loop that is not unique and below this fraction of the largest is rounding."""

SHORTED = 1e-9
"""Voltage of a conducting diode, relative to the largest potential, that is not rounding."""


@dataclass(frozen=True, eq=False)
class PreparedControlled:
    """A prepared circuit with controlled sources; same interface as `Prepared`.

    Attributes
    ----------
    circuit : Circuit
        Without devices and amplifiers.
    tolerance : float
        Tolerance of the certificate, relative to local scales.
    any_one : bool
        Whether to omit the search for other operating points, and the verdict, where all of them differ in nothing that
        dissipates (`ControlledSystem.monotone`).
    """

    circuit: Circuit
    tolerance: float
    any_one: bool = False
    _known: dict[bytes, ControlledSystem] = field(default_factory=dict)

    def __reduce__(self) -> tuple[type[PreparedControlled], tuple[Circuit, float, bool]]:
        return PreparedControlled, (self.circuit, self.tolerance, self.any_one)  # without factors

    def solve(
        self,
        values: Values = None,
        start: OperatingPoint | None = None,
        verdict: bool = True,
    ) -> OperatingPoint:
        """The operating point with other element values; see `Prepared.solve`.

        Parameters
        ----------
        start : OperatingPoint, optional
            If there are several, the branch through this one is continued to the new values; a branch that ends before
            them gives a warning (``jump``).
        verdict : bool
            Whether to search for other operating points in rational arithmetic.

        Raises
        ------
        NoOperatingPointError
            None was found; names the smallest sub-circuit without one.
        ConvergenceError
            None passes its certificate.
        """
        check_start(start)
        at, near = self._at(changed_by(self.circuit, values)), None if start is None else start.currents
        system = at.system
        with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
            any_one = self.any_one and (start is not None or (system.ties.some and system.monotone))
            if any_one or system.regular:
                found = at.certified(system.states(near))
                if found is not None:
                    if not any_one:
                        found.solver["blocks"] = len(system.raw)
                        found.uniqueness = Uniqueness.UNIQUE
                    return found
            if self.levels is not None and not system.arbitrary:
                states = at.sectioned(self.levels)
                if states is not None:
                    found = at.certified(system.states(states[1]))
                    if found is not None:
                        return at.completed(found, states[0])
            driven = system.driven(at.value)
            if driven is not None:
                raise driven
            before = None if start is None else unknowns(system.eq, start)
            verdict = verdict and not (self.any_one and start)
            outcome, points = at.searched(before, verdict), list[OperatingPoint | None]()
            if not outcome.choices:
                raise _none(system, outcome)
            for choice in outcome.choices:
                if verdict or not any(points):
                    points.append(at.point(choice, not verdict))
            clear = verdict and all(map(at.determined, outcome.choices))
        return at.judged(outcome, points, clear)

    def near(
        self, column: np.ndarray, start: OperatingPoint | None = None, search: bool = True, noise: float = 0.0
    ) -> OperatingPoint:
        """An operating point for values of all elements, near ``start`` if given; see `solve` for errors.

        Others are not searched for: the verdict is None unless the search was needed, which ``search`` permits. The
        certificate may fail, as a step of Newton's method needs none. Voltages and currents below the fraction
        ``noise`` of the largest are zero.
        """
        at, near = self._at(self.circuit.with_column(column)), None if start is None else start.currents
        with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
            found = at.changed(at.system.states(near), noise=noise)
        if found is None and not search:
            raise ConvergenceError("no operating point was found near the start")
        return self.solve(column, start, verdict=False) if found is None else found

    @cached_property
    def laws(self) -> LawArrays:
        """The laws of the controlled elements as arrays."""
        return law_arrays(self.circuit.laws)

    @cached_property
    def levels(self) -> np.ndarray | None:
        """The level of each element (m,) of a circuit with an acyclic control graph."""
        return levels(self.circuit.arrays(), self.laws)

    def _at(self, circuit: Circuit) -> _Values:
        system = self.system(circuit.arrays())
        return _Values(circuit, system, system.sources.of(circuit.arrays().value), self.tolerance)

    def system(self, arrays: CircuitArrays) -> ControlledSystem:
        """Equations for these values; the previous ones are reused where only sources changed."""
        source = (arrays.kind == VOLTAGE) | (arrays.kind == CURRENT)
        key = np.where(source, 0.0, arrays.value).tobytes()
        if key not in self._known:
            self._known.clear()
            self._known[key] = ControlledSystem(self.circuit, arrays, self.laws)
        return self._known[key]


def always_one(circuit: Circuit, curves: np.ndarray) -> bool:
    """Whether a circuit provably has at most one operating point for any sources and any monotone curves of its diodes,
    of the kinds ``curves`` (d,) (`circuitsim.controlled.rational`).

    Raises
    ------
    NoOperatingPointError
        Its equations do not determine currents and voltages.
    """
    system = ControlledSystem(circuit, circuit.arrays(), law_arrays(circuit.laws))
    terms = system.pattern.terms(None)
    return not system.arbitrary and all_regular(system.eq, terms, system.exact, system.raw, system.inverse, curves)


def loaded_ports(circuit: Circuit, most: int) -> tuple[ControlledSystem, np.ndarray] | None:
    """The equations with all diodes' ports loaded, and the unknowns (size, 1 + d) for z = 0, then their responses to z
    (`circuitsim.controlled.states`); None where these are singular or the ports more than ``most``."""
    arrays = circuit.arrays()
    system = ControlledSystem(circuit, arrays, law_arrays(circuit.laws))
    eq = system.eq
    if eq.diode.size > most:
        return None
    right = np.zeros((eq.size, 1 + eq.diode.size))
    right[:, 0] = system.sources.of(arrays.value)[0]
    right[eq.own[eq.diode], 1 + np.arange(eq.diode.size)] = 1.0
    try:
        return system, system.factor(None).rough(right)
    except ArithmeticError:
        return None


def prepared_controlled(circuit: Circuit, tolerance: float) -> PreparedControlled:
    """Analyse a circuit with controlled sources.

    Raises
    ------
    TopologyError
        It has bidirectional amplifiers as well.
    """
    if circuit.amplified:
        raise TopologyError(
            "bidirectional amplifiers and controlled sources cannot be combined: write the amplifier as an E and an F"
        )
    return PreparedControlled(circuit, tolerance)


class _Values(NamedTuple):
    """A circuit at given values: its equations, their right-hand side, and the tolerance of certificates."""

    circuit: Circuit
    system: ControlledSystem
    right: np.ndarray
    tolerance: float

    @property
    def value(self) -> np.ndarray:
        """The values (m,) of all elements."""
        return self.circuit.arrays().value

    def searched(self, start: np.ndarray | None, verdict: bool) -> Outcome:
        """Result of the search; for a ``verdict`` on a small circuit in rational arithmetic.

        Values are then doubles, or the decimals that these represent: proofs hold for both.
        """
        system = self.system
        if not (verdict and system.decidable):
            return Search(system.eq, system.order(), self.right[0], start, not system.arbitrary).run()
        found = self.decided(start, binary)
        if all(x != x or binary(x) == decimal(x) for x in self.value.tolist()):
            return found
        if found.proven and len(found.choices) < 2:
            other = self.decided(start, decimal)
            same = other.proven and len(other.choices) == len(found.choices)
            return (found if found.choices else other)._replace(proven=same)
        return found

    def decided(self, start: np.ndarray | None, read: Read) -> Outcome:
        """Result of the search in rational arithmetic: block by block, and where a block leaves an indeterminacy that
        later ones may resolve, for all blocks at once."""
        system = self.system
        right = np.array(system.sources.exact(self.value, read))
        found = Search(system.eq, system.order(read), right, start, not system.arbitrary).run()
        if found.proven or system.arbitrary or system.eq.size > LARGEST or system.eq.diode.size > PORTS:
            return found
        whole = Search(system.eq, system.order(read, whole=True), right, start).run()
        return whole if whole.proven or not found.choices else found

    def point(self, choice: Choice, quick: bool) -> OperatingPoint | None:
        """The refined operating point of a choice of states; None where its certificate fails."""
        if choice.x.dtype == object:
            high = choice.x.astype(float)
            low = np.array([float(x - Fraction(h)) for x, h in zip(choice.x.tolist(), high.tolist())])
            point = measured(self.system, self.circuit, Pair(high, low), choice.conducting, self.tolerance)
            if point.certificate.certified:
                return point
        return self.certified(choice.conducting, quick)

    def certified(self, conducting: np.ndarray, quick: bool = True) -> OperatingPoint | None:
        """The result of `changed` if it is certified."""
        found = self.changed(conducting, quick)
        return found if found is not None and found.certificate.certified else None

    def changed(self, conducting: np.ndarray, quick: bool = True, noise: float = 0.0) -> OperatingPoint | None:
        """An operating point, by changing all wrong diode states at once, first those of ``conducting`` (d,); None
        where that does not terminate. See `measured`."""
        system, eq, inner = self.system, self.system.eq, self.circuit.arrays().n_nodes - 1
        every = np.arange(eq.diode.size)

        def wrong_in(x: np.ndarray, clear: float) -> tuple[np.ndarray, bool]:
            """Diodes whose current or voltage has the wrong sign; whether one exceeds this fraction of the largest, or
            of the largest potential."""
            v, i = port_values(eq, every, x)
            wrong, size = np.where(conducting, i < 0.0, v > 0.0), np.abs(np.where(conducting, i, v))
            scale = max(np.abs(x[:inner]).max(), size.max(initial=0.0))
            return wrong, bool((size[wrong] > clear * scale).any())

        for _ in range(CHANGES):
            try:
                factor = system.tied(conducting, quick)
                rough = factor.rough(self.right[0])
                wrong, clear = wrong_in(rough, CLEAR)
                if not clear:
                    x = factor.solve(self.right, rough)
                    wrong, clear = wrong_in(x.high, NOISE)
            except ArithmeticError:
                return None
            if not clear:
                v = np.abs(port_values(eq, every, x.high)[0])
                if (v[conducting] > SHORTED * np.abs(x.high[:inner]).max()).any():
                    return None  # a voltage source shorted by conducting diodes
                point = measured(system, self.circuit, x, conducting, self.tolerance, noise)
                if point.certificate.certified or not wrong.any():
                    return point
            conducting = conducting ^ wrong
        return None

    def determined(self, choice: Choice) -> bool:
        """Whether the potentials and currents of a choice are determined beyond the rounding of values."""
        if not choice.determined:
            return True  # by their signs
        try:
            factor = self.system.factor(choice.conducting)
            return factor.determined(factor.solve(self.right).high)
        except ArithmeticError:
            return False  # singular: existence and position of a solution depend on rounding

    def sectioned(self, level: np.ndarray) -> tuple[OperatingPoint, np.ndarray] | None:
        """The operating point with independent sources of the same values in place of controlled ones, and its currents
        (m,), A, without rounding in loops, from the levels of the elements (`circuitsim.controlled.sections`); None
        where a section has none, but another choice in an earlier one may leave it one.

        Raises
        ------
        NoSteadyStateError
            A section has no steady state.
        """
        laws, value, n = self.system.laws, self.value, self.circuit.arrays().n_nodes
        given, state, controls = value.copy(), np.zeros(n + value.size), laws.controls(value, n)
        given[laws.element] = laws.constant
        unique = True
        for own, stage in stages(self.circuit, level):
            part = stage.with_column((given + controls @ state)[own])
            try:
                point = prepared_convex(part, "auto", self.tolerance).solve()
            except NoSteadyStateError:
                if unique:
                    raise
                return None
            unique, size = bool(point.unique.all()) and not point.intervals, np.abs(point.currents)
            carries = point.unique | (size > CARRIES * size.max())
            state[:n], state[n + own] = point.voltages, np.where(carries, point.currents, 0.0)
        return point, state[n:]

    def completed(self, point: OperatingPoint, states: OperatingPoint) -> OperatingPoint:
        """An operating point found from its sections, with what these leave open."""
        # The potential of a part not tied to ground is relative to its reference; that of a part tied by controlled
        # currents alone is not.
        references = {self.circuit.node_names[k] for k in self.system.eq.pinned.tolist()}
        floating = [problem for problem in states.warnings if problem.kind == "floating"]
        loose = [problem for problem in floating if problem.names[0] not in references]
        point.intervals, point.warnings = states.intervals, (*point.warnings, *loose)
        if states.intervals:
            point.warnings = (*point.warnings, nonunique_potential(list(states.intervals)))
        self.share(point)
        single = not (states.intervals or loose) and bool(states.unique.all() and point.unique.all())
        point.uniqueness = Uniqueness.UNIQUE if single else Uniqueness.UNKNOWN
        return point

    def share(self, point: OperatingPoint) -> None:
        """Choose the currents of least norm in loops of diodes, shorts and voltage sources, where these are certified,
        and mark those that are not unique."""
        system, arrays, currents = self.system, self.circuit.arrays(), point.currents.copy()
        loops = WireLoops.of(arrays, system.ties.wires(point.drops))
        if loops.elements.size:
            assert point.low is not None
            currents[loops.elements] = loops.least_norm(currents[loops.elements])
            state = point.voltages, currents, point.drops
            certificate = certify_controlled(arrays, system.laws, *state, point.certificate.tolerance, point.low)
            if certificate.certified:
                point.currents, point.certificate = currents, certificate
        point.unique = system.ties.unique(point.currents, point.drops)
        if not point.unique.all():
            point.warnings = (*point.warnings, nonunique_currents(self.circuit, point.unique))

    def judged(self, outcome: Outcome, points: list[OperatingPoint | None], clear: bool) -> OperatingPoint:
        """The first certified operating point with its verdict; another one counts if rounding moves none."""
        good = [point for point in points if point is not None]
        if not good:
            raise ConvergenceError(
                "the search ended at an operating point whose certificate fails: the values span more than double "
                "precision; scale them, or use a larger --tolerance"
            )
        point, system = good[0], self.system
        point.solver["blocks"] = len(system.raw)
        if clear and outcome.proven and len(outcome.choices) == 1:
            point.uniqueness = Uniqueness.UNIQUE
        else:
            point.uniqueness = Uniqueness.UNKNOWN
            for one in good:
                self.share(one)
            if clear and len(good) > 1 and (outcome.choices[0].x.dtype == object or not same_point(*good)):
                point.uniqueness, point.other = Uniqueness.SEVERAL, good[1]
                point.warnings = (*point.warnings, several(point, good[1]))
        if system.arbitrary:
            point.warnings = (*point.warnings, floating_control([self.circuit.names[k] for k in system.arbitrary]))
        if outcome.choices[0].jumped and points[0] is not None:
            point.warnings = (*point.warnings, jump(_diodes(system, outcome.choices[0].jumped)))
        return point


def unknowns(eq: Equations, point: OperatingPoint) -> np.ndarray:
    """The unknowns of the equations at an operating point."""
    x = np.zeros(eq.size)
    x[: point.voltages.size - 1] = point.voltages[1:]
    inside = eq.own >= 0
    x[eq.own[inside]] = point.currents[: inside.size][inside]
    return x


def _diodes(system: ControlledSystem, blocks: tuple[Block, ...]) -> list[str]:
    """The names of the diodes of some blocks."""
    return [system.circuit.names[system.eq.diode[k]] for block in blocks for k in block.diodes.tolist()]


def _none(system: ControlledSystem, outcome: Outcome) -> NoOperatingPointError:
    block = outcome.failed
    assert block is not None
    elements, nodes = system.members(block.rows, block.columns)
    diodes = _diodes(system, (block,))
    if outcome.proven:
        text = f"no operating point exists: every state of {some(diodes)} contradicts the equations of"
    else:
        text = f"no operating point was found (which is no proof that none exists): no state of {some(diodes)} fits"
    given = system.given(block)
    text = f"{text} {listed(elements, nodes)}"
    if given:
        text = f"{text} for the {given} that the rest of the circuit sets"
    return NoOperatingPointError(text, elements, nodes, outcome.proven)
