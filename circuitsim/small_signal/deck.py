"""Small-signal analysis of a deck: frequencies of its ``.ac`` card, amplitudes of its sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from circuitsim.analysis.switched import circuit_at_operating_point
from circuitsim.errors import UsageError
from circuitsim.netlist.deck import Deck, SmallSignal, Spacing
from circuitsim.small_signal.frequency import TOLERANCE, AcResult, ac

MOST = 1_000_000
"""Most frequencies of a card."""
DEFAULT = SmallSignal(Spacing.DECADE, 20, (1.0, 1e6), None)  # type: ignore[arg-type]


def frequencies(card: SmallSignal) -> np.ndarray:
    """The frequencies of a card (f,), Hz.

    Raises
    ------
    UsageError
        More than `MOST`.
    """
    if card.spacing is Spacing.LIST:
        return np.array(card.frequencies)
    first, last = card.frequencies
    if card.spacing is Spacing.LINEAR:
        count = card.points
    else:
        base = 10.0 if card.spacing is Spacing.DECADE else 2.0
        count = 1 + int(np.floor(card.points * np.log(last / first) / np.log(base) * (1.0 + 1e-12) + 1e-9))
    if count > MOST:
        raise UsageError(f"{count:,} frequencies are more than {MOST:,}: take fewer points")
    if card.spacing is Spacing.LINEAR:
        return np.linspace(first, last, count)
    return np.asarray(first * base ** (np.arange(count) / card.points))


def run_deck(
    deck: Deck,
    hertz: np.ndarray | None = None,
    sources: Mapping[str, complex] | None = None,
    tolerance: float = TOLERANCE,
    progress: Callable[[int, int], None] | None = None,
) -> AcResult:
    """Responses of a deck.

    Parameters
    ----------
    deck : Deck
    hertz : (f,) float array, optional
        Those of the deck's ``.ac`` card if not given; 20 a decade from 1 Hz to 1 MHz without one.
    sources : mapping of str to complex, optional
        Amplitudes by source, V or A; those of ``AC`` on the sources' cards if not given.
    tolerance, progress
        See `circuitsim.small_signal.ac`.

    Raises
    ------
    UsageError
        More than one ``.ac`` card; no source with an amplitude.
    """
    cards = [card for card in deck.analyses if isinstance(card, SmallSignal)]
    if len(cards) > 1 and hertz is None:
        raise UsageError("the deck has more than one .ac card; leave one, or give the frequencies")
    circuit = circuit_at_operating_point(deck, changed=None)
    if sources is None:
        sources = {circuit.names[k]: value for k, value in deck.following.phasors.items()}
        if not any(sources.values()):
            raise UsageError("no source of the deck has an amplitude: write V1 in 0 DC 0 AC 1, or give --source V1")
    if hertz is None:
        hertz = frequencies(cards[0] if cards else DEFAULT)
    return ac(circuit, hertz, sources, tolerance, progress, deck.following.couplings)
