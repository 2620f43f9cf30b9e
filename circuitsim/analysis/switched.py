"""Operating points of decks with switches: each switch is in the state that its control asks for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.switching import (
    ALL_STATES,
    Operated,
    Switching,
    controls_at,
    fixed_controls,
    operated,
    switches_of,
    switching_of,
)
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.dynamics import Dynamics
from circuitsim.circuit.source import circuit_of
from circuitsim.errors import ConvergenceError, Problem
from circuitsim.netlist.deck import Deck

if TYPE_CHECKING:
    from circuitsim.analysis.amplified import PreparedAmplified
    from circuitsim.analysis.controlled import PreparedControlled
    from circuitsim.analysis.expanded import PreparedExpanded
    from circuitsim.analysis.solve import Prepared


@dataclass(frozen=True, eq=False)
class PreparedSwitched:
    """A circuit with switches, prepared for many values.

    Attributes
    ----------
    circuit : Circuit
        Switches are resistors in the states of their cards.
    inner : Prepared, PreparedAmplified, PreparedControlled or PreparedExpanded
        The same circuit, for resistances of the switches.
    switching : Switching
    """

    circuit: Circuit
    inner: Prepared | PreparedAmplified | PreparedControlled | PreparedExpanded
    switching: Switching

    @cached_property
    def fixed(self) -> np.ndarray:
        """Switches (s,) whose controls sources fix."""
        return fixed_controls(self.circuit, self.switching)

    def solve(
        self,
        values: Mapping[str, float] | Sequence[float] | np.ndarray | None = None,
        start: OperatingPoint | None = None,
    ) -> OperatingPoint:
        """The operating point with other values; see `Prepared.solve`.

        A switch that ``values`` names is a resistor of that value. A control between both thresholds leaves a switch as
        in ``start``, without it as on its card.

        Raises
        ------
        ConvergenceError
            No states of the switches agree with their controls; a control inside a negative hysteresis.
        """
        if values is None or isinstance(values, Mapping):
            given = dict(values or {})
        else:
            given = self.circuit.changes(self.circuit.column(values))
        own = np.array([name not in given for name in self.switching.names], dtype=bool)
        switching = self.switching
        if not own.all():
            rest = np.flatnonzero(own).tolist()
            switching = Switching(
                switching.places[own],
                tuple(switching.switches[k] for k in rest),
                tuple(switching.names[k] for k in rest),
            )
        before = np.array([switch.closed for switch in switching.switches], dtype=bool)
        if start is not None:
            before = states_at(start, switching, before)

        def at(ohms: Mapping[str, float]) -> OperatingPoint:
            return self.inner.solve({**given, **ohms}, start)

        found = operated(at, switching, before, self.fixed[own])
        _check_smooth(found, switching)
        more = _warnings(found, switching)
        if more:
            found.point.warnings = (*found.point.warnings, *more)
        return found.point


def states_at(point: OperatingPoint, switching: Switching, otherwise: np.ndarray) -> np.ndarray:
    """States of switches (s,) at an operating point, from their currents and voltages; without any: ``otherwise``."""
    drops, currents = point.drops[switching.places], point.currents[switching.places]
    as_closed = np.abs(drops - switching.ohms(np.ones_like(otherwise)) * currents)
    as_open = np.abs(drops - switching.ohms(np.zeros_like(otherwise)) * currents)
    return np.where(as_closed == as_open, otherwise, as_closed < as_open)


def _check_smooth(found: Operated, switching: Switching) -> None:
    """Refuse a control inside a negative hysteresis, where the resistance moves smoothly (LTspice)."""
    for switch, name, control in zip(switching.switches, switching.names, controls_at(found.point, switching.switches)):
        if switch.hysteresis < 0.0 and abs(control - switch.threshold) <= -switch.hysteresis:
            raise ConvergenceError(
                f"{name}: its control, {control:g}, is inside the smooth transition of a negative hysteresis "
                f"({switch.hysteresis:g}), which is not done; state a VH or IH that is not negative"
            )


def _warnings(found: Operated, switching: Switching) -> list[Problem]:
    """What else holds, or was not tried."""
    names = switching.names
    if found.others:
        more = "; or ".join(switching.stated(closed) for closed in found.others[:3])
        return [
            Problem(
                "several",
                f"several states of the switches hold: here {switching.stated(found.closed)}; also {more}",
                hint="write ON or OFF on their cards to choose",
                names=names,
            )
        ]
    if not found.complete:
        message = (
            f"the states of {', '.join(names[:8])} agree with their controls; others may too: all are tried of at most "
            f"{ALL_STATES} switches that switches may control"
        )
        return [Problem("several", message, hint="write ON or OFF on their cards to choose", names=names)]
    return []


def prepared_switched(
    circuit: Circuit, following: Dynamics | None, solver: str, tolerance: float
) -> Prepared | PreparedAmplified | PreparedControlled | PreparedExpanded | PreparedSwitched:
    """A deck's circuit prepared, with its switches if there are any."""
    from circuitsim.analysis.solve import prepared_as_it_is

    if following is None or not following.switches:
        return prepared_as_it_is(circuit, solver, tolerance)
    inner = prepared_as_it_is(circuit, solver, tolerance)
    return PreparedSwitched(circuit, inner, switching_of(circuit, switches_of(circuit, following)))


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
        Neither a circuit nor a deck; a source by a formula that is not affine and reads a changed one.
    """
    if isinstance(source, Deck):
        return with_switches_set(*source.where_change(changed), tolerance)
    circuit = circuit_of(source)
    if circuit.dynamics is None:
        return circuit
    circuit.dynamics.check_changes(changed)
    return with_switches_set(circuit.carrying(None), circuit.dynamics, tolerance)


def at_frequencies(
    circuit: Circuit, couplings: Mapping[tuple[str, str], float]
) -> tuple[Circuit, Mapping[tuple[str, str], float]]:
    """A circuit for small signals, switches in the states of its operating point, and its couplings: those of its deck,
    and those given.

    Raises
    ------
    UsageError
        A formula that is not linearised.
    """
    dynamics = circuit.dynamics
    joined = couplings if dynamics is None else dynamics.coupled(couplings)
    return circuit_at_operating_point(circuit, changed=None), joined


def with_switches_set(circuit: Circuit, following: Dynamics, tolerance: float = TOLERANCE) -> Circuit:
    """The circuit with its switches as resistors in the states of its operating point."""
    if not following.switches:
        return circuit
    ready = prepared_switched(circuit, following, "auto", tolerance)
    value = ready.solve().circuit.arrays().value
    return ready.circuit.with_values({circuit.names[k]: float(value[k]) for k in following.switches})
