"""AC analysis: one sparse complex system per frequency, with an error estimate at each node; poles.

The poles are the natural frequencies s at which A₀ + s A₁ is singular. With A₁ = P D Pᵀ (one column of P per
energy-storing element) and a shift σ at which A₀ + σ A₁ is regular,

    s = σ − 1/μ,   μ the eigenvalues of D Pᵀ (A₀ + σ A₁)⁻¹ P        (k × k)

and μ = 0 where the circuit has no state: capacitors in loops with voltage sources, inductors in cuts with current
sources, ideally coupled inductors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.probes import Formula, Probe, drawn_probes, parse_probes
from circuitsim.analysis.solve import at_frequencies
from circuitsim.arguments import number, numbers, phasor, table
from circuitsim.circuit import Circuit
from circuitsim.circuit.couplings import UNCOUPLED
from circuitsim.circuit.elements import CAPACITOR, CURRENT, INDUCTOR, RESISTOR, VOLTAGE
from circuitsim.circuit.source import analysis
from circuitsim.errors import ConvergenceError, UnboundedError, UsageError
from circuitsim.formats import Result, Table
from circuitsim.netlist.deck import Deck
from circuitsim.program.components import component_labels
from circuitsim.program.precise import Pairs
from circuitsim.small_signal.deck import amplitudes, asked
from circuitsim.small_signal.equations import (
    EXACT,
    SmallSignalEquations,
    Solution,
    linearized,
    phasors,
    small_signal_equations,
    solution_at,
)
from circuitsim.units import format_quantity

TOLERANCE = 1e-9

SHARE = 1e-6
"""Minimum scale in residuals, relative to the largest voltage or current."""

SAFETY = 10.0
"""Safety factor of error estimates, which are corrections with an error of at most `CONTRACTION`, plus accumulated
rounding of the residuals."""

FLOOR = 2.0**-80
"""Fraction of the largest voltage or current below which no digit is guaranteed: the value may be rounding of 0. Of the
2⁻¹⁰⁶ of pairs of doubles this leaves 26 bits for the condition of the equations."""

TURN = Pairs(np.array(6.283185307179586), np.array(2.4492935982947064e-16))
"""2π to 32 digits: the nearest double, and the double nearest to its error."""

LARGEST = 200_000_000
"""Maximum number of complex numbers of a result."""

CURVES = 8
"""Maximum number of quantities in a plot for which none are named."""


class _Answer(NamedTuple):
    """Potentials (n_nodes,) and their low-order parts, V; currents (m,) of elementary elements, A; the largest residual
    and the largest error."""

    potentials: np.ndarray
    low: np.ndarray
    currents: np.ndarray
    residual: float
    error: float


@dataclass(frozen=True, eq=False, repr=False)
class AcResult(Result):
    """Complex amplitudes over frequency.

    Attributes
    ----------
    circuit : Circuit
    frequencies : (f,) float array
        Hz.
    voltages : (f, n_nodes) complex array
        Node voltages, V.
    currents : (f, m) complex array
        Branch currents in SPICE signs, A.
    residuals : (f,) float array
        Worst equation of each frequency: its residual relative to the sum of its terms' magnitudes, in which voltages
        and currents count with at least 1e-6 of the largest.
    errors : (f,) float array
        Largest error of a node voltage or a current of each frequency, relative to the largest of the voltages across,
        or of the currents in, the elements that meet there.
    kinks : tuple of str
        Diodes without current and voltage at the operating point: the result is that of one of their two states.
    low : (f, n_nodes) complex array
        What ``voltages`` miss by rounding, V: `voltage` between two nodes has all digits.
    sources : mapping of str to complex
        Amplitudes of sources, V or A.
    couplings : mapping of (str, str) to float
        Of inductors.
    """

    circuit: Circuit
    frequencies: np.ndarray
    voltages: np.ndarray
    currents: np.ndarray
    residuals: np.ndarray
    errors: np.ndarray
    kinks: tuple[str, ...]
    low: np.ndarray
    sources: Mapping[str, complex]
    couplings: Mapping[tuple[str, str], float]

    def __getitem__(self, node: str) -> np.ndarray:
        """Voltages of a node (f,), V."""
        return self.voltages[:, self.circuit.node_index(node)]

    def voltage(self, first: str, second: str = "0") -> np.ndarray:
        """Voltages between two nodes, with all digits where they are small against both node voltages.

        Parameters
        ----------
        first, second : str
            The nodes; ``second`` is ground by default.

        Returns
        -------
        (f,) complex array
            V.
        """
        a, b = self.circuit.node_index(first), self.circuit.node_index(second)
        return (self.voltages[:, a] - self.voltages[:, b]) + (self.low[:, a] - self.low[:, b])

    def current(self, name: str) -> np.ndarray:
        """Currents of an element (f,), A."""
        return self.currents[:, self.circuit.element_index(name)]

    def __len__(self) -> int:
        return self.frequencies.size

    def tables(self) -> dict[str, Table]:
        """``response``: frequency, and magnitude, decibels and phase in degrees of each node voltage."""
        return {"response": response_table(self, self._probes())}

    def _probes(self, columns: str = "") -> list[Probe | Formula]:
        words = columns or " ".join(f"v({node})" for node in self.circuit.node_names[1:])
        return list(parse_probes(words, self.circuit))

    def to_dict(self) -> dict[str, Any]:
        """The responses as plain values, with the largest errors: the JSON object of ``circuitsim ac``."""
        return super().to_dict() | self.checks()

    def checks(self) -> dict[str, Any]:
        """The largest residual and error as plain values."""
        return {"worst_residual": float(self.residuals.max()), "worst_error": float(self.errors.max())}

    def _figure(self, columns: str = "") -> Any:
        """A Bode plot, by default of the first `CURVES` node voltages."""
        from circuitsim.plotting.charts import plot_bode

        probes = self._probes(columns) if columns else drawn_probes(self.circuit, "v")
        heading = self.circuit.title
        if not columns and len(probes) > CURVES:
            probes, heading = probes[:CURVES], f"First {CURVES} node voltages: {heading}"
        return plot_bode(heading, response_table(self, probes))

    def _heading(self) -> tuple[str, str]:
        first, last = (format_quantity(float(hertz), "Hz", 4) for hertz in self.frequencies[[0, -1]])
        return self.circuit.title, f"{first} to {last}, {len(self)} frequencies, certified"

    def _proof(self) -> str:
        worst = f"largest error {self.errors.max():.1e} and largest residual {self.residuals.max():.1e}"
        return f"Certified: {worst}, relative to the local scale"


@analysis(frequencies=numbers(number(0)), sources=table(phasor, "{'V1': 1.0}"))
def ac(
    circuit: Circuit | Deck,
    frequencies: Sequence[float] | np.ndarray | None = None,
    sources: Mapping[str, complex] | None = None,
    tolerance: float = TOLERANCE,
    progress: Callable[[int, int], None] | None = None,
    couplings: Mapping[tuple[str, str], float] = UNCOUPLED,
) -> AcResult:
    """Small-signal responses about the operating point.

    Parameters
    ----------
    circuit : Circuit or Deck
        Ideal diodes keep their state; smooth devices are linearised at the operating point.
    frequencies : sequence of float, optional
        Hz, not negative; those of the deck's ``.ac`` card, else 20 a decade from 1 Hz to 1 MHz.
    sources : mapping of str to complex, optional
        Amplitudes by source, V or A, all others zero; those of ``AC`` on the sources of a deck.
    tolerance : float
        Tolerance of the error of each node voltage and each current, relative to the largest voltage across, or
        current in, an element that meets there.
    progress : callable, optional
        Called with the frequencies that are done, and their number.
    couplings : mapping of (str, str) to float, optional
        Coupling factors of pairs of inductors, -1 to 1; ±1 is ideal.

    Raises
    ------
    UsageError
        Amplitudes for what is not a source; frequencies that are negative or not finite; couplings that no inductors
        have; a circuit with amplifiers.
    InfeasibleError, UnboundedError
        No operating point; a net current into a part without a path to ground.
    ConvergenceError
        A frequency at which the equations have no solution (a resonance without resistance, a part that nothing ties to
        the rest), or none within the tolerance.
    """
    hertz = asked(circuit) if frequencies is None else np.asarray(frequencies)
    if hertz.size * (len(circuit) + len(circuit.node_names)) > LARGEST:
        raise UsageError(f"{hertz.size:,} frequencies of {len(circuit):,} elements exceed the memory limit: take fewer")
    given = amplitudes(circuit) if sources is None else sources
    circuit, couplings = at_frequencies(circuit, couplings)
    system = small_signal_equations(linearized(circuit), couplings)
    own = _amplitudes(circuit, system, given)
    voltages = np.zeros((hertz.size, len(circuit.node_names)), dtype=complex)
    currents = np.zeros((hertz.size, len(circuit)), dtype=complex)
    low = np.zeros_like(voltages)
    residuals, errors = np.zeros(hertz.size), np.zeros(hertz.size)
    for k, f in enumerate(hertz.tolist()):
        found = _certified(system, own, f, tolerance)
        _check_parts(system, found.currents, f, tolerance)
        nodes = slice(voltages.shape[1])
        voltages[k], low[k] = found.potentials[nodes], found.low[nodes]
        currents[k] = system.linear.expansion.entering(found.currents, len(circuit))
        residuals[k], errors[k] = found.residual, found.error
        if progress is not None:
            progress(k + 1, hertz.size)
    return AcResult(circuit, hertz, voltages, currents, residuals, errors, system.linear.kinks, low, given, couplings)


def _amplitudes(circuit: Circuit, system: SmallSignalEquations, sources: Mapping[str, complex]) -> np.ndarray:
    """Amplitudes of all elementary elements (m,), V or A."""
    if not sources:
        raise UsageError("no source has an amplitude: name one, for instance {'V1': 1.0}")
    found = np.zeros(system.linear.arrays.kind.size, dtype=complex)
    kinds = circuit.arrays().kind
    for name, amplitude in sources.items():
        k = circuit.element_index(name)
        if kinds[k] not in (VOLTAGE, CURRENT):
            raise UsageError(f"{circuit.names[k]} is not an independent source: amplitudes belong to V and I elements")
        found[k] = amplitude
    return found


def _certified(system: SmallSignalEquations, amplitudes: np.ndarray, hertz: float, tolerance: float) -> _Answer:
    """Voltages and currents at one frequency; where doubles do not suffice, from rational numbers.

    Raises
    ------
    ConvergenceError
        The equations are singular, or an error exceeds the tolerance.
    """
    turn = TURN.times(Pairs.of(np.array(hertz)))
    try:
        try:
            return _answer(system, solution_at(system, turn=turn), amplitudes, hertz, tolerance)
        except ConvergenceError:
            if system.eq.size > EXACT:
                raise
            return _answer(system, Solution(system, turn=turn, exact=True), amplitudes, hertz, tolerance)
    except ArithmeticError:
        raise ConvergenceError(
            f"at {hertz:g} Hz the small-signal equations have no unique solution: a resonance without resistance, an "
            "unconnected part (blocking diodes are open), or ideally coupled windings in parallel; add a resistance"
        ) from None


def _answer(
    system: SmallSignalEquations,
    solution: Solution,
    amplitudes: np.ndarray,
    hertz: float,
    tolerance: float,
) -> _Answer:
    """Voltages and currents with errors within the tolerance, except those below `FLOOR` where there is no other way.

    See `_certified` for errors.
    """
    s, (kind, first, second, _, n) = 2j * np.pi * hertz, system.linear.arrays
    b = system.right_side(amplitudes)
    pair, errors = solution.of(b)
    x = phasors(pair[0])
    potentials, low = phasors(system.at_nodes(pair))
    drops = phasors(system.drops(pair).sum(axis=0))
    currents = system.currents(x, drops, s) + np.where(kind == CURRENT, amplitudes, 0.0)
    wrong = np.abs(system.at_nodes(errors)).max(axis=0)
    off = np.abs(system.currents(errors, system.drops(errors), s)).max(axis=0)
    # The scales at a node are the voltages and currents of its elements.
    ends, at_node, through = np.stack([first, second]), np.abs(potentials), np.zeros(n)
    for nodes in ends:
        np.maximum.at(at_node, nodes, np.abs(drops))
        np.maximum.at(through, nodes, np.abs(currents))
    least, least_current = np.zeros(n), np.zeros(kind.size)
    if solution.exact or x.size > EXACT:
        scale = solution.scale[: x.size]
        floor = FLOOR * scale * (np.abs(x) / scale).max(initial=0.0)
        least = system.at_nodes(floor)
        least_current = np.abs(system.currents(floor, least[ends].sum(axis=0), s))
    worst = 0.0
    for value, error, meets, below in (
        (potentials, wrong, at_node, least),
        (currents, off, through[ends].max(axis=0), least_current),
    ):
        share = np.divide(SAFETY * error, meets, out=np.where(error > 0.0, np.inf, 0.0), where=meets > 0.0)
        share[(share > tolerance) & (SAFETY * error <= below)] = 0.0
        value[np.abs(value) <= SAFETY * error] = 0.0  # within the error
        worst = max(worst, float(share.max(initial=0.0)))
        if worst > tolerance:
            inner, k = system.linear.expansion.circuit, int(share.argmax())
            name = f"v({inner.node_names[k]})" if value is potentials else f"i({inner.names[k]})"
            raise ConvergenceError(
                f"at {hertz:g} Hz {name} is off by {worst:.1e} of its scale (tolerance {tolerance:.0e}): the equations "
                "are nearly singular; add a resistance to a lossless resonance or to ideally coupled windings"
            )
    return _Answer(potentials, low, currents, _residual(system, s, x, b), worst)


def _residual(system: SmallSignalEquations, s: complex, x: np.ndarray, b: np.ndarray) -> float:
    """The largest row-wise residual (the componentwise backward error of Oettli & Prager, 1964).

    Voltages and currents count with at least `SHARE` of the largest of their kind.
    """
    matrix, sizes, nodes = system.matrix(s), np.abs(x), system.linear.arrays.n_nodes - 1
    for part in (sizes[:nodes], sizes[nodes:]):
        np.maximum(part, SHARE * part.max(initial=0.0), out=part)
    scale, residual = abs(matrix) @ sizes + np.abs(b), np.abs(b - matrix @ x)
    return float(np.divide(residual, scale, out=np.zeros(scale.size), where=scale > 0.0).max(initial=0.0))


def _check_parts(system: SmallSignalEquations, inner: np.ndarray, hertz: float, tolerance: float) -> None:
    """Check the current into each part tied to ground by current sources only: its reference node has no equation."""
    arrays = system.linear.arrays
    for node in system.eq.pinned.tolist():
        flow = np.concatenate([inner[arrays.first == node], -inner[arrays.second == node]])
        if abs(flow.sum()) > tolerance * np.abs(flow).sum():
            name = system.linear.expansion.circuit.node_names[node]
            raise UnboundedError(
                f"at {hertz:g} Hz current sources drive a net current into node {name}, which has no path to ground "
                "(blocking diodes are open): add a resistance",
                [],
                [name],
            )


def response(result: AcResult, probe: Probe | Formula) -> np.ndarray:
    """The complex amplitudes of a quantity (f,), V or A.

    Raises
    ------
    UsageError
        An expression, a power or a value: these have no amplitude.
    """
    if isinstance(probe, Formula) or probe.kind not in ("v", "i"):
        raise UsageError(f"{probe} has no amplitude: name voltages and currents, v(a), v(a,b) or i(R1)")
    if probe.kind == "i":
        return result.current(probe.first)
    return result[probe.first] if probe.second is None else result.voltage(probe.first, probe.second)


def response_table(result: AcResult, probes: Sequence[Probe | Formula], relative_to: Probe | None = None) -> Table:
    """Magnitude, decibels and phase of quantities over frequency.

    Parameters
    ----------
    result : AcResult
    probes : sequence of Probe
    relative_to : Probe, optional
        What they are divided by: transfer functions.

    Notes
    -----
    The phase, in degrees, is unwrapped, starting between −180° and 180°.
    """
    (*first, frequencies), *others = phasor_columns(result, probes, relative_to)
    header, units, columns = [first[0]], [first[1]], [frequencies]
    for name, unit, found in others:
        header += [name, f"{name} dB", f"{name} phase"]
        units += [unit, "dB", "°"]
        with np.errstate(divide="ignore"):
            columns += [np.abs(found), 20.0 * np.log10(np.abs(found)), np.degrees(np.unwrap(np.angle(found)))]
    return Table(tuple(header), tuple(units), tuple(columns))


def phasor_columns(
    result: AcResult, probes: Sequence[Probe | Formula], relative_to: Probe | None = None
) -> list[tuple[str, str, np.ndarray]]:
    """Names, units and complex amplitudes of quantities over frequency, the frequencies first; see `response_table`."""
    found: list[tuple[str, str, np.ndarray]] = [("frequency", "Hz", result.frequencies)]
    below = None if relative_to is None else response(result, relative_to)
    for probe in probes:
        own = response(result, probe)
        if below is None:
            found.append((str(probe), probe.unit, own))
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                found.append((f"{probe}/{relative_to}", "", own / below))
    return found


STATES = 3000
"""Maximum number of energy-storing elements."""

BACKWARD = 2.0**-50
"""Rounding error of an eigenvalue problem, relative to its norm and order: four units of 2⁻⁵² for the QR algorithm
(Wilkinson, 1965) and the entries."""

SHIFTS, FARTHEST = 12, 1e-40
"""Maximum number of shifts down and up, and the range of each way, 40 decades."""

WITHIN = 2.0**-80
"""Relative error of a pole at a shift where the equations are singular: of the 2⁻¹⁰⁶ of pairs of doubles, 26 bits are
left for the condition of the equations."""

SINGULAR = (
    "the small-signal equations are singular at every frequency: an unconnected part, or ideally coupled windings in "
    "parallel"
)


@dataclass(frozen=True, eq=False, repr=False)
class Poles(Result):
    """Natural frequencies.

    Attributes
    ----------
    values : (k,) complex array
        rad/s, in ascending magnitude; pairs of conjugates in order of imaginary part. Real parts within their bound of
        the imaginary axis are 0.
    kinks : tuple of str
        Diodes without current and voltage at the operating point.
    bounds : (k,) float array
        Error bound of each real part, 1/s.
    title : str
        Of the circuit.
    """

    PICTURE = "plot_poles"

    values: np.ndarray
    kinks: tuple[str, ...]
    bounds: np.ndarray
    title: str = ""

    @property
    def hertz(self) -> np.ndarray:
        """|s| / 2π (k,), Hz."""
        return np.abs(self.values) / (2.0 * np.pi)

    @property
    def damping(self) -> np.ndarray:
        """−Re s / |s| (k,): 1 for decays without oscillation, 0 for undamped oscillations, negative for growth."""
        size = np.abs(self.values)
        return np.divide(-self.values.real, size, out=np.zeros(size.size), where=size > 0.0)

    @property
    def stability(self) -> str:
        """``"stable"``, ``"marginal"`` or ``"unstable"``.

        Stable: every small signal decays. Unstable: one grows exponentially. Marginal: neither, but a pole lies on the
        imaginary axis, as far as `bounds` tell (`rounding`).
        """
        real = self.values.real
        return "unstable" if (real > 0.0).any() else "marginal" if (real == 0.0).any() else "stable"

    @property
    def stable(self) -> bool:
        """Whether every small signal decays: all poles are left of the imaginary axis."""
        return self.stability == "stable"

    @property
    def rounding(self) -> float:
        """The largest bound of a pole on the imaginary axis, 1/s.

        It is 0 where topology places all of them there, and where none lies there.
        """
        return float(self.bounds[self.values.real == 0.0].max(initial=0.0))

    def tables(self) -> dict[str, Table]:
        """``poles``: real and imaginary part, frequency and damping."""
        columns = self.values.real, self.values.imag, self.hertz, self.damping
        return {"poles": Table(("real", "imaginary", "frequency", "damping"), ("1/s", "1/s", "Hz", ""), columns)}

    def to_dict(self) -> dict[str, Any]:
        """The poles as plain values, and their stability: the JSON object of ``circuitsim ac --poles``."""
        stable = {"stable": self.stable, "stability": self.stability, "rounding": self.rounding}
        return super().to_dict() | stable

    def _heading(self) -> tuple[str, str]:
        return self.title, f"{self.values.size} pole{'s' * (self.values.size != 1)}, {self.stability}"

    def _proof(self) -> str:
        within = f"; real parts are known to {self.rounding:.1e} 1/s" if self.rounding else ""
        return self.stability + within


@analysis()
def poles(circuit: Circuit | Deck, couplings: Mapping[tuple[str, str], float] = UNCOUPLED) -> Poles:
    """The poles of the small-signal circuit at the operating point.

    Parameters
    ----------
    circuit : Circuit or Deck
    couplings : mapping of (str, str) to float, optional
        Coupling factors of pairs of inductors, -1 to 1; ±1 is ideal.

    Raises
    ------
    UsageError
        More than `STATES` capacitors and inductors; couplings that no inductors have; a circuit with amplifiers.
    InfeasibleError, UnboundedError
        No operating point.
    ConvergenceError
        Equations that are singular at every s.
    """
    circuit, couplings = at_frequencies(circuit, couplings)
    system = small_signal_equations(linearized(circuit), couplings, factored=True)
    count = system.storages.size
    if count > STATES:
        raise UsageError(f"poles are computed for up to {STATES:,} capacitors and inductors, not {count:,}")
    live = np.flatnonzero(system.storages != 0.0)
    if not live.size:
        _solution(system, 1.0 + 0j)
        return Poles(np.zeros(0, dtype=complex), system.linear.kinks, np.zeros(0), circuit.title)
    with np.errstate(over="ignore"):  # poles up to the range of doubles
        found, bounds = _Spectrum(system, live).poles()
    order = np.lexsort((found.imag, np.round(np.log(np.abs(found) + 1e-300), 9)))
    return Poles(found[order], system.linear.kinks, bounds[order], circuit.title)


class _Spectrum:
    """All poles with error bounds, from several shifts.

    The eigenvalues at a shift σ resolve the poles with magnitudes near σ. Faster and slower ones are computed at shifts
    of their own magnitude, poles near the imaginary axis at a shift on it, which avoids cancellation in the real part.
    """

    def __init__(self, system: SmallSignalEquations, live: np.ndarray) -> None:
        self.system, self.live, self.centre = system, live, _shift(system, live)
        arrays = system.linear.arrays
        self.states, self.zeros = _states(system)
        self.passive = not system.linear.laws and not (arrays.value[arrays.kind == RESISTOR] < 0.0).any()
        self.passive = self.passive and not (arrays.value[system.elements] < 0.0).any()
        self.lossless = self.passive and not (arrays.value[arrays.kind == RESISTOR] > 0.0).any()

    def poles(self) -> tuple[np.ndarray, np.ndarray]:
        """Values (k,) and bounds (k,)."""
        first = self._near(complex(self.centre))
        (low, slow), (high, fast) = (first.beyond(self.centre, down) for down in (True, False))
        half = first.between(low, high)
        for down, edge, left in ((True, low, slow), (False, high, fast)):
            view, shift, least = first, self.centre, self.zeros if down else 0
            for _ in range(SHIFTS):
                shift = 0.1 * min(edge, shift) if down else 10.0 * max(edge, shift)
                if left <= least or not FARTHEST <= shift / self.centre <= 1.0 / FARTHEST:
                    break
                try:
                    found = self._near(complex(shift))
                except ConvergenceError:  # singular to 32 digits
                    break
                new, still = found.beyond(shift, down)
                more = found.between(*sorted((new, edge)))
                if still + _count(more) != left:  # this shift does not separate them
                    break
                view, half, edge, left = found, half + more, new, still
            more = view.between(0.0, edge) if down else view.between(edge, np.inf)
            left = left - _count(more) if down else 0
            half += [*more, *[(0j, 0.0 if left == self.zeros else edge)] * left]
        values, bounds = np.array([s for s, _ in half], complex), np.array([bound for _, bound in half])
        for k in np.flatnonzero((np.abs(values.real) <= bounds) & (values != 0.0)).tolist():
            values[k], bounds[k] = self._at_axis(values[k], values, bounds)
        over = np.abs(values.real) <= bounds
        if self.lossless:  # energy is conserved
            return np.append(1j * values.imag, -1j * values.imag[values.imag > 0.0]), np.zeros(_count(half))
        if self.passive:  # energy never increases
            over |= values.real > 0.0
            bounds = np.maximum(bounds, np.where(over, np.abs(values.real), 0.0))
        values[over] = 1j * values[over].imag
        turned = values.imag > 0.0
        return np.append(values, values[turned].conj()), np.append(bounds, bounds[turned])

    def _at_axis(self, pole: complex, values: np.ndarray, bounds: np.ndarray) -> tuple[complex, float]:
        """A pole near the imaginary axis and its bound, from a shift on the axis."""
        size = abs(pole)
        own = int(np.flatnonzero(values == pole)[0])
        try:
            found, errors, *_ = self._near(1j * size)
        except ConvergenceError:  # singular there to 32 digits
            return 1j * size, WITHIN * size
        rank = int((np.abs(values - 1j * size) < abs(pole - 1j * size)).sum())
        nearest = np.argsort(np.abs(found - 1j * size), kind="stable")[rank]
        if not errors[nearest] < bounds[own]:
            return pole, float(bounds[own])
        return complex(found[nearest]), float(errors[nearest])

    def _near(self, shift: complex) -> _View:
        """The poles as resolved by one shift."""
        from scipy.linalg import eig, lapack

        # Symmetric scaling by |D|^½ balances capacitances and inductances.
        storages = self.system.storages[self.live]
        root = np.sqrt(np.abs(storages))
        inner, off = _inner(self.system, shift, self.live)
        response = np.sign(storages)[:, None] * (root[:, None] * inner * root)
        off = root[:, None] * off * root
        response[np.abs(response) <= off] = 0.0  # balancing would amplify rounding
        scale = (lapack.zgebal if np.iscomplexobj(response) else lapack.dgebal)(response, scale=1, permute=0)[3]
        ratio = scale / scale[:, None]
        response, off = response * ratio, off * ratio
        wrong = BACKWARD * root.size * float(np.linalg.norm(response)) + float(np.linalg.norm(off))
        mu, left, right = eig(response, left=True)
        # |δμ| ≤ ‖δR‖ / |yᴴ x| for unit vectors (Wilkinson, 1965).
        condition = 1.0 / np.maximum(np.abs((left.conj() * right).sum(axis=0)), 1e-300)
        wrong = wrong * condition
        order = np.argsort(-np.abs(mu), kind="stable")
        mu, wrong = mu[order], wrong[order]
        mu, wrong = mu[: self.states], wrong[: self.states]
        mu = np.where(mu == 0.0, np.finfo(float).tiny, mu)
        away = np.where(np.abs(mu) > np.finfo(float).tiny, np.abs(mu) - wrong, 0.0)
        bounds = np.divide(wrong / np.abs(mu), away, out=np.full(mu.size, np.inf), where=away > 0.0)
        return _View(shift - 1.0 / mu, bounds, 1.0 / (np.abs(mu) + wrong))


def _count(half: list[tuple[complex, float]]) -> int:
    """Number of poles, including the conjugates of those above the real axis."""
    return sum(2 if pole.imag > 0.0 else 1 for pole, _ in half)


class _View(NamedTuple):
    """Poles (k,) as resolved by one shift, their error bounds, and minimum distances from the shift."""

    values: np.ndarray
    bounds: np.ndarray
    away: np.ndarray

    def _known(self) -> np.ndarray:
        return self.bounds < 0.5 * np.abs(self.values)

    def beyond(self, shift: float, down: bool) -> tuple[float, int]:
        """A magnitude that no resolved pole's bound crosses, and the number of poles below or above it, unresolved ones
        included."""
        size = np.abs(self.values)
        own = ~self._known() & ((size <= shift) if down else (size > shift))
        if down:
            edge = min(float((size + self.bounds)[own].max(initial=0.0)), shift)
            return edge, int((size <= edge).sum())
        edge = max(float(self.away[own].min(initial=np.inf)) - shift, shift)
        return edge, int((own | (self._known() & (size > edge))).sum())

    def between(self, low: float, high: float) -> list[tuple[complex, float]]:
        """The resolved poles between two magnitudes with imaginary parts ≥ 0, and their bounds."""
        size = np.abs(self.values)
        inside = self._known() & (size > low) & (size <= high) & (self.values.imag >= 0.0)
        return list(zip(self.values[inside].tolist(), self.bounds[inside].tolist()))


def _solution(system: SmallSignalEquations, shift: complex) -> Solution:
    """Factors of A₀ + σ A₁.

    Raises
    ------
    ConvergenceError
        It is singular.
    """
    try:
        return solution_at(system, *(Pairs.of(np.array(part)) for part in (shift.real, shift.imag)))
    except ArithmeticError:
        raise ConvergenceError(SINGULAR) from None


def _inner(system: SmallSignalEquations, shift: complex, live: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pᵀ (A₀ + σ A₁)⁻¹ P for the columns ``live`` of P, real for a real shift, and its error bounds."""
    solution, memory = _solution(system, shift), system.memory[live].toarray()
    found, off = np.zeros((2, live.size, live.size), dtype=complex)
    for k, row in enumerate(memory):
        pair, left = solution.of(row)
        found[:, k] = (memory @ phasors(pair).T).sum(axis=1)
        off[:, k] = SAFETY * np.abs(memory @ left.T).max(axis=1)
    return (found if shift.imag else found.real), off.real


def _shift(system: SmallSignalEquations, live: np.ndarray) -> float:
    """A positive real s of the order of the natural frequencies, where passive circuits are regular."""
    typical, storages = system.linear.arrays.typical_resistance, system.storages[live]
    rates = np.where(storages > 0.0, 1.0 / (typical * np.abs(storages)), typical / np.abs(storages))
    return float(np.exp(np.log(rates).mean()))


def _states(system: SmallSignalEquations) -> tuple[int | None, int]:
    """The number of states, and of those at s = 0, from the topology alone; None and 0 with controlled sources or ideal
    couplings.

    Capacitors that close loops in a forest of voltage sources and capacitors are no states, nor are inductors that a
    forest of all other elements needs. Currents persist in loops of inductors and voltage sources, charges in cut-sets
    of capacitors and current sources.
    """
    if system.linear.laws or system.ideal:
        return None, 0
    kind, first, second, value, n = system.linear.arrays
    idle = np.zeros(kind.size, dtype=bool)
    idle[system.elements] = system.storages == 0.0
    capacitor, inductor = ((kind == own) & ~idle for own in (CAPACITOR, INDUCTOR))
    short = (kind == VOLTAGE) | (idle & (kind == INDUCTOR)) | ((kind == RESISTOR) & (value == 0.0))
    rest = (kind != CURRENT) & (kind != CAPACITOR) & ~inductor

    def rank(edges: np.ndarray) -> int:
        """Number of edges of a forest."""
        return n - int(np.unique(component_labels(n, first[edges], second[edges])).size)

    inductors, every = int(inductor.sum()), rank(rest | capacitor | inductor)
    free = rank(short | capacitor) - rank(short) + inductors - every + rank(rest | capacitor)
    loops, cuts = inductors - rank(short | inductor) + rank(short), every - rank(rest | inductor)
    return free, loops + cuts


__all__ = ["Poles", "poles"]
