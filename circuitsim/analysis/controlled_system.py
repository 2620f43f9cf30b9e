"""Equations, blocks and factors of a circuit with controlled sources, for one set of resistances, and its operating
points from the unknowns of these equations.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.solution_warnings import floating, listed
from circuitsim.certificate import Certificate, largest_at_nodes
from circuitsim.circuit import Circuit, CircuitArrays
from circuitsim.circuit.elements import CURRENT, RESISTOR, VOLTAGE
from circuitsim.controlled.blocks import ENTRIES, INVERTED, Block, Inverse, StructureError, blocks, inverses
from circuitsim.controlled.certificate import LawArrays, certify_controlled, demanded_of_currents
from circuitsim.controlled.equations import (
    OPEN,
    Equations,
    RawBlock,
    RightSide,
    equations,
    floating_controls,
    parts,
    right_side,
)
from circuitsim.controlled.linear import DENSE, Factor, Pair, Pattern, Terms
from circuitsim.controlled.rational import LARGEST, PORTS, RationalBlock, Read, binary, decimal
from circuitsim.controlled.search import all_monotone, all_regular
from circuitsim.controlled.ties import Ties, lowest_nodes
from circuitsim.errors import NoOperatingPointError, some

SMALL = 200
"""Maximum number of unknowns for rational arithmetic, whose numbers then have 3,000 digits."""

KEPT = 8
"""Maximum number of factors kept, one for each set of conducting diodes."""


class Roles(NamedTuple):
    """Positions of elements (k,); ``transfer`` and ``owners`` are positions of equations.

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
    owners : int array
        The equation of each controlling current.
    """

    inside: np.ndarray
    nodal: np.ndarray
    ohmic: np.ndarray
    held: np.ndarray
    given: np.ndarray
    transfer: np.ndarray
    owners: np.ndarray


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
        self.factors: dict[tuple[bytes, bool, bool], Factor] = {}

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
            self.laws.owners(),
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
        return self._kept(conducting, quick, False)

    def tied(self, conducting: np.ndarray, quick: bool = False) -> Factor:
        """`factor`, with what these diodes leave indeterminate resolved; see `circuitsim.controlled.ties`."""
        return self._kept(conducting, quick, self.ties.terms(conducting) is not None)

    def tied_terms(self, conducting: np.ndarray, values: np.ndarray | None = None) -> Terms:
        """The terms of that matrix; see `Pattern.terms`."""
        terms, more = self.pattern.terms(conducting, values), self.ties.terms(conducting)
        if more is None:
            return terms
        unit = float(np.exp2(np.round(np.log2(self.eq.load.mean()))))
        return terms.plus(more.row, more.column, more.sign * np.where(more.current, unit, 1.0 / unit))

    def _kept(self, conducting: np.ndarray | None, quick: bool, tied: bool) -> Factor:
        key = b"" if conducting is None else conducting.tobytes(), quick, tied
        if key not in self.factors:
            if len(self.factors) >= KEPT:
                self.factors.pop(next(iter(self.factors)))
            terms = self.tied_terms(conducting) if conducting is not None and tied else self.pattern.terms(conducting)
            self.factors[key] = Factor(terms, quick)
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
        outside = np.setdiff1d(self.pattern.matrix(None)[block.rows].indices, block.columns)
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


NOISE = 2.0**-80
"""Fraction of the largest current or voltage below which others are zero where noise would be their scale."""

Branches = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Potentials, their low-order parts (n_nodes,), V, currents, A, and drops, V (m,)."""


def branches(
    system: ControlledSystem, value: np.ndarray, x: Pair, conducting: np.ndarray, noise: float = 0.0
) -> Branches:
    """Branch quantities from the unknowns, for the values (m,) of all elements.

    Zero are voltages below the fraction ``noise`` of the largest, and currents below it of the largest current or of
    that which the largest voltage drives through the largest resistance; and all currents, if each is below it of what
    this voltage drives through the element itself, if that is no resistor through the smallest one at its ends.
    """
    roles, arrays, eq = system.roles, system.arrays, system.eq
    first, second, n = arrays.first, arrays.second, arrays.n_nodes
    voltages, low = np.zeros(n), np.zeros(n)
    voltages[1:], low[1:] = x.high[: n - 1], x.low[: n - 1]
    if noise:
        reach = largest_voltage(arrays, value, voltages)
        grid = noise * np.exp2(np.ceil(np.log2(max(reach, 1e-200))))
        low = np.round(low / grid) * grid
        voltages[np.abs(voltages) < grid] = 0.0
    on = eq.diode[conducting]
    same = lowest_nodes(arrays, value, on)
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
        currents[(size < least) | (size < noise * reach * own).all()] = 0.0
    drops[roles.ohmic] = value[roles.ohmic] * currents[roles.ohmic]
    if roles.transfer.size:
        demanded = demanded_of_currents(system.laws, roles.owners, value, currents)
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
    system: ControlledSystem, circuit: Circuit, x: Pair, conducting: np.ndarray, limits: tuple[float, float]
) -> OperatingPoint:
    """The operating point with its certificate; ``limits`` are its tolerance and the fraction of noise."""
    tolerance, noise = limits
    voltages, low, currents, drops = branches(system, circuit.arrays().value, x, conducting, noise)
    certificate = certify_controlled(circuit.arrays(), system.laws, voltages, currents, drops, tolerance, low)
    return point_of(system, circuit, (voltages, low, currents, drops), certificate)


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
