"""`TimedDeck`: a deck for transient analysis, with trainable values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.circuit.parameters import parameter
from circuitsim.errors import UsageError
from circuitsim.netlist.deck import Deck, Transient
from circuitsim.netlist.roles import Roles
from circuitsim.netlist.writer import text_of
from circuitsim.time_domain import Switch, TransientResult, Waveform, steady_state, transient
from circuitsim.time_domain.deck import setting

NUMBERS = {"vt": "threshold", "vh": "hysteresis", "ron": "on", "roff": "off"}
"""The numbers of a switch in decks and in `circuitsim.time_domain.Switch`."""


class TimedDeck:
    """A deck with adjustable numbers.

    Parameters
    ----------
    deck : Deck
    roles : Roles
        The adjustable elements and numbers.
    steady : bool
        Whether a run is one period of the periodic steady state.
    stop : float, optional
        End of a run, s; by default that of ``.tran``.
    tolerance : float
        Tolerance of each run's certificate.

    Attributes
    ----------
    names : list of str
        The adjustable numbers.
    start, low, high : (n,) float arrays
        Their values in the deck and their bounds.

    Raises
    ------
    UsageError
        Nothing is adjustable; no ``.tran`` and no ``stop``; sources that follow others.
    """

    def __init__(
        self, deck: Deck, roles: Roles, steady: bool = False, stop: float | None = None, tolerance: float = 1e-9
    ) -> None:
        if not roles.trainable:
            raise UsageError("nothing is trainable: write '*! trainable R* C1' into the deck, or --trainable 'R* C1'")
        follow = {*deck.following.formulas, *deck.following.frozen}
        if follow:
            name = deck.operating_circuit.names[min(follow)]
            raise UsageError(
                f"{name} follows other sources, which waveform fits do not support: give it a time function of its own"
            )
        self.deck, self.roles, self.steady, self.tolerance = deck, roles, steady, tolerance
        # The card's step is the default rise time and is kept.
        steps = [card.step for card in deck.analyses if isinstance(card, Transient) and card.step > 0.0]
        self.setting = setting(deck, steps[0] if steps else None, stop)
        self.names = [a.name for a in roles.trainable]
        self.low, self.high = (np.array([getattr(a, end) for a in roles.trainable]) for end in ("minimum", "maximum"))
        found = [parameter(deck.operating_circuit, name, deck.following.switches) for name in self.names]
        self._numbers = [own for own in found if own is not None]
        self.start = np.array([own.value for own in self._numbers])

    def at(self, values: Sequence[float] | np.ndarray) -> tuple[Circuit, dict[str, Switch]]:
        """The circuit and its switches with values (n,) of the adjustable numbers."""
        circuit, switches = self.deck.operating_circuit, dict(self.setting.switches)
        plain = {}
        for own, value in zip(self._numbers, np.asarray(values, dtype=float).tolist()):
            if own.plain:
                plain[own.name] = value
            else:
                name = circuit.names[own.elements[0]]
                switches[name] = switches[name]._replace(**{NUMBERS[own.key]: value})
        return circuit.with_values(plain), switches

    def run(
        self,
        values: Sequence[float] | np.ndarray,
        inputs: Mapping[str, Waveform] = MappingProxyType({}),
        points: int = 2,
    ) -> TransientResult:
        """The waveforms with values (n,) of the adjustable numbers.

        Parameters
        ----------
        values : (n,) float array
        inputs : mapping of str to Waveform
            Waveforms of sources, in place of the deck's.
        points : int
            Number of output times.
        """
        circuit, switches = self.at(values)
        own, couplings = self.setting, self.deck.following.couplings
        waves = {**own.waves, **inputs}
        if self.steady:
            return steady_state(circuit, waves, None, own.initial, points, self.tolerance, switches, couplings)
        return transient(
            circuit,
            own.grid.stop,
            waves,
            own.initial,
            points,
            self.tolerance,
            switches,
            couplings,
            held=own.held,
            max_step=own.longest,
        )

    def text(self, values: Sequence[float] | np.ndarray) -> str:
        """The deck with values (n,) of the adjustable numbers, its roles and its transient data."""
        circuit, switches = self.at(values)
        numbers = {}
        for k in self.deck.following.switches:
            switch = switches[circuit.names[k]]
            numbers[k] = {number: float(getattr(switch, own)) for number, own in NUMBERS.items()}
        return text_of(circuit, self.roles, self.deck, numbers, lenient=True)
