"""The proof of a solution: physics of its own, recomputed from elements, voltages and currents.

Nothing here is shared with the program or the solvers. Every quantity is held against its *local* scale: at a node the
sum of g (|v_k| + |v_j|) over its resistors and of |i| over its other branches; at a diode or source the larger of its
two end potentials. A nanoampere part beside a kiloampere part must be right by its own measure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from circuitsim.circuit import CircuitArrays
from circuitsim.circuit.elements import DIODE, INDUCTOR, RESISTOR, VOLTAGE

TOLERANCE = 1e-9


class Certificate(NamedTuple):
    """Worst violations of the circuit's equations over nodes and branches, absolute and relative to local scales.

    Attributes
    ----------
    kcl : float
        Largest net current at a node, A (Kirchhoff's current law).
    resistor : float
        Largest |i − v/R|, A (Ohm's law).
    source : float
        Largest |v − V| of a voltage source or short, V.
    diode_drop : float
        Largest forward voltage of a diode, V.
    diode_reverse : float
        Largest reverse current of a diode, A.
    complementarity : float
        Largest |i (v_cathode − v_anode)| of a diode, W.
    energy_gap : float
        Σ i (v_cathode − v_anode) over the diodes, W: how far E(v) can lie above its minimum (THEORY §1).
    relative : dict of str to float
        Each of these against its local scale.
    tolerance : float
        What ``relative`` is held to.
    """

    kcl: float
    resistor: float
    source: float
    diode_drop: float
    diode_reverse: float
    complementarity: float
    energy_gap: float
    relative: dict[str, float]
    tolerance: float

    @classmethod
    def of(cls, worst: np.ndarray, relative: np.ndarray, tolerance: float) -> Certificate:
        """From what `worst_violations` filled in."""
        ratios = dict(zip(EQUATIONS, relative.tolist()))
        return cls(**dict(zip(EQUATIONS, worst.tolist())), relative=ratios, tolerance=tolerance)

    @property
    def worst(self) -> float:
        """The largest relative violation."""
        return max(self.relative.values())

    @property
    def ok(self) -> bool:
        """Whether every relative violation is within the tolerance."""
        return self.worst <= self.tolerance

    def to_dict(self) -> dict[str, object]:
        """The certificate as it stands in the JSON output."""
        return {**self._asdict(), "relative": dict(self.relative), "ok": self.ok}


class Violations(NamedTuple):
    """What `violations` measures: per node (…, n_nodes) or per element (…, m), each with its local scale."""

    kcl: tuple[np.ndarray, np.ndarray]
    resistor: tuple[np.ndarray, np.ndarray]
    source: tuple[np.ndarray, np.ndarray]
    diode_drop: tuple[np.ndarray, np.ndarray]
    diode_reverse: tuple[np.ndarray, np.ndarray]
    complementarity: tuple[np.ndarray, np.ndarray]


def violations(arrays: CircuitArrays, value: np.ndarray, voltages: np.ndarray, currents: np.ndarray) -> Violations:
    """Every violation of the circuit's equations beside its local scale, also for batches.

    Parameters
    ----------
    arrays : CircuitArrays
    value : (…, m) float array
        Element values (Ω, V, A); zero ohms where, and only where, ``arrays`` has them.
    voltages : (…, n_nodes) float array
        Node potentials, V.
    currents : (…, m) float array
        Branch currents in SPICE signs, A.

    Returns
    -------
    Violations
        Pairs (violation ≥ 0, scale ≥ 0).
    """
    kind, first, second, zeroable, n_nodes = arrays
    va, vb = voltages[..., first], voltages[..., second]
    drop, reach = va - vb, np.maximum(np.abs(va), np.abs(vb))
    resistor = (kind == RESISTOR) & (zeroable != 0.0)
    fixed = (kind == VOLTAGE) | (kind == INDUCTOR) | ((kind == RESISTOR) & ~resistor)
    target = np.where(kind == VOLTAGE, value, 0.0)
    diode = kind == DIODE
    g = np.where(resistor, 1.0 / np.where(resistor, value, 1.0), 0.0)
    ohmic = g * (np.abs(va) + np.abs(vb))
    size = np.where(resistor, ohmic, np.abs(currents))
    at_node = _node_sums(n_nodes, first, second)
    scale = at_node(size, size)
    local = np.minimum(scale[..., first], scale[..., second])
    zero = np.zeros_like(drop)
    return Violations(
        (np.abs(at_node(currents, -currents)), scale),
        (np.where(resistor, np.abs(currents - g * drop), zero), ohmic),
        (np.where(fixed, np.abs(drop - target), zero), np.maximum(reach, np.abs(target))),
        (np.where(diode, np.maximum(drop, 0.0), zero), reach),
        (np.where(diode, np.maximum(-currents, 0.0), zero), local),
        (np.where(diode, np.abs(currents * drop), zero), local * reach),
    )


EQUATIONS = ("kcl", "resistor", "source", "diode_drop", "diode_reverse", "complementarity", "energy_gap")
"""What a certificate measures, in the order of `worst_violations`."""


def worst_violations(kind, first, second, zeroable, value, v, i, at_node, worst, relative):
    """The loop behind `certify`: fills in the worst absolute and relative violations, in the order of `EQUATIONS`.

    Runs interpreted or compiled; `violations` is the same in numpy. See there for the arguments; ``at_node`` is
    (2, n_nodes) work space.
    """
    at_node[:] = 0.0
    # In scalars, not in the arrays: the next element need not wait for what the last one stored.
    kcl = resistor = source = forward = reverse = both = 0.0
    kcl_share = resistor_share = source_share = forward_share = reverse_share = both_share = 0.0
    for e in range(kind.size):
        a, b = first[e], second[e]
        size = abs(i[e])
        if kind[e] == RESISTOR and zeroable[e] != 0.0:
            g = 1.0 / value[e]
            size = abs(g) * (abs(v[a]) + abs(v[b]))
            resistor, resistor_share = worse(resistor, resistor_share, abs(i[e] - g * (v[a] - v[b])), size)
        at_node[0, a] += i[e]
        at_node[0, b] -= i[e]
        at_node[1, a] += size
        at_node[1, b] += size
    for k in range(at_node.shape[1]):
        kcl, kcl_share = worse(kcl, kcl_share, abs(at_node[0, k]), at_node[1, k])
    gap, gap_scale = 0.0, 0.0
    for e in range(kind.size):
        if kind[e] == RESISTOR and zeroable[e] != 0.0:
            continue
        a, b = first[e], second[e]
        drop, reach = v[a] - v[b], max(abs(v[a]), abs(v[b]))
        if kind[e] == VOLTAGE or kind[e] == INDUCTOR or kind[e] == RESISTOR:
            target = value[e] if kind[e] == VOLTAGE else 0.0
            source, source_share = worse(source, source_share, abs(drop - target), max(reach, abs(target)))
        elif kind[e] == DIODE:
            local = min(at_node[1, a], at_node[1, b])
            forward, forward_share = worse(forward, forward_share, max(drop, 0.0), reach)
            reverse, reverse_share = worse(reverse, reverse_share, max(-i[e], 0.0), local)
            both, both_share = worse(both, both_share, abs(i[e] * drop), local * reach)
            gap -= i[e] * drop
            gap_scale += local * reach
    worst[0], worst[1], worst[2], worst[3], worst[4], worst[5] = kcl, resistor, source, forward, reverse, both
    worst[6] = gap + 0.0
    relative[0], relative[1], relative[2] = kcl_share, resistor_share, source_share
    relative[3], relative[4], relative[5] = forward_share, reverse_share, both_share
    relative[6] = worse(0.0, 0.0, abs(gap), gap_scale)[1]


def worse(worst, share, amount, scale):
    """The worst amount and the worst share of a scale so far; without a scale any amount counts as infinite."""
    if not amount < np.inf:
        return np.inf, np.inf
    # Most are far from the worst, which a product tells faster than the quotient.
    if amount > 0.0 and not amount < 0.5 * share * scale:
        share = max(share, amount / scale if scale > 0.0 else np.inf)
    return max(worst, amount), share


def certify(
    arrays: CircuitArrays,
    value: np.ndarray,
    voltages: np.ndarray,
    currents: np.ndarray,
    tolerance: float = TOLERANCE,
) -> Certificate:
    """The certificate of one operating point (see `violations` for the arguments)."""
    found = violations(arrays, value, voltages, currents)
    relative = {name: _worst_ratio(*pair) for name, pair in found._asdict().items()}
    diode = arrays.kind == DIODE
    drop = voltages[arrays.first] - voltages[arrays.second]
    gap = 0.0 - float((currents * drop)[diode].sum())
    relative["energy_gap"] = _worst_ratio(np.array([abs(gap)]), np.array([found.complementarity[1][diode].sum()]))
    worst = {name: float(amount.max(initial=0.0)) for name, (amount, _) in found._asdict().items()}
    return Certificate(**worst, energy_gap=gap, relative=relative, tolerance=tolerance)


def _worst_ratio(amount: np.ndarray, scale: np.ndarray) -> float:
    """Largest amount / scale; an amount without a scale counts as infinite, nothing over nothing as zero."""
    wrong = amount > 0.0
    if not np.isfinite(amount).all():
        return float("inf")
    with np.errstate(divide="ignore", over="ignore"):
        return float((amount[wrong] / scale[wrong]).max(initial=0.0))


def _node_sums(
    n_nodes: int, first: np.ndarray, second: np.ndarray
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """A function that adds up, at every node, one amount at each element's first and another at its second terminal."""
    ends = np.concatenate([first, second])
    order = np.argsort(ends, kind="stable")
    nodes, starts = np.unique(ends[order], return_index=True)

    def add_up(at_first: np.ndarray, at_second: np.ndarray) -> np.ndarray:
        total = np.zeros((*at_first.shape[:-1], n_nodes))
        if nodes.size:
            both = np.concatenate([at_first, at_second], axis=-1)[..., order]
            total[..., nodes] = np.add.reduceat(both, starts, axis=-1)
        return total

    return add_up
