"""Data of a circuit besides element values: waveforms, amplitudes, initial values, switches, couplings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from types import MappingProxyType
from typing import Any, NamedTuple, Self

NONE: Mapping[int, Any] = MappingProxyType({})


class SwitchLaw(NamedTuple):
    """The control and the parameters of a switch.

    Attributes
    ----------
    control : tuple of int, or str
        The nodes of the controlling voltage, or the element of the controlling current.
    numbers : dict of str to float
        ``vt`` and ``vh`` (V or A), ``ron`` and ``roff`` (Ω).
    closed : bool
        Its initial state between both thresholds.
    """

    control: tuple[int, int] | str
    numbers: dict[str, float]
    closed: bool


class Dynamics:
    """Data for transient and AC analysis besides a circuit's values, and for operating points with switches.

    Parameters
    ----------
    waves : dict of int to object, optional
        Waveforms of sources, by position: those of decks, or of `circuitsim.time_domain`.
    initials : dict of int to float, optional
        Initial voltages of capacitors, V, and currents of inductors, A, by position.
    phasors : dict of int to complex, optional
        Amplitudes of sources, V and A, by position.
    switches : dict of int to SwitchLaw, optional
        By position.
    couplings : dict of (str, str) to float, optional
        Coupling factors of pairs of inductors.
    """

    formulas: Mapping[int, Any] = NONE
    """Sources that follow others, by position (decks only)."""
    frozen: Mapping[int, Any] = NONE
    """Controlled elements whose laws hold the values of independent sources, by position."""
    set_switches: Mapping[int, SwitchLaw] = NONE
    """Switches with a fixed resistance, as in an operating point: they do not switch."""

    def __init__(
        self,
        waves: Mapping[int, Any] = NONE,
        initials: Mapping[int, float] = NONE,
        phasors: Mapping[int, complex] = NONE,
        switches: Mapping[int, SwitchLaw] = NONE,
        couplings: Mapping[tuple[str, str], float] = MappingProxyType({}),
    ) -> None:
        self.waves, self.initials, self.phasors = dict(waves), dict(initials), dict(phasors)
        self.switches, self.couplings = dict(switches), dict(couplings)

    def acts(self) -> bool:
        """Whether there are data for transient or AC analysis, or formulas."""
        return bool(self.waves or self.formulas or self.frozen or self.phasors or self.switches or self.couplings)

    def coupled(self, given: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
        """The coupling factors of pairs of inductors, with the given ones first."""
        pairs = {frozenset((a.lower(), b.lower())) for a, b in given}
        own = {pair: k for pair, k in self.couplings.items() if frozenset(name.lower() for name in pair) not in pairs}
        return {**own, **given}

    def released(self, places: Iterable[int]) -> Self:
        """A copy with these switches as resistors."""
        left = {k: law for k, law in self.switches.items() if k not in set(places)}
        if len(left) == len(self.switches):
            return self
        found = copy(self)
        found.switches = left
        found.set_switches = {**self.set_switches, **self.switches}
        return found

    def copied(self) -> Self:
        """A copy to which elements can be added."""
        found = copy(self)
        for name in ("waves", "initials", "phasors", "switches", "couplings"):
            setattr(found, name, dict(getattr(self, name)))
        return found

    def take(self, other: Dynamics, nodes: Sequence[int], offset: int, prefix: str) -> None:
        """Add the data of a circuit whose nodes become these and whose elements follow ``offset`` others."""
        for name in ("waves", "initials", "phasors"):
            getattr(self, name).update((offset + k, value) for k, value in getattr(other, name).items())
        for k, law in other.switches.items():
            by = law.control
            control = f"{prefix}.{by}" if isinstance(by, str) else (nodes[by[0]], nodes[by[1]])
            self.switches[offset + k] = law._replace(control=control)
        self.couplings.update({(f"{prefix}.{a}", f"{prefix}.{b}"): k for (a, b), k in other.couplings.items()})

    def reads(self, formula: Any) -> list[tuple[int, ...]]:
        """What a formula reads: pairs of nodes of voltages, elements of currents; none here."""
        return []

    def check_changes(self, names: Collection[str] | None) -> None:
        """Refuse new values of elements that others follow; none here."""
