"""Stages of implicit steps with smooth devices, in one call of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim.analysis.controlled_point import point_of
from circuitsim.analysis.expanded import PreparedExpanded, assembled
from circuitsim.analysis.newton import Found, Smooth, State
from circuitsim.analysis.operating_point import OperatingPoint, Status
from circuitsim.analysis.small_circuit import Deferred
from circuitsim.analysis.smooth_controlled_proof import proof
from circuitsim.analysis.stage_equations import MEASURED
from circuitsim.analysis.stage_matrix import Made, StageMatrices
from circuitsim.certificate import Certificate
from circuitsim.controlled.law_arrays import LawArrays, law_arrays
from circuitsim.engine.small.pointers import Pinned
from circuitsim.time_domain.stage_kernels import stage_kernel

if TYPE_CHECKING:
    from circuitsim.time_domain.companion import Companion


MOST, FEW = 128, 32
"""Most unknowns of a circuit whose stages this kernel solves, beside controlled sources and without: its matrices are
dense, those of the kernel of Newton's method there are not."""


class StatePlaces(NamedTuple):
    """Where states are in the circuit of elementary elements; see `Companion`. ``device``: smooth devices; ``coils``,
    ``series`` and ``inverse``: of coupled inductors."""

    base: np.ndarray
    storing: np.ndarray
    capacitor: np.ndarray
    device: np.ndarray
    coils: np.ndarray
    series: np.ndarray
    inverse: np.ndarray


class Tangents(NamedTuple):
    """What `circuitsim.analysis.tangent_newton.tangent_newton` fills in, with the values (m,) of the elements."""

    column: np.ndarray
    device: np.ndarray
    branch: np.ndarray
    node: np.ndarray


class Solved(NamedTuple):
    """A stage.

    Attributes
    ----------
    x, slope : (q,) float arrays
        States and their derivatives.
    voltage, current : (n,) float arrays
        Of the circuit's own elements, V, A.
    point : OperatingPoint
    """

    x: np.ndarray
    slope: np.ndarray
    voltage: np.ndarray
    current: np.ndarray
    point: OperatingPoint


class Beginning(NamedTuple):
    """What stages of a step begin with.

    Attributes
    ----------
    x : (q,) float array
        States at the beginning.
    slopes : list of (q,) float arrays
        Their derivatives there and in the stages so far.
    length, share : float
        Of the step, and of a stage's own derivative, s.
    before : (k, k) float array
        Coefficients of the derivatives at the beginning and in earlier stages, one row for each stage.
    """

    x: np.ndarray
    slopes: list[np.ndarray]
    length: float
    share: float
    before: np.ndarray


class StagesAtOnce:
    """The stages of a companion circuit.

    Parameters
    ----------
    companion : Companion
    ready : PreparedExpanded
        The circuit, analysed.
    laws : LawArrays
        Of controlled elements.
    smooth : Smooth
    """

    def __init__(self, companion: Companion, ready: PreparedExpanded, laws: LawArrays, smooth: Smooth) -> None:
        self.companion, self.ready, self.laws, self.smooth = companion, ready, laws, smooth
        self.tolerance = float(ready.tolerance)
        elementary, windings = ready.expansion.circuit, companion.windings
        self._column = elementary.arrays().value.copy()
        self._given = ~np.isnan(ready.circuit.arrays().value)
        gains = companion.series[companion.series >= 0]
        self._matrices = StageMatrices(elementary, laws, smooth, companion.storing, gains)
        self._laws = Pinned(LawArrays(*map(np.array, laws)))
        none = np.zeros(0, dtype=np.int64)
        coils, inverse = (none, np.zeros((0, 0))) if windings is None else (windings.coils, windings.inverse)
        self._states = Pinned(
            StatePlaces(
                *map(
                    np.array,
                    (
                        companion.base,
                        companion.storing,
                        companion.capacitor,
                        smooth.elements,
                        coils,
                        companion.series[: companion.place.size],
                        inverse,
                    ),
                )
            )
        )
        self.smooth_alone = smooth.elements.size == len(ready.circuit.devices)

    @classmethod
    def of(cls, companion: Companion, ready: PreparedExpanded) -> StagesAtOnce | None:
        """The stages of a circuit with smooth devices; None of another one, or where others take less time."""
        elementary, controlled = ready.expansion.circuit.arrays(), ready.controlled
        most, laws = (FEW, law_arrays({})) if controlled is None else (MOST, controlled.inner.laws)
        if ready.smooth is None or elementary.n_nodes > most:
            return None
        made = cls(companion, ready, laws, ready.smooth)
        none = np.zeros(made._matrices.diode.size, dtype=bool)
        return made if made._matrices.size(elementary.value, none) <= most else None

    def solve(self, begin: Beginning, columns: Sequence[np.ndarray], near: OperatingPoint | None) -> list[Solved]:
        """The stages of a step, from the first unknown one; fewer where ideal diodes change or laws do not hold.

        Parameters
        ----------
        begin : Beginning
        columns : sequence of (m,) float arrays
            Values of the companion circuit in all stages but those known.
        near : OperatingPoint or None
            Of a stage nearby.
        """
        start = None if near is None else self._start(near)
        if start is None:
            return []
        first = len(begin.slopes) - 1
        column = np.empty((first + len(columns), self._column.size))
        column[first:] = self._column
        np.copyto(column[first:, : self._given.size], columns, where=self._given)
        made = self._matrices.of(column[first], start[1])
        anew, made.length = made.length != begin.share, begin.share
        slopes, out = np.empty((len(column) + 1, begin.x.size)), self._filled(len(column))
        slopes[: first + 1] = begin.slopes
        done, solved = stage_kernel("solve_stages", made.system.eq.size * len(columns))(
            made.pinned,
            self._laws,
            self._states,
            anew,
            first,
            begin.length,
            begin.share,
            begin.before,
            self.tolerance,
            column,
            begin.x,
            slopes,
            self.companion.size,
            start[0],
            *out,
        )
        stages = list[Solved]()
        for k, (device, branch, node, x, wave, found) in enumerate(list(zip(*out))[first : done + solved], first):
            point = StagePoint(self, made, Tangents(column[k], device, branch, node), found)
            if k == done and not point.held_again():
                break
            voltage, current = wave if self.smooth_alone else self.companion.waves(point, x)
            stages.append(Solved(x, slopes[k + 1], voltage, current, point))
        return stages

    def _filled(self, count: int) -> tuple[np.ndarray, ...]:
        """What the kernel fills in for so many stages, in the order of its arguments."""
        m, n = self._column.size, self.ready.expansion.circuit.arrays().n_nodes
        shapes = (8, self.smooth.slope.size), (2, m), (2, n), self.companion.storing.shape, (2, len(self.companion.own))
        return tuple(np.empty((count, *shape)) for shape in (*shapes, (MEASURED,)))

    def _start(self, near: OperatingPoint) -> tuple[np.ndarray, np.ndarray] | None:
        """Voltages and currents (2, s) of the devices, and conducting diodes (d,), at an operating point."""
        if isinstance(near, StagePoint):
            return near.tangents.device, near.tangents.branch[0, self._matrices.diode] > 0.0
        elementary, places = near.elementary, self.smooth.elements
        if elementary is None:
            return None
        device = np.array([near.drops[places], near.currents[places]])
        return device, elementary.currents[self._matrices.diode] > 0.0


def found_of(tangents: Tangents) -> Found:
    """What `circuitsim.analysis.newton.iterate` would say."""
    device, (voltages, low), (currents, drops) = tangents.device, tangents.node, tangents.branch
    point = _Potentials(voltages, low, currents, drops)
    return Found(point, device[0], device[1], State(device[2:6], device[6]), device[7], 1)


class _Potentials(NamedTuple):
    """Potentials and what rounding them leaves over (n_nodes,), V, currents, A, and drops, V (m,)."""

    voltages: np.ndarray
    low: np.ndarray
    currents: np.ndarray
    drops: np.ndarray


class _Part:
    """An attribute of the operating point that a stage is, which is made when it is first asked for."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, point: StagePoint | None, owner: type | None = None) -> Any:
        if point is None:
            return self
        found = point.__dict__[self._name] = getattr(point.whole, self._name)
        return found


class StagePoint(OperatingPoint):
    """The operating point of a stage.

    Attributes
    ----------
    tangents : Tangents
    certificate : Certificate
    """

    status = Status.SOLVED
    circuit, unique, intervals, solver, warnings = _Part(), _Part(), _Part(), _Part(), _Part()
    voltages, currents, drops, regions, junctions, elementary = _Part(), _Part(), _Part(), _Part(), _Part(), _Part()

    def __init__(self, stages: StagesAtOnce, made: Made, tangents: Tangents, measured: np.ndarray) -> None:
        self._stages, self._made, self.tangents, self._measured = stages, made, tangents, measured
        if stages.smooth_alone:
            self.voltages = tangents.node[0, : len(stages.companion.circuit.node_names)]

    @Deferred
    def certificate(self) -> Certificate:
        """From what the kernel has measured."""
        *measured, farthest, gap = self._measured.tolist()
        made = Certificate.of(measured, self._stages.tolerance)
        return made._replace(relative={**made.relative, "devices": farthest}, device_gap=gap)

    def held_again(self) -> bool:
        """Hold the laws that the kernel does not: with loops, and without noise; whether they hold now."""
        own = self._stages
        arrays = own.ready.expansion.circuit.arrays()._replace(value=self.tangents.column)
        self.certificate = proof(found_of(self.tangents), arrays, own.smooth, own.laws, own.tolerance)
        return self.certificate.certified

    @property
    def whole(self) -> OperatingPoint:
        """All of it."""
        ready, certificate, found = self._stages.ready, self.certificate, found_of(self.tangents)
        elementary = point_of(
            self._made.system, ready.expansion.circuit.with_column(self.tangents.column), found.point, certificate
        )
        found = found._replace(point=elementary)
        return assembled(
            ready.circuit, ready.expansion, self._stages.smooth, found, ready.tolerance, lambda *_: certificate
        )


__all__ = ["Beginning", "Solved", "StagePoint", "StagesAtOnce"]
