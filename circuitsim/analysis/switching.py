"""Switches at an operating point: two-valued resistors in states consistent with their controls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, product
from typing import NamedTuple, Protocol

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint, Values, check_start
from circuitsim.circuit import Circuit
from circuitsim.circuit.dynamics import Dynamics
from circuitsim.errors import ConvergenceError, NoSteadyStateError, Problem
from circuitsim.program.components import component_labels

TRIES = 50
"""Maximum number of sets of states, each from the controls of the previous one."""

ALL_STATES = 6
"""Maximum number of switches, among those with undetermined controls, for which all states are tried."""


class Switch(NamedTuple):
    """A resistor of two values, as SPICE's S and W.

    Attributes
    ----------
    control : tuple of two str, or str
        Two nodes whose voltage controls, or an element whose current does.
    threshold, hysteresis : float
        V or A: it closes above threshold + hysteresis and opens below threshold − hysteresis.
    on, off : float
        Resistances of the closed and of the open switch, Ω.
    closed : bool
        State at the beginning, where the control is between both thresholds.
    """

    control: tuple[str, str] | str
    threshold: float = 0.0
    hysteresis: float = 0.0
    on: float = 1.0
    off: float = 1e12
    closed: bool = False


class Switching(NamedTuple):
    """The switches of a circuit.

    Attributes
    ----------
    places : (s,) int array
        Elements.
    switches : tuple of Switch
    names : tuple of str
    """

    places: np.ndarray
    switches: tuple[Switch, ...]
    names: tuple[str, ...]

    def ohms(self, closed: np.ndarray) -> np.ndarray:
        """Resistances, Ω, for states (…, s)."""
        return np.where(closed, *np.array([[s.on, s.off] for s in self.switches]).reshape(-1, 2).T)

    def values(self, closed: np.ndarray) -> dict[str, float]:
        """Resistances, Ω, by name."""
        return dict(zip(self.names, self.ohms(closed).tolist()))

    def thresholds(self, closed: np.ndarray) -> np.ndarray:
        """The control, V or A, at which switches in these states (…, s) change."""
        middle, half = np.array([[s.threshold, s.hysteresis] for s in self.switches]).reshape(-1, 2).T
        return middle + np.where(closed, -half, half)

    def named(self, chosen: np.ndarray) -> str:
        """Names of the switches in a mask (s,)."""
        return ", ".join(name for name, own in zip(self.names, chosen.tolist()) if own)

    def stated(self, closed: np.ndarray) -> str:
        """Description of the states (s,)."""
        return ", ".join(f"{name} {'closed' if own else 'open'}" for name, own in zip(self.names, closed.tolist()))

    def turned(self, controls: np.ndarray, closed: np.ndarray) -> np.ndarray:
        """States (s,) after switching those whose controls are beyond their thresholds."""
        at = self.thresholds(closed)
        return np.where(closed, controls >= at, controls > at)


class Operated(NamedTuple):
    """An operating point at which all switches (s,) agree with their controls, and other such states.

    Attributes
    ----------
    point : OperatingPoint
    closed : (s,) bool array
    others : tuple of (s,) bool arrays
        Other consistent states among those tried.
    complete : bool
        Whether all states that the controls leave open were tried.
    """

    point: OperatingPoint
    closed: np.ndarray
    others: tuple[np.ndarray, ...] = ()
    complete: bool = True


def operated(
    solve: Callable[[Mapping[str, float]], OperatingPoint],
    switching: Switching,
    before: np.ndarray,
    fixed: np.ndarray,
    all_states: bool = True,
) -> Operated:
    """Find switch states that agree with the controls they cause.

    A control between both thresholds leaves a switch in its previous state. Each set of states gives controls, which
    give the next set; controls fixed by sources need one solve, a chain of switches one solve per link. If the states
    cycle, and to find further operating points, all states of the switches without fixed controls are tried.

    Parameters
    ----------
    solve : callable
        Solves for the operating point at resistances of switches, Ω, by name.
    switching : Switching
    before : (s,) bool array
        Previous states, initially those of the cards.
    fixed : (s,) bool array
        Switches whose controls do not depend on switches (`fixed_controls`).
    all_states : bool
        Whether to search for further operating points too.

    Raises
    ------
    ConvergenceError
        No states agree with their controls, or none were found.
    """
    closed, passed, found = before, set(), None
    for _ in range(TRIES):
        point = solve(switching.values(closed))
        now = switching.turned(controls_at(point, switching.switches), before)
        if (now == closed).all():
            found = Operated(point, closed)
            break
        passed.add(closed.tobytes())
        closed = now
        if closed.tobytes() in passed:
            break
    free = np.flatnonzero(~fixed)
    if found is not None and (not all_states or not free.size):
        return found
    if free.size > ALL_STATES:
        if found is None:
            raise _none(switching, ~fixed, f"not found in {TRIES} sets of states")
        return found._replace(complete=False)
    agreeing = [*_agreeing(solve, switching, before, np.where(fixed, now, before), free)]
    if found is None:
        if not agreeing:
            raise _none(switching, ~fixed, "every set of states contradicts its controls")
        found = agreeing.pop(0)
    return found._replace(others=tuple(one.closed for one in agreeing if (one.closed != found.closed).any()))


def _none(switching: Switching, mask: np.ndarray, why: str) -> ConvergenceError:
    return ConvergenceError(
        f"{switching.named(mask)}: no state is consistent at the operating point ({why}); separate the thresholds "
        "(VH, IH), or run circuitsim tran with initial values (UIC)"
    )


def _agreeing(
    solve: Callable[[Mapping[str, float]], OperatingPoint],
    switching: Switching,
    before: np.ndarray,
    held: np.ndarray,
    free: np.ndarray,
) -> Iterator[Operated]:
    """All consistent states, with ``held`` for the others, in order of the number of changes from ``before``."""
    for changed in sorted(product((False, True), repeat=free.size), key=sum):
        closed = held.copy()
        closed[free] = before[free] ^ np.array(changed, dtype=bool)
        try:
            point = solve(switching.values(closed))
        except (NoSteadyStateError, ConvergenceError):
            continue  # no operating point in these states
        if (switching.turned(controls_at(point, switching.switches), before) == closed).all():
            yield Operated(point, closed)


def controls_at(point: OperatingPoint, switches: Sequence[Switch]) -> np.ndarray:
    """Control quantities of the switches (s,), V or A."""
    return np.array(
        [
            point.currents[point.circuit.element_index(switch.control)]
            if isinstance(switch.control, str)
            else point.voltage(*switch.control)
            for switch in switches
        ]
    )


def fixed_controls(circuit: Circuit, switching: Switching) -> np.ndarray:
    """Switches (s,) controlled by a voltage that independent sources fix in any switch states."""
    joins, (_, first, second, _, n_nodes) = circuit.arrays().fixed_voltages, circuit.arrays()
    joins[[*circuit.laws, *switching.places.tolist()]] = False
    part = component_labels(n_nodes, first[joins], second[joins])
    ends = [
        None if isinstance(s.control, str) else [circuit.node_index(node) for node in s.control]
        for s in switching.switches
    ]
    return np.array([pair is not None and part[pair[0]] == part[pair[1]] for pair in ends], dtype=bool)


def switches_of(circuit: Circuit, following: Dynamics) -> dict[str, Switch]:
    """The switches of a deck's circuit, by name."""
    names, nodes, switches = circuit.names, circuit.node_names, {}
    for k, law in following.switches.items():
        control = law.control if isinstance(law.control, str) else (nodes[law.control[0]], nodes[law.control[1]])
        n = law.numbers
        switches[names[k]] = Switch(control, n["vt"], n["vh"], n["ron"], n["roff"], law.closed)
    return switches


def switching_of(circuit: Circuit, switches: Mapping[str, Switch]) -> Switching:
    """Switches by name as a `Switching`."""
    places = np.array([circuit.element_index(name) for name in switches], dtype=np.int64)
    return Switching(places, tuple(switches.values()), tuple(switches))


class Solvable(Protocol):
    """A prepared circuit that takes resistances of its switches."""

    def solve(self, values: Mapping[str, float], start: OperatingPoint | None) -> OperatingPoint: ...


@dataclass(frozen=True, eq=False)
class PreparedSwitched:
    """A prepared circuit with switches.

    Attributes
    ----------
    circuit : Circuit
        With switches as resistors in the states of their cards.
    inner : Solvable
        The same circuit, taking resistances of the switches.
    switching : Switching
    """

    circuit: Circuit
    inner: Solvable
    switching: Switching

    @cached_property
    def fixed(self) -> np.ndarray:
        """Switches (s,) whose controls are fixed by sources."""
        return fixed_controls(self.circuit, self.switching)

    def solve(self, values: Values = None, start: OperatingPoint | None = None) -> OperatingPoint:
        """The operating point with other values; see `Prepared.solve`.

        A switch named in ``values`` is a resistor of that value. A control between both thresholds leaves a switch as
        in ``start``, or without it as on its card.

        Raises
        ------
        ConvergenceError
            No states of the switches agree with their controls; a control inside a negative hysteresis.
        """
        check_start(start)
        given = self.circuit.changes(values)
        own = np.array([name not in given for name in self.switching.names], dtype=bool)
        places, switches, names = self.switching
        switching = Switching(places[own], tuple(compress(switches, own)), tuple(compress(names, own)))
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
    """States of switches (s,) at an operating point, from their currents and voltages; ``otherwise`` where both are
    zero."""
    drops, currents = point.drops[switching.places], point.currents[switching.places]
    as_closed = np.abs(drops - switching.ohms(np.ones_like(otherwise)) * currents)
    as_open = np.abs(drops - switching.ohms(np.zeros_like(otherwise)) * currents)
    return np.where(as_closed == as_open, otherwise, as_closed < as_open)


def _check_smooth(found: Operated, switching: Switching) -> None:
    """Refuse a control inside a negative hysteresis, where the resistance varies smoothly (LTspice)."""
    for switch, name, control in zip(switching.switches, switching.names, controls_at(found.point, switching.switches)):
        if switch.hysteresis < 0.0 and abs(control - switch.threshold) <= -switch.hysteresis:
            raise ConvergenceError(
                f"{name}: its control, {control:g}, is inside the smooth transition of a negative hysteresis "
                f"({switch.hysteresis:g}), which is not supported; state a VH or IH that is not negative"
            )


def _warnings(found: Operated, switching: Switching) -> list[Problem]:
    """Warnings of other consistent states, and of an incomplete search."""
    names = switching.names
    if found.others:
        more = "; or ".join(switching.stated(closed) for closed in found.others[:3])
        message = f"several states of the switches are consistent: here {switching.stated(found.closed)}; also {more}"
    elif not found.complete:
        message = (
            f"the states of {', '.join(names[:8])} are consistent; others may be too: all are tried only for "
            f"up to {ALL_STATES} switches"
        )
    else:
        return []
    return [Problem("several", message, hint="write ON or OFF on their cards to choose", names=names)]
