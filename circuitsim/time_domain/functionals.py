"""Terms of a loss on waveforms: values at times and at events, integrals, the times of events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.analysis.probes import parse_probe
from circuitsim.circuit import Circuit
from circuitsim.errors import UsageError
from circuitsim.time_domain.beginning import charged_junctions
from circuitsim.time_domain.result import TransientResult


class Value(NamedTuple):
    """A voltage or current at a time.

    Attributes
    ----------
    quantity : str
        ``v(out)``, ``v(a,b)`` or ``i(R1)``.
    time : float
        s.
    """

    quantity: str
    time: float


class Integral(NamedTuple):
    """∫ of a voltage or current, or of its square, over time.

    Attributes
    ----------
    quantity : str
    begin, end : float
        s.
    power : int
        1 or 2.
    """

    quantity: str
    begin: float
    end: float
    power: int = 1


class EventValue(NamedTuple):
    """A voltage or current at an event, with which it moves in time, or on one side of a source's corner.

    Attributes
    ----------
    quantity : str
    time : float
        As `TransientResult.events` or `TransientResult.segment_starts` has it, s.
    after : bool
        Just after it, not just before it.
    """

    quantity: str
    time: float
    after: bool = False


class EventTime(NamedTuple):
    """The time of an event.

    Attributes
    ----------
    time : float
        As `TransientResult.events` has it, s.
    """

    time: float


Functional = Value | Integral | EventValue | EventTime


def ends(functional: Functional) -> tuple[float, float]:
    """The first and the last time that a functional depends on, s."""
    return (functional.begin, functional.end) if isinstance(functional, Integral) else (functional.time,) * 2


def check(result: TransientResult, functional: Functional) -> None:
    """Refuse times outside the run, other powers, and nonexistent events.

    Raises
    ------
    UsageError
    """
    first, last = ends(functional)
    if not 0.0 <= first <= last <= result.stop:
        raise UsageError(f"{functional}: times must lie in order between 0 s and {result.stop:g} s")
    if isinstance(functional, Integral) and functional.power not in (1, 2):
        raise UsageError(f"{functional}: the power is 1 or 2")
    later = result.segment_starts()[1:]
    if isinstance(functional, EventValue) and functional.time not in later:
        raise UsageError(f"{functional}: no event and no corner is at this time; see the events of the run")
    if isinstance(functional, EventTime) and not result._moves_at(functional.time):
        raise UsageError(f"{functional}: no diode or switch changes then by itself; see the events of the run")


def junction_of(circuit: Circuit, quantity: str) -> tuple[int, float] | None:
    """The junction with a charge that has the voltage ``u(D1)``, and its series resistance, Ω; None of another
    quantity."""
    k = circuit.element_index(quantity[2:-1]) if quantity.startswith("u(") else -1
    device = charged_junctions(circuit).get(k)
    return None if device is None else (k, device.row()[0])


def own_weights(result: TransientResult, quantity: str) -> tuple[np.ndarray, np.ndarray]:
    """A quantity as weights (m,) of branch voltages and currents of the circuit's own elements: a voltage, a current,
    or the voltage u(D1) of a junction with a charge.

    Raises
    ------
    UsageError
        Neither a voltage nor a current.
    """
    by_voltage, by_current = np.zeros((2, len(result.circuit)))
    if (junction := junction_of(result.circuit, quantity)) is not None:
        k, ohms = junction
        by_voltage[k], by_current[k] = 1.0, -ohms
        return by_voltage, by_current
    refused = f"{quantity!r} is neither one voltage nor one current"
    kind, first, second = parse_probe(quantity, result.circuit, refused, ("v", "i"))
    if kind == "v":
        for k, sign in result.path(first, second or result.circuit.node_names[0]):
            by_voltage[k] += sign
    else:
        by_current[result.circuit.element_index(first)] = 1.0
    return by_voltage, by_current


def branch_weights(result: TransientResult, quantity: str) -> tuple[np.ndarray, np.ndarray]:
    """A quantity as weights of branch voltages and currents of the elementary elements.

    Raises
    ------
    UsageError
        Neither a voltage nor a current.
    """
    own, every = own_weights(result, quantity), np.eye(result.segments.modes.voltage.shape[2])
    drops, flows = result.origin.problem.terminals.of_parts(every, every.copy())
    return drops @ own[0], flows @ own[1]
