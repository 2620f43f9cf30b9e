"""Unknowns that a set of conducting diodes leaves indeterminate: potentials of parts tied to ground only by blocking
diodes, and currents around loops of conducting ones.

Equal infinitesimal conductances of the blocking diodes select these potentials, equal infinitesimal resistances of the
conducting ones these currents. One of Kirchhoff's equations of such a part is redundant: it receives the sum of the
voltages of the diodes at its boundary, which then vanishes. The equation of one diode of such a loop receives the sum
of the currents of its diodes.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from itertools import pairwise

import numpy as np

from circuitsim._graphs import unite
from circuitsim.circuit import GROUND, CircuitArrays
from circuitsim.circuit.elements import CAPACITOR, CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.controlled.certificate import LawArrays
from circuitsim.controlled.equations import Equations
from circuitsim.engine.nodal import path_between

KEPT = 64
"""Maximum number of sets of conducting diodes whose terms are kept."""


MoreTerms = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Rows, columns and values (k,) of additional terms of a matrix, S or Ω."""

Triplet = tuple[int, int, float]


class Ties:
    """The terms for any states of the diodes.

    Parameters
    ----------
    arrays : CircuitArrays
    laws : LawArrays
    eq : Equations
    """

    def __init__(self, arrays: CircuitArrays, laws: LawArrays, eq: Equations) -> None:
        self.eq, self.n = eq, arrays.n_nodes
        kind, self.first, self.second, _, _ = arrays
        driven = np.zeros(kind.size, dtype=bool)
        driven[laws.element[laws.current]] = True
        self._joins = (kind != CAPACITOR) & (kind != CURRENT) & (kind != DIODE) & ~driven
        short = arrays.fixed_voltages
        controls = np.zeros(kind.size, dtype=bool)
        controls[laws.control] = True
        self._shorts, self._controls = np.flatnonzero(short & ~controls).tolist(), controls[eq.diode]
        held = short & ~controls
        held[laws.element[~laws.current & ~laws.nullor]] = True
        self._held = np.flatnonzero(held & ~controls)
        # A current or a control between two parts is a condition on their potentials.
        self._between = (
            np.concatenate([self.first[driven], laws.plus]),
            np.concatenate([self.second[driven], laws.minus]),
        )
        self._unit = float(np.exp2(np.round(np.log2(eq.load.mean())))) if eq.load.size else 1.0
        self._known = lru_cache(KEPT)(self._terms)

    @property
    def some(self) -> bool:
        """Whether some set of conducting diodes leaves an unknown indeterminate: none of them a part, all of them a
        loop."""
        count = self.eq.diode.size
        return any(self.terms(np.full(count, on)) is not None for on in (False, True))

    def terms(self, conducting: np.ndarray) -> MoreTerms | None:
        """The terms for conducting diodes (d,); None where nothing is indeterminate."""
        return self._known(conducting.tobytes())

    def _terms(self, key: bytes) -> MoreTerms | None:
        conducting = np.frombuffer(key, dtype=bool)
        found = [*self._of_parts(conducting), *self._of_loops(conducting)]
        if not found:
            return None
        row, column, value = (np.array(part) for part in zip(*found))
        return row, column, value

    def wires(self, drops: np.ndarray) -> np.ndarray:
        """Shorts, voltage sources and the diodes of 0 V among branch voltages (m,) that control nothing."""
        return np.concatenate([self._held, self.eq.diode[~self._controls & (drops[self.eq.diode] == 0.0)]])

    def unique(self, currents: np.ndarray, drops: np.ndarray) -> np.ndarray:
        """Elements whose currents (m,) no circulation through loops of `wires` can change."""
        from circuitsim.program.components import unchangeable

        edges = self.wires(drops)
        falling = np.arange(edges.size) < self._held.size
        falling |= currents[edges] > 0.0
        unique = np.ones(currents.size, dtype=bool)
        unique[edges] = unchangeable(self.n, self.first[edges], self.second[edges], falling)
        return unique

    def _of_parts(self, conducting: np.ndarray) -> list[Triplet]:
        """The terms of parts behind blocking diodes."""
        from circuitsim.program.components import component_labels

        eq, on = self.eq, self._joins.copy()
        on[eq.diode[conducting]] = True
        ends = self.first[on], self.second[on]
        held = np.full(eq.pinned.size, GROUND)
        label = component_labels(self.n, *(np.concatenate(pair) for pair in zip(ends, (eq.pinned, held))))
        one, other = (label[end] for end in self._between)
        fixed = {int(label[GROUND]), *one[one != other].tolist(), *other[one != other].tolist()}
        found, siemens = list[Triplet](), 1.0 / self._unit
        for k in eq.diode[~conducting].tolist():
            a, b = int(self.first[k]), int(self.second[k])
            parts = int(label[a]), int(label[b])
            if parts[0] == parts[1]:
                continue
            for part, own in zip(parts, (siemens, -siemens)):
                if part not in fixed:
                    found += [(part - 1, end - 1, value) for end, value in ((a, own), (b, -own)) if end != GROUND]
        return found

    def _of_loops(self, conducting: np.ndarray) -> list[Triplet]:
        """The terms of loops of conducting diodes, shorts and voltage sources."""
        eq, leader = self.eq, list(range(self.n))
        forest: defaultdict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
        found, diodes = list[Triplet](), eq.diode[conducting & ~self._controls].tolist()
        own = set(diodes)
        for k in [*self._shorts, *diodes]:
            a, b = int(self.first[k]), int(self.second[k])
            if unite(leader, a, b):
                forest[a][b], forest[b][a] = (k, 1), (k, -1)
            elif k in own:
                loop = [(k, 1), *(forest[u][v] for u, v in pairwise(path_between(forest, b, a)))]
                found += [(int(eq.own[k]), int(eq.own[e]), -sign * self._unit) for e, sign in loop if e in own]
        return found


def lowest_nodes(arrays: CircuitArrays, value: np.ndarray, conducting: np.ndarray) -> np.ndarray:
    """For each node the lowest one (n_nodes,) that shorts, sources of 0 V and conducting diodes join it to, for values
    (m,) and the positions of these diodes: their potentials are equal without rounding."""
    from circuitsim.program.components import component_labels

    same = (value == 0.0) & ((arrays.kind == VOLTAGE) | (arrays.kind == RESISTOR))
    same[conducting] = True
    return component_labels(arrays.n_nodes, arrays.first[same], arrays.second[same])
