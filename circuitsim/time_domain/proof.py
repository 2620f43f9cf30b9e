"""The certificate of a run: Kirchhoff's laws and the elements' laws at all output times, and the energy balance.

All are judged by what the run itself has at the place: the largest current at the node, the largest voltage in the
loop, over all output times. The energy balance joins the times: what sources deliver is dissipated, stored or lost in
jumps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy import sparse

from circuitsim.time_domain.modes import Parts, Role, normal_tree

ROUNDING = 1e-3
"""Voltages below this share of the largest one, or of R · the largest current, are rounding."""

LAWS = {
    "kcl": "Kirchhoff's current law",
    "kvl": "Kirchhoff's voltage law",
    "sources": "source voltages",
    "resistors": "Ohm's law",
    "diodes": "signs of diode currents and voltages",
    "complementarity": "complementarity",
    "devices": "laws of devices",
    "energy": "the energy balance",
}
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
        return all(size <= self.tolerance for size in self[:-1])

    @property
    def violations(self) -> str:
        """What is violated, in words."""
        return violations((name, size, self.tolerance) for name, size in zip(self._fields[:-1], self))


def certify(
    parts: Parts,
    diodes: np.ndarray,
    voltage: np.ndarray,
    current: np.ndarray,
    ohms: np.ndarray,
    imbalance: float,
    tolerance: float,
) -> TransientCertificate:
    """The certificate of waveforms (n, m) in V and A, with the resistors' values (n, r), Ω, at the same times."""
    m, r = parts.role.size, np.flatnonzero(parts.role == Role.RESISTOR)
    # One row a branch: what follows runs along time.
    across, through = np.ascontiguousarray(voltage.T), np.ascontiguousarray(current.T)
    v, i = _peak(across), _peak(through)
    steady = np.where((ohms == parts.value[r]).all(axis=0), parts.value[r], 0.0)
    # Currents of a node that carries none are the rounding of all voltages in its resistors.
    carried = i.copy()
    carried[r] = np.maximum(i[r], ROUNDING * v.max(initial=0.0) / np.where(steady > 0.0, steady, np.inf))
    at_node = np.zeros(parts.n_nodes)
    np.maximum.at(at_node, parts.first, carried)
    np.maximum.at(at_node, parts.second, carried)
    ends = np.concatenate([parts.first, parts.second])
    by_node = np.argsort(ends, kind="stable")
    begins = np.append(0, np.bincount(ends, minlength=parts.n_nodes).cumsum())
    signs, elements = np.where(by_node < m, 1.0, -1.0), by_node % m
    incidence = sparse.csr_array((signs, elements, begins), shape=(parts.n_nodes, m))
    net = _peak(incidence @ through)
    tree = normal_tree(parts, np.zeros(m, dtype=np.int64))
    around = _peak(across[tree.links] - tree.cut.T @ across[tree.twigs])
    off = _peak(across[r] - ohms.T * through[r])
    # A circuit whose voltages are all zero still has rounding: that of its currents in its resistors, not its switches.
    largest = max(v.max(initial=0.0), ROUNDING * float(steady.max(initial=0.0)) * i.max(initial=0.0))
    in_loop = np.where(tree.cut != 0.0, v[tree.twigs][:, None], 0.0).max(axis=0, initial=ROUNDING * largest)
    in_loop = np.maximum(v[tree.links], in_loop)
    met = np.maximum(at_node[parts.first[diodes]], at_node[parts.second[diodes]])
    drops = across[diodes] / (largest or 1.0)
    flows = through[diodes] / np.where(met > 0.0, met, 1.0)[:, None]
    wrong = np.maximum(drops.max(initial=0.0), -flows.min(initial=0.0))
    both = np.minimum(np.abs(drops, out=drops), np.abs(flows, out=flows)).max(initial=0.0)
    law = _share(off, np.maximum(v[r], ROUNDING * np.maximum(largest, steady * i.max(initial=0.0))))
    return TransientCertificate(
        _largest(_share(net, at_node)),
        _largest(_share(around, in_loop)),
        _largest(law),
        float(wrong),
        float(both),
        imbalance,
        tolerance,
    )


def _peak(rows: np.ndarray) -> np.ndarray:
    """Largest absolute value of each row."""
    found: np.ndarray = np.maximum(rows.max(axis=1, initial=0.0), -rows.min(axis=1, initial=0.0))
    return found


def _share(size: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """``size`` / ``scale``; 0 where both are zero."""
    return np.divide(size, scale, out=np.where(size > 0.0, np.inf, 0.0), where=scale > 0.0)


def _largest(shares: np.ndarray) -> float:
    return float(shares.max(initial=0.0))
