"""Switches of a run: their resistances, thresholds, and states that hold at an operating point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.solve import solve
from circuitsim.circuit import Circuit
from circuitsim.errors import ConvergenceError
from circuitsim.time_domain.problem import Switch

TRIES = 50
"""Most states of the switches to try at the operating point."""


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
        """Resistances, Ω, for states (s,)."""
        return np.array([s.on if c else s.off for s, c in zip(self.switches, closed)])

    def thresholds(self, closed: np.ndarray) -> np.ndarray:
        """The control, V or A, at which switches in these states (s,) change."""
        return np.array([s.threshold + (-s.hysteresis if c else s.hysteresis) for s, c in zip(self.switches, closed)])

    def named(self, chosen: np.ndarray) -> str:
        """Names of those that a mask (s,) chooses."""
        return ", ".join(name for name, own in zip(self.names, chosen.tolist()) if own)

    def turned(self, controls: np.ndarray, closed: np.ndarray) -> np.ndarray:
        """States (s,) with controls beyond their thresholds turned."""
        at = self.thresholds(closed)
        return np.where(closed, controls >= at, controls > at)


def operating_point_of(
    circuit: Circuit, values: Mapping[str, float], switching: Switching, closed: np.ndarray
) -> tuple[OperatingPoint, np.ndarray]:
    """An operating point at which all switches are as their controls ask for.

    Parameters
    ----------
    circuit : Circuit
    values : mapping of str to float
        Of sources, V, A.
    switching : Switching
    closed : (s,) bool array
        States to try first.

    Returns
    -------
    OperatingPoint, (s,) bool array

    Raises
    ------
    ConvergenceError
        A switch that neither state suits.
    """
    for _ in range(TRIES):
        ohms = dict(zip(switching.names, switching.ohms(closed).tolist()))
        point = solve(circuit.with_values({**values, **ohms}))
        now = switching.turned(controls_at(point, switching.switches), closed)
        if (now == closed).all():
            return point, closed
        closed, before = now, closed
    raise ConvergenceError(
        f"{switching.named(closed != before)}: no state holds at the operating point; begin with initial values (UIC)"
    )


def controls_at(point: OperatingPoint, switches: Sequence[Switch]) -> np.ndarray:
    """What controls the switches (s,), V or A."""
    return np.array([
        point.currents[point.circuit.element_index(switch.control)] if isinstance(switch.control, str)
        else point.voltage(*switch.control)
        for switch in switches
    ])  # fmt: skip
