"""Circuits with controlled sources: certified operating points, with a verdict on uniqueness."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.controlled_system import NOISE, ControlledSystem, measured
from circuitsim.analysis.convex import prepared_convex
from circuitsim.analysis.operating_point import OperatingPoint, Values, changed_by, check_start
from circuitsim.analysis.solution_warnings import (
    floating_control,
    jump,
    listed,
    nonunique_currents,
    nonunique_potential,
    same_point,
    several,
)
from circuitsim.circuit import Circuit, CircuitArrays
from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.controlled.blocks import Block, port_values
from circuitsim.controlled.certificate import LawArrays, certify_controlled, law_arrays
from circuitsim.controlled.equations import Equations
from circuitsim.controlled.linear import Pair
from circuitsim.controlled.rational import LARGEST, PORTS, Read, binary, decimal
from circuitsim.controlled.search import Choice, Outcome, Search, all_regular
from circuitsim.controlled.sections import levels, stages
from circuitsim.controlled.states import CLEAR
from circuitsim.controlled.verdict import Uniqueness
from circuitsim.engine.small.least_norm import WireLoops
from circuitsim.errors import ConvergenceError, NoOperatingPointError, NoSteadyStateError, TopologyError, some

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
    (`circuitsim.controlled.ports`); None where these are singular or the ports more than ``most``."""
    arrays = circuit.arrays()
    system = ControlledSystem(circuit, arrays, law_arrays(circuit.laws))
    eq = system.eq
    if eq.diode.size > most:
        return None
    right = np.zeros((eq.size, 1 + eq.diode.size))
    right[:, 0] = system.sources.of(arrays.value)
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
            return Search(system.eq, system.order(), self.right, start, not system.arbitrary).run()
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
            point = self.measured(Pair(high, low), choice.conducting)
            if point.certificate.certified:
                return point
        return self.certified(choice.conducting, quick)

    def measured(self, x: Pair, conducting: np.ndarray, noise: float = 0.0) -> OperatingPoint:
        """The operating point of unknowns; voltages and currents below the fraction ``noise`` of the largest are zero,
        or below `NOISE` where only that passes a certificate."""
        for share in (noise, NOISE):
            point = measured(self.system, self.circuit, x, conducting, (self.tolerance, share))
            if point.certificate.certified:
                break
        return point

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
                rough = factor.rough(self.right)
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
                point = self.measured(x, conducting, noise)
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
    diodes = [system.circuit.names[system.eq.diode[k]] for k in block.diodes.tolist()]
    if outcome.proven:
        text = f"no operating point exists: every state of {some(diodes)} contradicts the equations of"
    else:
        text = f"no operating point was found (which is no proof that none exists): no state of {some(diodes)} fits"
    given = system.given(block)
    text = f"{text} {listed(elements, nodes)}"
    if given:
        text = f"{text} for the {given} that the rest of the circuit sets"
    return NoOperatingPointError(text, elements, nodes, outcome.proven)
