"""Circuits of decks with their switches as resistors, in the states of the operating point."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from circuitsim.analysis.solve import prepared_switched
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.dynamics import Dynamics
from circuitsim.circuit.source import circuit_of
from circuitsim.netlist.deck import Deck


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
    """The circuit of an AC analysis, switches in the states of its operating point, and couplings: those of its deck,
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
