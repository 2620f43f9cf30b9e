"""The companion circuit, whose operating points are the stages of implicit steps.

In a stage a storing element's state is x = base + δ with derivative k = δ / g, where g is the stage's share of the
step. A capacitor becomes a resistance g / C in series with a source of its base voltage; its drop is δ, so neither δ
nor the current is a difference of large numbers, however short the step is. An inductor becomes a resistance L / g in
parallel with a source of its base current; its current is δ. The charge of a junction is a state too: (q − base) / g
flows into it, a term of the device's characteristic (`circuitsim.models.junction_diode`). Coupled inductors are
uncoupled ones of their core currents with ideal transformers (`circuitsim.circuit.couplings`): a voltage source in
series and a current source in parallel. With smooth devices or controlled sources one kernel call solves the stages.

Currents in loops of ideal diodes and other elements without resistance are not unique; an operating point has those of
least norm, which equal, vanishing wire resistances would give. They have a breakpoint where a diode of a loop stops
carrying, which the dense output of a step cannot represent. So at times between stages they are computed from the
currents that enter the loops, which it can.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim.analysis.collapse import assembled, proof
from circuitsim.analysis.controlled import NOISE, branches, point_of
from circuitsim.analysis.convex import Prepared
from circuitsim.analysis.expanded import PreparedExpanded
from circuitsim.analysis.newton import Found, Smooth
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.solve import prepared_as_it_is
from circuitsim.analysis.tangent_newton import MEASURED, Made, StageMatrices
from circuitsim.certificate import Certificate
from circuitsim.circuit import Circuit
from circuitsim.circuit.couplings import Windings, windings_of
from circuitsim.circuit.elements import (
    BY_CURRENT_F,
    BY_CURRENT_H,
    CAPACITOR,
    CURRENT,
    DIODE,
    INDUCTOR,
    RESISTOR,
    VOLTAGE,
)
from circuitsim.circuit.expansion import expanded
from circuitsim.circuit.laws import CurrentControl, Law, Quantity
from circuitsim.controlled.certificate import LawArrays, law_arrays
from circuitsim.controlled.linear import Pair
from circuitsim.engine.loops import WireLoops
from circuitsim.engine.small.pointers import Pinned
from circuitsim.errors import UsageError
from circuitsim.kernels import UNKNOWN, kernel
from circuitsim.models.junction_diode import BASE, CJO, RATE, TT, charge, junction
from circuitsim.newton.steps import KEPT
from circuitsim.time_domain.beginning import charged_junctions
from circuitsim.time_domain.large_stages import Change, LargeStages
from circuitsim.time_domain.stages_kernel import ROUNDING, put_waves, solve_stages

if TYPE_CHECKING:
    from circuitsim.analysis.controlled import PreparedControlled
    from circuitsim.analysis.solve import Unswitched

MOST, PRODUCTS = 256, 2_000_000
"""Maximum numbers of nodes of a circuit for this kernel, which stores whole matrices, and of products in a
factorisation (those of 128 unknowns without a band): some milliseconds."""
LARGE = 60
"""Number of unknowns above which stages correct the node voltages of the previous one: circuits with more states than
the exact method takes have more. Smaller ones are mostly loops of ideal diodes and jumps of charge, which need the
engine."""

_NOWHERE = np.zeros(0, dtype=np.int64)
_NONE_SMOOTH = Smooth(_NOWHERE, _NOWHERE, _NOWHERE, _NOWHERE, np.zeros((0, BASE + 1)))


class StatePlaces(NamedTuple):
    """Positions of states in the circuit of elementary elements; see `Companion`.

    ``charged``: smooth devices with a charge; ``smooth``: elements that are smooth devices; ``inductors``, ``inverse``:
    coupled ones, see `Windings`; ``series``: sources in series with the independent ones of these.
    """

    base: np.ndarray
    storing: np.ndarray
    capacitor: np.ndarray
    charged: np.ndarray
    smooth: np.ndarray
    inductors: np.ndarray
    inverse: np.ndarray
    series: np.ndarray


class Tangents(NamedTuple):
    """Results of `circuitsim.analysis.tangent_newton.tangent_newton`, with the values (m,) of the elements."""

    column: np.ndarray
    device: np.ndarray
    branch: np.ndarray
    node: np.ndarray


class Solved(NamedTuple):
    """Solved stages.

    Attributes
    ----------
    x, slope : (k, q) float arrays
        States and their derivatives.
    points : list of OperatingPoint
    companion : Companion
    filled : (k, 2, n) float array or None
        Voltages, V, and currents, A, of the circuit's own elements; None: those of ``points``.
    """

    x: np.ndarray
    slope: np.ndarray
    points: Sequence[Any]
    companion: Companion
    filled: np.ndarray | None = None

    def wave(self) -> np.ndarray:
        """Voltages, V, and currents, A, of the circuit's own elements (k, 2, n)."""
        if self.filled is not None:
            return self.filled
        return self.companion.waves(self.points, self.x)

    def stage(self, k: int) -> Solved:
        """One of them."""
        own = slice(k, k + 1)
        filled = None if self.filled is None else self.filled[own]
        return Solved(self.x[own], self.slope[own], self.points[own], self.companion, filled)


def joined(solved: Sequence[Solved]) -> Solved:
    """Successive stages together."""
    if len(solved) == 1:
        return solved[0]
    x, slope = (np.concatenate([own[k] for own in solved]) for k in range(2))
    waves = [own.filled for own in solved if own.filled is not None]
    filled = np.concatenate(waves) if len(waves) == len(solved) else None
    return Solved(x, slope, [point for own in solved for point in own.points], solved[0].companion, filled)


class Beginning(NamedTuple):
    """Initial data of a step's stages.

    Attributes
    ----------
    x : (q,) float array
        States at the beginning.
    slopes : list of (q,) float arrays
        Their derivatives there and in the stages so far.
    length, share : float
        Length of the step; coefficient of a stage's own derivative, s.
    before : (k, k) float array
        Coefficients of the derivatives at the start and in earlier stages, one row per stage.
    shift : (k, q) float array
        Added to the states of each stage.
    """

    x: np.ndarray
    slopes: list[np.ndarray]
    length: float
    share: float
    before: np.ndarray
    shift: np.ndarray

    def base(self) -> np.ndarray:
        """States (q,) in the next stage but for the share of its own derivative."""
        k = len(self.slopes)
        found = self.x + self.shift[k - 1]
        for coefficient, slope in zip((self.length * self.before[k - 1]).tolist(), self.slopes):
            if coefficient:
                found += coefficient * slope
        return found


class BranchEnds(Exception):
    """The operating points of a step's stages are not on one branch."""


class StagesAtOnce:
    """The stages of a companion circuit, solved by one kernel.

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
        elementary = ready.expansion.circuit
        self._row, self._share = elementary.arrays().value.copy(), math.nan
        self._given = ~np.isnan(ready.circuit.arrays().value)
        gains = companion.series[companion.series >= 0]
        self._matrices = StageMatrices(elementary, laws, smooth, companion.storing, gains)
        self._laws = Pinned(LawArrays(*map(np.array, laws)))
        self.smooth_alone = smooth.elements.size == len(ready.circuit.devices)
        self.outer = len(companion.circuit.node_names)

    @classmethod
    def of(cls, companion: Companion, ready: PreparedExpanded) -> StagesAtOnce | None:
        """The stages of a circuit with smooth devices or controlled sources; None for others and for large circuits."""
        elementary, laws = ready.expansion.circuit.arrays(), law_arrays(ready.expansion.circuit.laws)
        if elementary.n_nodes > MOST or not (ready.smooth or ready.circuit.laws):
            return None
        made = cls(companion, ready, laws, ready.smooth or _NONE_SMOOTH)
        none = np.zeros(made._matrices.diode.size, dtype=bool)
        return made if made._matrices.products(elementary.value, none) <= PRODUCTS else None

    def solve(
        self,
        begin: Beginning,
        places: np.ndarray,
        values: np.ndarray,
        near: OperatingPoint | None,
        follow: bool,
    ) -> Solved | None:
        """Solve the stages from the first unknown one on; stops where an equation is violated, of ideal diodes
        in the first one where changes of all wrong states return to earlier ones.

        Parameters
        ----------
        begin : Beginning
        places, values : (p,) int array, (k, p) float array
            Elements and their values in each unknown stage, as in `Companion.solve`.
        near : OperatingPoint or None
            Operating point of a nearby stage.
        follow : bool
            Whether to refuse a stage whose diodes return to earlier states.

        Raises
        ------
        BranchEnds
        """
        start = None if near is None else self._start(near)
        if start is None:
            return None
        first = len(begin.slopes) - 1
        if begin.share != self._share:
            self._share = begin.share
            np.copyto(self._row[: self._given.size], self.companion.column(begin.share), where=self._given)
        row, count = self._row.copy(), first + len(values)
        row[places] = values[0]
        slopes, out = np.empty((count + 1, begin.x.size)), self._filled(count)
        slopes[: first + 1], conducting, tried = begin.slopes, start[1], set[bytes]()
        while (key := conducting.tobytes()) not in tried:
            tried.add(key)
            made = self._matrices.of(row, conducting)
            done, solved = kernel(solve_stages, made.system.eq.size * len(values), UNKNOWN)(
                made.pinned,
                made.scale(row, begin.share),
                self._laws,
                self.companion.places,
                first,
                begin.length,
                begin.share,
                begin.before,
                begin.shift,
                self.tolerance,
                row,
                places,
                values,
                begin.x,
                slopes,
                self.companion.size,
                start[0],
                *out,
            )
            if not solved:
                break
            current, drop = out[2][done][:, self._matrices.diode]
            wrong = np.where(conducting, current < 0.0, drop > 0.0)
            solved = not wrong.any()
            if solved or done > first:
                break
            conducting = conducting ^ wrong
        else:
            if follow:
                raise BranchEnds
        points = [StagePoint(self, made, out, k) for k in range(first, done + solved)]
        if solved and not points[-1].held_again():
            points.pop()
        if not points:
            return None
        known = slice(first, first + len(points))
        wave, slope = out[6][known] if self.smooth_alone else None, slopes[first + 1 : first + 1 + len(points)]
        return Solved(out[4][known], slope, points, self.companion, wave)

    def _filled(self, count: int) -> tuple[np.ndarray, ...]:
        """Output arrays of the kernel for a number of stages, in the order of its arguments."""
        m, n = self._row.size, self.ready.expansion.circuit.arrays().n_nodes
        own = (KEPT, self.smooth.slope.size), (2, m), (2, n), self.companion.size.shape, (MEASURED,)
        return tuple(np.empty((count, *shape)) for shape in ((m,), *own, (2, len(self.companion.own))))

    def _start(self, near: OperatingPoint) -> tuple[np.ndarray, np.ndarray] | None:
        """The devices' rows (KEPT, s), and conducting diodes (d,), at an operating point."""
        if isinstance(near, StagePoint):
            return near.tangents.device, near.made.conducting
        elementary = near.elementary
        if elementary is None:
            return None
        return self.smooth.start(near, elementary).own, elementary.currents[self._matrices.diode] > 0.0


def found_of(tangents: Tangents) -> Found:
    """The result in the form of `circuitsim.analysis.newton.iterate`."""
    (voltages, low), (currents, drops) = tangents.node, tangents.branch
    return Found(_Potentials(voltages, low, currents, drops), tangents.device, 1)


class _Potentials(NamedTuple):
    """Node voltages and their low-order parts (n_nodes,), V, currents, A, and drops, V (m,)."""

    voltages: np.ndarray
    low: np.ndarray
    currents: np.ndarray
    drops: np.ndarray


class StagePoint:
    """The operating point of a stage; what it does not hold itself is of the ``whole`` point, made on first use.

    Attributes
    ----------
    tangents : Tangents
    made : Made
    certificate : Certificate
    """

    def __init__(self, stages: StagesAtOnce, made: Made, filled: tuple[np.ndarray, ...], place: int) -> None:
        self._stages, self.made, self._filled, self._place = stages, made, filled, place
        if stages.smooth_alone:
            self.voltages = filled[3][place, 0, : stages.outer]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.whole, name)

    @property
    def tangents(self) -> Tangents:
        """Results of the kernel."""
        return Tangents(*(own[self._place] for own in self._filled[:4]))

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate from the kernel's residuals."""
        *measured, farthest, gap = self._filled[5][self._place].tolist()
        made = Certificate.of(measured, self._stages.tolerance)
        return made._replace(relative={**made.relative, "devices": farthest}, device_gap=gap)

    def held_again(self) -> bool:
        """Check the equations that the kernel does not: with loops, and without noise; returns whether they hold."""
        own, (column, _, branch, node) = self._stages, self.tangents
        system, arrays = self.made.system, own.ready.expansion.circuit.arrays()._replace(value=column)
        high, low, inside, n = np.zeros(system.eq.size), np.zeros(system.eq.size), system.roles.inside, node.shape[1]
        high[: n - 1], low[: n - 1], high[system.eq.own[inside]] = node[0, 1:], node[1, 1:], branch[0, inside]
        node[0], node[1], branch[0], branch[1] = branches(system, column, Pair(high, low), self.made.conducting, NOISE)
        self.certificate = proof(found_of(self.tangents), arrays, own.smooth, own.tolerance, own.laws)
        return self.certificate.certified

    @cached_property
    def whole(self) -> OperatingPoint:
        """The complete operating point."""
        ready, certificate, found = self._stages.ready, self.certificate, found_of(self.tangents)
        elementary = point_of(
            self.made.system, ready.expansion.circuit.with_column(self.tangents.column), found.point, certificate
        )
        found = found._replace(point=elementary)
        return assembled(ready.circuit, ready.expansion, self._stages.smooth, found, ready.tolerance, certificate)


class Companion:
    """A circuit with resistances and sources in place of its capacitors and inductors.

    Parameters
    ----------
    circuit : Circuit
    couplings : mapping of (str, str) to float
        Coupling factors of inductors.
    tolerance : float
        Of the certificate of each stage.

    Attributes
    ----------
    own : Circuit
        As given.
    storing : (q,) int array
        Its capacitors and inductors except those of zero value and those ideally coupled to earlier ones.
    capacitor : (q,) bool array
    of_capacitors, of_inductors : int arrays
        Positions where it is true, and where it is false.
    weight : (q,) float array
        F, H; of coupled inductors that of their core currents, which are their states.
    windings : Windings
        Coupled inductors.
    series, beside : (n,) int arrays
        For coupled inductors the voltage source with their current, and the current source at the core; −1: none.
    place : (r,) int array
        States of the independent ones.
    diodes : (d,) int array
        Ideal diodes among all elementary elements, those of piecewise-linear devices included.
    diode_names : (d,) list of str
    base : (q,) int array
        Sources of the states at the start of a stage.
    charged, charged_elements : (c,) int arrays
        Smooth devices with a charge, C, which are the last c of all states; their elements.
    size : (q + c,) float array
        Largest voltage, current and charge so far: the scale of rounding.
    places : StatePlaces
        Pinned.
    large : bool
        Whether stages correct the node voltages of a nearby one.
    at_once : StagesAtOnce or None
        Solves several stages at once, where one kernel can.
    follows : bool
        Whether a stage is much cheaper with a nearby one, even across an event.
    """

    def __init__(self, circuit: Circuit, couplings: Mapping[tuple[str, str], float], tolerance: float) -> None:
        self.own, self.tolerance = circuit, tolerance
        kind, value = circuit.arrays().kind, circuit.arrays().value
        stores = (kind == CAPACITOR) | (kind == INDUCTOR)
        if (value[stores] < 0.0).any():
            wrong = circuit.names[int(np.flatnonzero(stores & (value < 0.0))[0])]
            raise UsageError(f"{wrong} is negative: its energy is not bounded below")
        self.elements, self.windings, size = stores & (value > 0.0), windings_of(circuit, couplings), value.copy()
        size[self.windings.inductors] = self.windings.inductance
        self.storing = np.flatnonzero(stores & (size > 0.0))
        self.capacitor, self.weight = kind[self.storing] == CAPACITOR, size[self.storing]
        self.of_capacitors, self.of_inductors = np.flatnonzero(self.capacitor), np.flatnonzero(~self.capacitor)
        self.circuit = self._made()
        self._column = self.circuit.arrays().value.copy()
        self._length = 0.0
        self._prepared = _for_stages(prepared_as_it_is(self.circuit, tolerance=tolerance))
        own = getattr(self._prepared, "inner", self._prepared)
        self.large = isinstance(own, LargeStages) and own.suits
        expansion = getattr(self._prepared, "expansion", None)
        inner = self.circuit if expansion is None else expansion.circuit
        self.diodes = np.flatnonzero(inner.arrays().kind == DIODE)
        self.diode_names = [inner.names[k] for k in self.diodes.tolist()]
        smooth = getattr(self._prepared, "smooth", None) or _NONE_SMOOTH
        self._rows, self._devices = smooth.rows, smooth.elements
        self.charged = np.flatnonzero(np.isin(self._devices, [*charged_junctions(circuit)]))
        self.charged_elements = self._devices[self.charged]
        self.size = np.zeros(self.storing.size + self.charged.size)
        own, coupled, ready = (self.base, self.storing, self.capacitor, self.charged), self.windings, self._prepared
        places = *own, self._devices, coupled.inductors, coupled.inverse, self.series[: coupled.independent]
        self.places = Pinned(StatePlaces(*map(np.array, places)))
        self.at_once = StagesAtOnce.of(self, ready) if isinstance(ready, PreparedExpanded) else None
        self.follows = self.large or self.at_once is not None or getattr(self._prepared, "controlled", None) is not None

    def _made(self) -> Circuit:
        circuit, coupled, (kind, first, second, value, n) = self.own, self.windings, self.own.arrays()
        kind, end, value = kind.copy(), second.copy(), value.copy()
        still = ((kind == CAPACITOR) | (kind == INDUCTOR)) & ~self.elements
        kind[still], value[still] = np.where(kind[still] == CAPACITOR, CURRENT, RESISTOR), 0.0
        kind[self.storing], value[self.storing] = RESISTOR, 1.0
        share, (cores, others) = np.triu(coupled.turns, 1), np.split(coupled.inductors, [coupled.independent])
        kind[others], value[others] = BY_CURRENT_H, 1.0
        self.place = np.searchsorted(self.storing, cores)
        # Sources of the states, and of transformers: in series, from an inner node, and in parallel.
        driven, fed = share[:, : cores.size].any(axis=0), share.any(axis=1)
        series, beside = cores[driven], coupled.inductors[fed]
        inner = np.concatenate([self.storing[self.of_capacitors], series])
        end[inner] = n + np.arange(inner.size)
        of, sizes = np.concatenate([self.storing, series, beside]), (series.size, beside.size)
        within = np.concatenate([self.capacitor, np.repeat([True, False], sizes)])
        places = kind.size + np.arange(of.size)
        self.base, in_series, in_parallel = np.split(places, [self.storing.size, self.storing.size + series.size])
        self.series, self.beside = np.full((2, coupled.inductors.size), -1)
        self.series[: cores.size][driven], self.series[cores.size :] = in_series, others
        self.beside[fed] = in_parallel
        added = np.where(self.capacitor, VOLTAGE, CURRENT), np.repeat([BY_CURRENT_H, BY_CURRENT_F], sizes)
        numbers = np.repeat([0.0, 1.0], [self.storing.size, sum(sizes)])
        kind, first = np.concatenate([kind, *added]), np.append(first, np.where(within, end[of], first[of]))
        end, value = np.append(end, np.where(within, second[of], end[of])), np.append(value, numbers)
        codes = zip("bqqd", (kind, first, end, value))
        columns: tuple[Any, ...] = tuple(array(code, own.tolist()) for code, own in codes)
        names = _primed(circuit.names, [circuit.names[k] for k in of.tolist()])
        nodes = _primed(circuit.node_names, [circuit.names[k] for k in inner.tolist()])
        laws = {**circuit.laws, **_transformers(coupled, self.series, self.beside)}
        return Circuit.from_columns(circuit.title, columns, names, nodes, devices=circuit.devices, laws=laws)

    def solve(self, begin: Beginning, places: np.ndarray, values: np.ndarray, near: OperatingPoint | None) -> Solved:
        """Solve the stage after the known ones.

        Parameters
        ----------
        begin : Beginning
        places, values : (p,) int array, (p,) float array
            Elements and their values, Ω, V, A.
        near : OperatingPoint, optional
            Operating point of a nearby stage.
        """
        column, base, n = self.column(begin.share), begin.base(), self.storing.size
        column[places] = values
        # A base that is rounding would become the scale of its own loop or node. With a nearby stage all scales are
        # known, and far from all sources, where states decay by decades from node to node, it decides diode states.
        rounded = base if self.large else np.where(np.abs(base) <= ROUNDING * self.size, 0.0, base)
        column[self.base], base[n:] = rounded[:n], rounded[n:]
        if self.charged.size:
            self._rows[self.charged, RATE], self._rows[self.charged, BASE] = 1.0 / begin.share, base[n:]
        ready = self._prepared
        solved = (ready.solve_next if isinstance(ready, PreparedExpanded) else ready.solve)(column, near)
        change = np.append(self.state(solved), self.charges(solved.junctions) - base[n:])
        x = base + change
        return Solved(x[None], change[None] / begin.share, [solved], self)

    def change(self, begin: Beginning, places: np.ndarray, values: np.ndarray, at: OperatingPoint) -> np.ndarray | None:
        """The derivatives (q,) in the stage after the known ones of the circuit linearised at an operating point, where
        ``begin`` has changes of states and derivatives; None where `LargeStages` has none.

        Parameters
        ----------
        places, values, at
            As in `solve`.
        """
        if not isinstance(self._prepared, LargeStages):
            return None
        column, sources = self.column(begin.share), np.zeros(self._column.size)
        column[places], sources[self.base] = values, begin.base()
        found = self._prepared.change(column, at, sources)
        return None if found is None else self.state(found) / begin.share

    def column(self, length: float) -> np.ndarray:
        """Values of all elements in a stage with zero base and the circuit's own sources; see `solve`."""
        if length != self._length:
            self._length = length
            self._column[self.storing] = np.where(self.capacitor, length / self.weight, self.weight / length)
            self._column[self.series[self.series >= 0]] = 1.0 / length
        return self._column.copy()

    def diode_waves(self, point: OperatingPoint) -> tuple[np.ndarray, np.ndarray]:
        """Voltages and currents (d,) of the ideal diodes in a stage, V, A."""
        if isinstance(point, StagePoint):
            return point.tangents.branch[1, self.diodes], point.tangents.branch[0, self.diodes]
        inner = point.elementary or point
        return inner.drops[self.diodes], inner.currents[self.diodes]

    def charges(self, volts: Mapping[int, float] | np.ndarray) -> np.ndarray:
        """Charges (c,) of junctions, C, from voltages by element, V."""
        found = np.empty(self.charged.size)
        for k, (d, element) in enumerate(zip(self.charged.tolist(), self.charged_elements.tolist())):
            row, u = self._rows[d].copy(), float(volts[element])
            row[RATE] = 0.0
            found[k] = charge(row, u, *junction(row, u))[0]
        return found

    def see(self, volts: float, amperes: float) -> None:
        """Update the largest voltage and current, V, A."""
        # Only rows of devices with a charge are sure to have these entries.
        of_charges = [self._rows[d, CJO] * volts + self._rows[d, TT] * amperes for d in self.charged.tolist()]
        self.size = np.append(np.where(self.capacitor, volts, amperes), of_charges)

    def state(self, point: OperatingPoint | Change) -> np.ndarray:
        """δ (q,) of a stage, V, A."""
        return np.where(self.capacitor, point.drops[self.storing], point.currents[self.storing])

    def waves(self, points: Sequence[OperatingPoint], x: np.ndarray) -> np.ndarray:
        """Branch voltages and currents (k, 2, n) of the circuit's own elements in stages with states x (k, q), V, A."""
        made = np.empty((len(points), 2, len(self.own)))
        for wave, point, state in zip(made, points, x):
            kernel(put_waves, wave.size)(self.places, point.drops, point.currents, state, wave)
        return made

    def states(self, level: np.ndarray) -> np.ndarray:
        """States (q,) for these capacitor voltages and inductor currents (m,), V, A."""
        x = level[self.storing]
        x[self.place] = (self.windings.turns @ level[self.windings.inductors])[: self.place.size]
        return x

    def starting(self, level: np.ndarray) -> np.ndarray:
        """Initial states (q + c,) from these values; see `circuitsim.time_domain.beginning.Start`."""
        return np.append(self.states(level), self.charges(level))

    def energy(self, x: np.ndarray) -> float:
        """½ Σ K x², J, for states of capacitors and inductors (or jumps of these), (q + c,)."""
        return 0.5 * float((self.weight * x[: self.storing.size] ** 2).sum())


def _primed(own: Sequence[str], of: Sequence[str]) -> list[str]:
    """Names, followed by new ones: others with primes."""
    found, taken = [str(name) for name in own], {str(name).lower() for name in own}
    for name in of:
        name = f"{name}'"
        while name.lower() in taken:
            name += "'"
        taken.add(name.lower())
        found.append(name)
    return found


def _transformers(coupled: Windings, series: np.ndarray, beside: np.ndarray) -> dict[int, Law]:
    """Characteristics of the sources that form ideal transformers; the gain of the voltages is 1 / g."""
    laws, inductors = dict[int, Law](), coupled.inductors.tolist()
    share = np.triu(coupled.turns, 1)
    for p, (voltage, current) in enumerate(zip(series.tolist(), beside.tolist())):
        before, after = np.flatnonzero(share[:, p]).tolist(), np.flatnonzero(share[p]).tolist()
        if before:
            volts = [CurrentControl(float(share[j, p] * coupled.inductance[j]), inductors[j]) for j in before]
            laws[voltage] = Law(Quantity.VOLTAGE, 0.0, (), tuple(volts))
        if after:
            laws[current] = Law(
                Quantity.CURRENT, 0.0, (), tuple(CurrentControl(-float(share[p, j]), int(series[j])) for j in after)
            )
    return laws


def _for_stages(
    circuit: Unswitched,
) -> Unswitched:
    """The prepared circuit; for a large one its stages, for one with controlled sources any operating point where
    others differ in nothing that dissipates."""
    inner = getattr(circuit, "inner", circuit)
    stages: LargeStages | PreparedControlled
    if isinstance(inner, Prepared) and inner.structure.n > LARGE:
        stages = LargeStages(inner.circuit, inner.solver, inner.tolerance, inner.small)
    elif inner.circuit.laws:
        from circuitsim.analysis.controlled import PreparedControlled

        assert isinstance(inner, PreparedControlled)
        stages = replace(inner, any_one=True)
    else:
        return circuit
    if isinstance(circuit, PreparedExpanded):
        return replace(circuit, inner=stages)
    if isinstance(stages, LargeStages):
        return stages
    return PreparedExpanded(inner.circuit, expanded(inner.circuit), stages, "auto", stages.tolerance, None)


CONDUCTS = 1e-9
"""Voltage of a diode, relative to the largest, up to which it may conduct: below the accuracy of any run."""


def least_norm(circuit: Circuit, voltage: np.ndarray, current: np.ndarray) -> None:
    """Replace currents in loops without a resistance by those of least norm in which no diode carries backwards.

    Parameters
    ----------
    circuit : Circuit
    voltage, current : (n, m) float arrays
        Branch voltages, V, and currents, A, at n times; currents are replaced.
    """
    kind, _, _, value, _ = circuit.arrays()
    wires = np.flatnonzero((kind == DIODE) | (kind == VOLTAGE) | ((kind == RESISTOR) & (value == 0.0)))
    wires = WireLoops.of(circuit.arrays(), wires).elements
    diode = kind[wires] == DIODE
    if not diode.any():
        return
    conducts = ~diode | (np.abs(voltage[:, wires]) <= CONDUCTS * np.abs(voltage).max(initial=0.0))
    patterns, which = np.unique(conducts, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        loops = WireLoops.of(circuit.arrays(), wires[pattern])
        if loops.one_way.any():
            for t in np.flatnonzero(which.ravel() == k).tolist():
                current[t, loops.elements] = loops.least_norm(current[t, loops.elements])
