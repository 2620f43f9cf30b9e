"""Circuit → certified operating point, or an error.

Switches are resistors in the states of the operating point. The method chosen, and why, is the text of ``--explain``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from circuitsim.analysis.convex import prepared_convex
from circuitsim.analysis.operating_point import OperatingPoint, Values
from circuitsim.analysis.switching import PreparedSwitched, Solvable, switches_of, switching_of
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.dynamics import Dynamics
from circuitsim.circuit.elements import AFFINE_CURRENT, AFFINE_VOLTAGE
from circuitsim.circuit.expansion import elementary, stand_in
from circuitsim.circuit.laws import Law, Quantity
from circuitsim.circuit.source import analysis, circuit_of
from circuitsim.errors import ConvergenceError, TopologyError
from circuitsim.netlist.deck import Deck, warn_of_time
from circuitsim.netlist.functional import FollowingSources
from circuitsim.program import analyse
from circuitsim.solvers import choose

if TYPE_CHECKING:
    from circuitsim.analysis.controlled import PreparedControlled
    from circuitsim.analysis.convex import Prepared, PreparedAmplified
    from circuitsim.analysis.expanded import PreparedExpanded

    Unswitched: TypeAlias = Prepared | PreparedAmplified | PreparedControlled | PreparedExpanded
    Ready: TypeAlias = "Unswitched | PreparedFollowing | PreparedSwitched"


@analysis()
def prepared(circuit: Circuit | Deck, solver: str = "auto", tolerance: float = TOLERANCE) -> Ready:
    """Analyse a circuit once, to solve it many times with other values.

    Parameters
    ----------
    circuit : Circuit or Deck
    solver : str
        As for `solve`.
    tolerance : float
        Largest relative residual that the certificate of each solution allows, 0 to 1.

    Returns
    -------
    Prepared or PreparedAmplified or PreparedControlled or PreparedExpanded or PreparedSwitched
        Its ``solve(values)`` takes other element values by name.

    Raises
    ------
    TopologyError
        A circuit without elements, or a tolerance out of range.
    UsageError
        A source by a formula that is not affine influences what it reads.
    """
    following = circuit_of(circuit).dynamics
    if isinstance(circuit, Deck):
        circuit, following = circuit.where_change(None, True)
    return prepared_switched(circuit, following, solver, tolerance, True)


def as_read(source: Circuit | Deck, solver: str = "auto", tolerance: float = TOLERANCE) -> Ready:
    """`prepared` for operating points at a deck's own values: sources by formulas of others then have known values, and
    the circuit has its energy function."""
    circuit = getattr(source, "operating_circuit", source)
    return prepared_switched(circuit, circuit.dynamics, solver, tolerance)


def prepared_switched(
    circuit: Circuit, following: Dynamics | None, solver: str, tolerance: float, changing: bool = False
) -> Ready:
    """A deck's circuit prepared, with its switches if there are any; ``changing``: elements get values that formulas
    follow, although independent sources fix what they read."""
    ready = prepared_as_it_is(circuit, solver, tolerance)
    inner: Unswitched | PreparedFollowing = ready
    if isinstance(following, FollowingSources) and (following.unfixed() or (changing and following.moves)):
        inner = PreparedFollowing(circuit, ready, following.of(circuit), tolerance)
    if following is None or not following.switches:
        return inner
    return PreparedSwitched(circuit, inner, switching_of(circuit, switches_of(circuit, following)))


def prepared_as_it_is(circuit: Circuit, solver: str = "auto", tolerance: float = TOLERANCE) -> Unswitched:
    """`prepared`, with switches as resistors of the circuit's own values."""
    if not len(circuit):
        raise TopologyError("the circuit has no elements")
    if solver != "auto":
        choose(solver)  # refused where nothing asks for it, too
    if circuit.devices:
        from circuitsim.analysis.expanded import prepared_expanded

        return prepared_expanded(circuit, solver, float(tolerance))
    if circuit.laws:
        from circuitsim.analysis.controlled import prepared_controlled

        return prepared_controlled(circuit, float(tolerance))
    return prepared_convex(circuit, solver, float(tolerance))


@analysis()
def solve(circuit: Circuit | Deck, solver: str = "auto", tolerance: float = TOLERANCE) -> OperatingPoint:
    """The certified steady state of a circuit.

    Parameters
    ----------
    circuit : Circuit or Deck
    solver : str
        ``"auto"``, ``"active-set"``, ``"coordinate-descent"`` or ``"cvxpy:NAME"`` (for instance ``cvxpy:CLARABEL``).
    tolerance : float
        Largest relative residual that the certificate allows, on local scales (see `circuitsim.certificate`).

    Returns
    -------
    OperatingPoint

    Raises
    ------
    InfeasibleError, UnboundedError
        No steady state exists; the error names the cycle or cut.
    ConvergenceError
        The method stopped without a certified solution.
    TopologyError
        A circuit without elements; an unknown solver.
    """
    if isinstance(circuit, Deck):
        warn_of_time(circuit)
    return as_read(circuit, solver, tolerance).solve()


def explain(point: OperatingPoint) -> list[str]:
    """Text lines: the circuit in the solver's terms, the method with its reason, the work.

    Parameters
    ----------
    point : OperatingPoint
        From any method.
    """
    if point.elementary is not None:
        head = f"devices: {len(point.circuit.devices)}, solved as their elementary elements"
        return [head, *explain(point.elementary)]
    structure = analyse(elementary(stand_in(point.circuit)))
    kind, first, second, _, n_nodes = structure.arrays
    held = structure.coordinate >= structure.n
    diodes = structure.diodes
    at_held = held[first[diodes]] | held[second[diodes]]
    conducting = point.currents[diodes] > 0.0
    free = conducting & ~at_held
    info = dict(point.solver)
    name, why, linear = info.pop("name"), info.pop("why", ""), info.pop("linear", None)
    work = ", ".join(f"{count} {what}" for what, count in info.items())
    return [
        f"circuit: {n_nodes} nodes, {kind.size} elements; {structure.n} unknown node voltages after sources and shorts "
        "join nodes",
        f"diodes: {diodes.size}, {int(np.count_nonzero(at_held))} of them with an end at a fixed voltage; "
        f"{int(conducting.sum())} conduct, {int(free.sum())} of these between free nodes",
        f"method: {name} ({why})" + (f"; its linear circuits by {linear}" if linear else ""),
        f"work: {work or 'not counted'}",
    ]


def circuit_at_operating_point(
    source: Circuit | Deck, tolerance: float = TOLERANCE, changed: Collection[str] | None = ()
) -> Circuit:
    """The circuit of a deck with its switches as resistors in the states of the operating point; a circuit as it is.

    Parameters
    ----------
    changed : collection of str or None
        Elements that the analysis gives other values: sources whose formulas read them are controlled sources. None:
        all elements.

    Raises
    ------
    UsageError
        Neither a circuit nor a deck; a source by a formula that is not affine and reads a changed one, or a voltage or
        current that sources do not fix.
    """
    circuit, following = _with_states(source, tolerance, changed, False)
    if following is not None and (left := following.unfixed()):
        raise following.not_followed(left[0])
    return circuit


def circuit_with_formulas(source: Circuit | Deck, tolerance: float, changed: Collection[str]) -> Circuit:
    """`circuit_at_operating_point` for `prepared`: it carries the formulas that are not affine, with what they need."""
    circuit, following = _with_states(source, tolerance, changed, True)
    if following is None or not (following.unfixed() or following.followers(changed)):
        return circuit
    return circuit.carrying(following.of(circuit).released(following.switches))


def linearized_circuit(
    source: Circuit | Deck, tolerance: float = TOLERANCE, changed: Collection[str] | None = None
) -> Circuit:
    """`circuit_at_operating_point` for small changes of the elements ``changed``: sources by formulas that are not
    affine are controlled sources, too, with the derivatives at the operating point."""
    circuit, following = _with_states(source, tolerance, changed, True)
    if following is None or not (left := {*following.unfixed(), *following.followers(changed)}):
        return circuit
    point = prepared_switched(circuit, following, "auto", tolerance).solve()
    return controlled_by(circuit, {k: following.of(circuit).tangent(k, point) for k in left})


def _with_states(
    source: Circuit | Deck, tolerance: float, changed: Collection[str] | None, followed: bool
) -> tuple[Circuit, FollowingSources | None]:
    """See `circuit_at_operating_point`; with the sources that follow others by formulas that are not affine, which the
    caller treats if they are ``followed``."""
    if isinstance(source, Deck):
        circuit, following = source.where_change(changed, followed)
    else:
        circuit = circuit_of(source)
        if circuit.dynamics is None:
            return circuit, None
        following = circuit.dynamics
        if not followed:
            following.check_changes(changed)
        circuit = circuit.carrying(None)
    if following.switches:
        ready = prepared_switched(circuit, following, "auto", tolerance)
        value = ready.solve().circuit.arrays().value
        circuit = ready.circuit.with_values({circuit.names[k]: float(value[k]) for k in following.switches})
    if not isinstance(following, FollowingSources):
        return circuit, None
    following.check_frozen(changed)
    return circuit, following


def controlled_by(circuit: Circuit, laws: Mapping[int, Law]) -> Circuit:
    """The circuit with laws in place of the values of these sources."""
    kind, first, second, value = circuit.columns()
    kind, value = kind[:], value[:]
    for k, law in laws.items():
        kind[k], value[k] = AFFINE_CURRENT if law.quantity is Quantity.CURRENT else AFFINE_VOLTAGE, math.nan
    columns, names = (kind, first, second, value), ([*circuit.names], [*circuit.node_names])
    return Circuit.from_columns(circuit.title, columns, *names, None, circuit.devices, {**circuit.laws, **laws})


def at_frequencies(
    circuit: Circuit, couplings: Mapping[tuple[str, str], float]
) -> tuple[Circuit, Mapping[tuple[str, str], float]]:
    """The circuit of an AC analysis, switches in the states of its operating point, and couplings: those of its deck,
    and those given.

    Raises
    ------
    UsageError
        A formula that is not linearised.
    """
    dynamics = circuit.dynamics
    joined = couplings if dynamics is None else dynamics.coupled(couplings)
    return linearized_circuit(circuit), joined


@dataclass(frozen=True, eq=False)
class PreparedFollowing:
    """A prepared circuit with such sources, which are independent sources of the inner one.

    Formulas of values that independent sources fix are known before. The first operating point has zeros in place of
    all others. Each further one has the values of one more level, which the one before determines
    (`circuitsim.netlist.functional`); the last one no longer depends on the zeros.

    Attributes
    ----------
    circuit : Circuit
    inner : Solvable
    sources : FollowingSources
    tolerance : float
        Largest difference between the value of a source and that of its formula at the operating point, relative.
    """

    circuit: Circuit
    inner: Solvable
    sources: FollowingSources
    tolerance: float

    def solve(self, values: Values = None, start: OperatingPoint | None = None) -> OperatingPoint:
        """The operating point with other values; see `Prepared.solve`. A source named in ``values`` has that value.

        Raises
        ------
        NetlistError
            A formula has no value.
        UsageError
            A law of the circuit holds a value that would change.
        ConvergenceError
            The value of a formula changes by its rounding.
        """
        names, levels = self.circuit.names, self.sources.in_order()
        given = self.circuit.changes(values)
        stated = {name.lower() for name in given}
        open_ = [[k for k in level if names[k].lower() not in stated] for level in levels]
        found = self.sources.values(given) | {names[k]: 0.0 for level in open_ for k in level}
        point = self.inner.solve({**given, **found}, start)
        for level in open_:
            found |= {names[k]: self.sources.at_point(k, point) for k in level}
            point = self.inner.solve({**given, **found}, start)
        for k, value in ((k, found[names[k]]) for level in open_ for k in level):
            name, now = names[k], self.sources.at_point(k, point)
            if not abs(now - value) <= self.tolerance * max(abs(now), abs(value)):
                raise ConvergenceError(
                    f"{name}: the value of its formula, {now:.6g}, changes with the rounding of what it reads"
                )
        return point
