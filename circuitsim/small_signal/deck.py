"""AC analysis of a deck: frequencies of its ``.ac`` card, amplitudes of its sources."""

from __future__ import annotations

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.errors import UsageError
from circuitsim.netlist.deck import SmallSignal, Spacing, logarithmic, single
from circuitsim.netlist.limits import SWEEP_POINTS

DEFAULT = SmallSignal(Spacing.DECADE, 20, (1.0, 1e6), None)  # type: ignore[arg-type]


def frequencies(card: SmallSignal) -> np.ndarray:
    """The frequencies of a card (f,), Hz.

    Raises
    ------
    UsageError
        More than `SWEEP_POINTS`.
    """
    if card.spacing is Spacing.LIST:
        return np.array(card.frequencies)
    first, last = card.frequencies
    if card.spacing is not Spacing.LINEAR:
        try:
            return np.array(logarithmic(first, last, card.points, 10.0 if card.spacing is Spacing.DECADE else 2.0))
        except ValueError as error:
            raise UsageError(f"frequencies: {error}; take fewer") from None
    if card.points > SWEEP_POINTS:
        raise UsageError(f"{card.points:,} frequencies exceed the limit of {SWEEP_POINTS:,}: take fewer points")
    return np.linspace(first, last, card.points)


def asked(circuit: Circuit) -> np.ndarray:
    """The frequencies of a deck's ``.ac`` card (f,), Hz; by default 20 per decade from 1 Hz to 1 MHz.

    Raises
    ------
    UsageError
        More than one card.
    """
    return frequencies(single(circuit, SmallSignal, ", or give the frequencies") or DEFAULT)


def amplitudes(circuit: Circuit) -> dict[str, complex]:
    """The AC amplitudes of a deck's sources, V or A, by name.

    Raises
    ------
    UsageError
        There are none.
    """
    stated = {} if circuit.dynamics is None else circuit.dynamics.phasors
    if not any(stated.values()):
        raise UsageError("no source has an amplitude: write V1 in 0 DC 0 AC 1, or give --source V1 (sources={'V1': 1})")
    return {circuit.names[k]: value for k, value in stated.items()}
