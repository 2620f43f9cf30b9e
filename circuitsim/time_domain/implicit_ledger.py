"""Energies of an implicit run, and the largest residuals at the ends of its steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.circuit.elements import CURRENT, VOLTAGE
from circuitsim.time_domain.companion import Companion
from circuitsim.time_domain.implicit_step import WEIGHTS, Point, Step
from circuitsim.time_domain.proof import violations
from circuitsim.time_domain.result import Energies


class ImplicitCertificate(NamedTuple):
    """Largest relative residuals at the ends of all steps, and the energy balance of the run.

    Attributes
    ----------
    kcl, kvl, sources, diodes, complementarity, devices : float
        Of the operating points at these times (`circuitsim.certificate`); ``diodes`` is the larger of forward voltage
        and reverse current, ``devices`` the distance of smooth devices from their curves.
    energy : float
        Imbalance of energies over the energy turned over: an error of the method.
    tolerance, energy_tolerance : float
        Tolerances of the equations and of the energy balance.
    """

    kcl: float
    kvl: float
    sources: float
    diodes: float
    complementarity: float
    devices: float
    energy: float
    tolerance: float
    energy_tolerance: float

    @property
    def certified(self) -> bool:
        """Whether all are within their tolerances."""
        return self.lawful and self.energy <= self.energy_tolerance

    @property
    def lawful(self) -> bool:
        """Whether all but the energy balance are within tolerance."""
        return all(size <= self.tolerance for size in self[:6])

    @property
    def violations(self) -> str:
        """What is violated, in words."""
        return violations(zip(self._fields, self[:7], [*[self.tolerance] * 6, self.energy_tolerance]))


LAWS = (("kcl",), ("kvl",), ("source",), ("diode_drop", "diode_reverse"), ("complementarity",), ("devices",))
"""Names of these columns in certificates of operating points, in the order of `ImplicitCertificate`."""


class Ledger:
    """Sums over the steps of a run.

    Parameters
    ----------
    companion : Companion
    """

    def __init__(self, companion: Companion) -> None:
        kind = companion.own.arrays().kind
        sources = np.isin(kind, (VOLTAGE, CURRENT))
        self.companion = companion
        self._shares = np.array([np.where(sources, -1.0, 0.0), ~sources & ~companion.elements]).T.copy()
        self.delivered = self.dissipated = self.turned = self.lost = 0.0
        self._worst = np.zeros(len(LAWS))

    def begin(self, x: np.ndarray) -> None:
        """The states (q,) at the beginning."""
        self._first = self._last = self.companion.energy(x)

    def jump(self, step: Step) -> None:
        """The energies of a step of backward Euler."""
        self.lost += self.companion.energy(step.error)
        self._take(step, np.ones(1), step.waves)

    def take(self, step: Step, waves: np.ndarray) -> None:
        """The energies of a step with these voltages and currents (stages, 2, m), V, A."""
        self._take(step, WEIGHTS, waves)

    def _take(self, step: Step, weights: np.ndarray, waves: np.ndarray) -> None:
        power = step.length * (waves[:, 0] * waves[:, 1])
        delivered, dissipated = (weights @ power @ self._shares).tolist()
        self.delivered, self.dissipated = self.delivered + delivered, self.dissipated + dissipated
        self.turned += float(weights @ np.abs(power).sum(axis=1))
        self._last = self.companion.energy(step.end.x)

    def hold(self, point: Point) -> None:
        """Record the residuals at the end of a step."""
        found = point.solved.certificate.relative
        own = [max(found.get(name, 0.0) for name in law) for law in LAWS]
        self._worst = np.maximum(self._worst, own)

    def turned_over(self) -> float:
        """The energy turned over so far, J."""
        return self.turned + max(self._first, self._last)

    def energies(self) -> Energies:
        """Of the whole run."""
        return Energies(self.delivered, self.dissipated, self._last - self._first, self.lost, self.turned_over())

    def certificate(self, tolerance: float, energy: float) -> ImplicitCertificate:
        """Of the whole run, laws held to ``tolerance``, the balance to ``energy``."""
        kcl, kvl, sources, diodes, complementarity, devices = self._worst.tolist()
        imbalance = float(self.energies().imbalance)
        return ImplicitCertificate(kcl, kvl, sources, diodes, complementarity, devices, imbalance, tolerance, energy)


__all__ = ["ImplicitCertificate", "Ledger"]
