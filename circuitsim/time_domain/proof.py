"""The certificate of a run: Kirchhoff's laws and the elements' laws at all output times, and the energy balance.

All are judged by what the run itself has at the place: the largest current at the node, the largest voltage in the
loop, over all output times. The energy balance joins the times: what sources deliver is dissipated, stored or lost in
jumps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from circuitsim.time_domain.modes import Parts, Role, normal_tree

ROUNDING = 1e-3
"""Voltages below this share of the largest one, or of R · the largest current, are rounding."""

LAWS = {
    "kcl": "Kirchhoff's current law", "kvl": "Kirchhoff's voltage law", "sources": "source voltages",
    "resistors": "Ohm's law", "diodes": "signs of diode currents and voltages", "complementarity": "complementarity",
    "devices": "laws of devices", "energy": "the energy balance",
}  # fmt: skip
"""What the columns of a certificate are about."""


def violations(columns: Iterable[tuple[str, float, float]]) -> str:
    """The laws of a certificate that are violated, from the name, size and tolerance of each column."""
    wrong = [f"{LAWS[name]} by {size:.1e} (tolerance {most:.0e})" for name, size, most in columns if not size <= most]
    return "the waveforms fail their certificate, relative to the sizes there: " + ", ".join(wrong)


class TransientCertificate(NamedTuple):
    """Largest violations over all output times.

    Attributes
    ----------
    kcl : float
        Net current of a node over the largest current there during the run, at least `ROUNDING` of all voltages over
        its resistances.
    kvl : float
        Net voltage of a loop over the largest voltage in it during the run.
    resistors : float
        v − R i over the largest |v| of the resistor during the run, at least `ROUNDING` of all voltages and of R · the
        largest current.
    diodes : float
        Reverse current or forward voltage over the largest current at the node, voltage in the loop.
    complementarity : float
        Smaller of |v| and |i| of a diode, each over these sizes.
    energy : float
        What the energy balance misses, over the energy turned over.
    tolerance : float
    """

    kcl: float
    kvl: float
    resistors: float
    diodes: float
    complementarity: float
    energy: float
    tolerance: float

    @property
    def certified(self) -> bool:
        """Whether all are within the tolerance."""
        return bool(max(self[:-1]) <= self.tolerance)

    @property
    def violations(self) -> str:
        """What is violated, in words."""
        return violations((name, size, self.tolerance) for name, size in zip(self._fields[:-1], self))


def certify(
    parts: Parts, diodes: np.ndarray, voltage: np.ndarray, current: np.ndarray, ohms: np.ndarray, imbalance: float,
    tolerance: float,
) -> TransientCertificate:  # fmt: skip
    """The certificate of waveforms (n, m) in V and A, with the resistors' values (n, r), Ω, at the same times."""
    m = parts.role.size
    v, i = np.abs(voltage).max(axis=0), np.abs(current).max(axis=0)
    incidence = np.zeros((parts.n_nodes, m))
    np.add.at(incidence, (parts.first, np.arange(m)), 1.0)
    np.add.at(incidence, (parts.second, np.arange(m)), -1.0)
    r = np.flatnonzero(parts.role == Role.RESISTOR)
    steady = np.where((ohms == parts.value[r]).all(axis=0), parts.value[r], 0.0)
    # Currents of a node that carries none are the rounding of all voltages in its resistors.
    idle = np.zeros(m)
    idle[r] = ROUNDING * v.max(initial=0.0) / np.where(steady > 0.0, steady, np.inf)
    at_node = np.where(incidence != 0.0, np.maximum(i, idle), 0.0).max(axis=1)
    net = np.abs(current @ incidence.T).max(axis=0)
    tree = normal_tree(parts, np.zeros(m, dtype=np.int64))
    around = np.abs(voltage[:, tree.links] - voltage[:, tree.twigs] @ tree.cut).max(axis=0)
    law = np.abs(voltage[:, r] - ohms * current[:, r]).max(axis=0, initial=0.0)
    # A circuit whose voltages are all zero still has rounding: that of its currents in its resistors, not its switches.
    largest = max(v.max(initial=0.0), ROUNDING * float(steady.max(initial=0.0)) * i.max(initial=0.0))
    in_loop = np.where(tree.cut != 0.0, v[tree.twigs][:, None], 0.0).max(axis=0, initial=ROUNDING * largest)
    in_loop = np.maximum(v[tree.links], in_loop)
    met = np.maximum(at_node[parts.first[diodes]], at_node[parts.second[diodes]])
    across, through = voltage[:, diodes], current[:, diodes]
    forward, reverse = across.max(axis=0, initial=0.0), -through.min(axis=0, initial=0.0)
    wrong = np.maximum(_share(forward, largest), _share(reverse, met))
    both = np.minimum(_share(np.abs(across, out=across), largest), _share(np.abs(through, out=through), met))
    law = _share(law, np.maximum(v[r], ROUNDING * np.maximum(largest, steady * i.max(initial=0.0))))
    return TransientCertificate(
        _largest(_share(net, at_node)), _largest(_share(around, in_loop)), _largest(law),
        _largest(wrong), _largest(both), imbalance, tolerance,
    )  # fmt: skip


def _share(size: np.ndarray, scale: np.ndarray | float) -> np.ndarray:
    """``size`` / ``scale``; 0 where both are zero."""
    scale = np.broadcast_to(scale, size.shape)
    return np.divide(size, scale, out=np.where(size > 0.0, np.inf, 0.0), where=scale > 0.0)


def _largest(shares: np.ndarray) -> float:
    return float(shares.max(initial=0.0))
