"""`CircuitBlock`: any circuit as a block of learning.

The energy is E(v) = ½ Σ g Δv² + Σ I Δv (Scellier 2024, Theorem 1); inputs are source values, outputs are voltages
between node pairs, parameters the conductances of resistors and the currents of sources that may change. A nudge is a
current pushed into the output pairs and a conductance across them, so that a relaxation is a solve.

Devices are solved as the elementary elements they consist of, smooth ones with their tangents. Circuits with controlled
sources have no energy: what needs one (nudged phases, clamps) is refused by name. Where controls by voltages form no
loop (buffers between passive sections) and no device is smooth, each section has an energy, and nudged phases go
section by section.

Circuits with bidirectional amplifiers are solved in the scale with amplifiers as wires. With v = c v' behind amplifiers
of gain c in all, the energy of a resistor is ½ g (Δv')², and a nudge λ o + ½ κ o² of an output o = c o' is c λ o' + ½
c² κ o'² there. So contrastive estimates are gradients of the loss without further factors; Scellier (2024, Eq. 51), who
nudges by ½ β o'², is short by c². Without amplifiers all c are 1.

The coordinate of an adjustable parameter of a device whose bounds are above zero is its natural logarithm (saturation
currents and resistances span decades), of any other the parameter itself, in its unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.batch import no_energy
from circuitsim.analysis.batched import SectionedBatch, batched
from circuitsim.analysis.newton import Smooth, smooth_devices
from circuitsim.analysis.operating_point import diode_margins
from circuitsim.analysis.parameters import quotient
from circuitsim.blocks.protocol import Arrays, Nudge, State
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import GROUND, Circuit
from circuitsim.circuit.amplifiers import without_amplifiers
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.circuit.expansion import expanded
from circuitsim.errors import NoEnergyError, UsageError
from circuitsim.kernels import TERM, kernel
from circuitsim.models import Device
from circuitsim.models.smooth import SmoothDevice
from circuitsim.netlist.roles import Adjustable, Roles
from circuitsim.newton.co_content import NODES, WEIGHTS, co_content_differences, responses_of_laws


class LawParameters(NamedTuple):
    """The adjustable parameters of a circuit's devices; `of` makes them.

    Attributes
    ----------
    circuit : Circuit
    rows : tuple of (int, str)
        The place of the device in the circuit, and the parameter as its model spells it.
    logarithmic : (p,) bool array
        Whether a coordinate is a logarithm.
    low, high : (p,) float arrays
        Bounds, in the parameters' units.
    """

    circuit: Circuit
    rows: tuple[tuple[int, str], ...]
    logarithmic: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, circuit: Circuit, adjustable: Sequence[Adjustable]) -> LawParameters:
        """Those among what is adjustable."""
        places = [circuit.device_parameter(item.name) for item in adjustable]
        bounds = [item[1:3] for item, place in zip(adjustable, places) if place is not None]
        low, high = np.array(bounds, dtype=np.float64).reshape(-1, 2).T
        return cls(circuit, tuple(place for place in places if place is not None), low > 0.0, low, high)

    def coordinates(self, values: np.ndarray) -> np.ndarray:
        """Of values in their units."""
        return np.log(values, out=values.copy(), where=self.logarithmic)

    def start(self) -> np.ndarray:
        """Coordinates of the circuit's own values."""
        return self.coordinates(np.array([getattr(self.circuit.devices[device], name) for device, name in self.rows]))

    def numbers(self, coordinates: np.ndarray) -> list[float]:
        """Values in their units, within their bounds to the last bit."""
        values = np.exp(coordinates, out=coordinates.copy(), where=self.logarithmic)
        found: list[float] = np.clip(values, self.low, self.high).tolist()
        return found

    def values(self, coordinates: np.ndarray) -> dict[str, float]:
        """Values by name (``D1.vfwd``), in their units."""
        names, values = self.circuit.names, self.numbers(coordinates)
        return {f"{names[device]}.{name}": value for (device, name), value in zip(self.rows, values)}

    def derivatives(self, devices: Mapping[int, Device], coordinates: np.ndarray) -> list[np.ndarray]:
        """For each parameter the derivatives by its coordinate: of a smooth device's row, else of its parts' values."""
        found = []
        for (device, name), value, logarithmic in zip(self.rows, self.numbers(coordinates), self.logarithmic):
            slopes = quotient(devices[device], name, value, 1.0)
            assert slopes is not None  # bounds leave a device of the same parts
            slope = np.array(slopes) * (value if logarithmic else 1.0)
            found.append(np.where(np.isfinite(slope), slope, 0.0))  # knees at infinity stay there
        return found


KINK = 1e-9
"""A diode whose current and voltage are within this fraction of their scales is at a kink."""


class CircuitState(NamedTuple):
    """Operating points of one circuit for a batch of inputs.

    Attributes
    ----------
    voltages : (batch, n_nodes) float array
        Node voltages, V.
    current : (batch, m) float array
        Branch currents in SPICE signs, A.
    output : (batch, outputs) float array
        v(p) − v(q), V.
    residual : (batch,) float array
        Worst violation of the circuit's equations, relative to local scales.
    certified : (batch,) bool array
        Proven to the block's tolerance.
    solution : object
        What the solver starts from next time.
    """

    voltages: np.ndarray
    current: np.ndarray
    output: np.ndarray
    residual: np.ndarray
    certified: np.ndarray
    solution: Any

    @property
    def active(self) -> np.ndarray:
        """(batch, diodes) bool: conducting."""
        return self.solution.closed


def combined(states: Sequence[CircuitState], coefficients: Sequence[float]) -> CircuitState:
    """Σ coefficient · state: no operating point, but what the differences of a block are linear in."""

    def total(name: str) -> np.ndarray:
        return sum(c * getattr(state, name) for c, state in zip(coefficients, states))

    return states[0]._replace(
        **{name: total(name) for name in ("voltages", "current", "output")},
        residual=np.maximum.reduce([state.residual for state in states]),
        certified=np.logical_and.reduce([state.certified for state in states]),
    )


class CircuitBlock:
    """A circuit with roles as an `EnergyBlock`: elements, devices, controlled sources, amplifiers, switches.

    States have the voltages and currents of the elementary circuit that devices are expanded into: the circuit's own
    nodes and elements come first. Switches keep the states of their cards.

    Parameters
    ----------
    circuit : Circuit
        Its values are the initial parameters; it is never changed.
    roles : Roles
        Inputs, outputs, adjustable elements (`circuitsim.netlist.roles`).
    tolerance : float
        What each operating point is certified to, relative to local scales.

    Attributes
    ----------
    circuit : Circuit
        Of elementary elements, amplifiers as wires.
    whole : Circuit
        As it was given.
    parameters : dict of str to ndarray
        ``conductance`` (S) of the adjustable resistors and ``current`` (A, SPICE sign) of the adjustable sources (over
        the gain of their section), in the order of the circuit's elements; ``law``, the adjustable parameters of
        devices, in their coordinates (logarithms where both bounds are positive); kinds that do not occur are left out.
    bounds : dict of str to (ndarray, ndarray)
        Least and largest value of each parameter; `project` clips to them.

    Raises
    ------
    UsageError
        Roles without inputs, outputs or anything to train; a trainable resistor whose current controls a source; an
        output between sections of different gain, or a smooth device in a section whose gain is not one.
    AmplifierError
        Gains that contradict each other.
    """

    def __init__(self, circuit: Circuit, roles: Roles, tolerance: float = TOLERANCE) -> None:
        self.whole, self.roles, self.tolerance = circuit, roles.require(), tolerance
        _check_sensed(circuit, roles)
        self._expansion = expanded(circuit)
        elementary = self._expansion.circuit
        self.circuit = elementary
        self._node_gain, self._gain = np.ones(len(elementary.node_names)), np.ones(len(elementary))
        if elementary.amplified:
            self.circuit, self._node_gain, self._gain = without_amplifiers(elementary)
        self._output_gain = np.array([self._gain_of(p, q) for p, q in roles.outputs])
        kind, self._first, self._second, value, self.n_nodes = self.circuit.arrays()
        self._kind, self._value = kind, value
        self._scale = np.where((kind == VOLTAGE) | (kind == CURRENT), self._gain, 1.0)
        self._inputs = np.array([circuit.element_index(name) for name in roles.inputs], dtype=np.int64)
        self._laws = LawParameters.of(circuit, roles.trainable)
        self._own = [a for a in roles.trainable if circuit.device_parameter(a.name) is None]
        adjustable = np.array([circuit.element_index(a.name) if a.name in circuit else -1 for a in self._own], np.int64)
        acts = (adjustable >= 0) & ((kind[adjustable] == RESISTOR) | (kind[adjustable] == CURRENT))
        if not acts.all():
            still = [self._own[k].name for k in np.flatnonzero(~acts).tolist()]
            raise UsageError(
                f"{', '.join(still)}: no effect on operating points; train on waveforms (data with a column time)"
            )
        low, high = np.array([a[1:3] for a in self._own]).reshape(-1, 2).T / self._scale[adjustable]
        ohmic, self._adjustable = kind[adjustable] == RESISTOR, adjustable
        self._resistors, self._sources = adjustable[ohmic], adjustable[~ohmic]
        laws = self._laws
        rows = {
            "conductance": (1.0 / value[self._resistors], 1.0 / high[ohmic], 1.0 / low[ohmic]),
            "current": (value[self._sources], low[~ohmic], high[~ohmic]),
            "law": (laws.start(), laws.coordinates(laws.low), laws.coordinates(laws.high)),
        }
        self.parameters: Arrays = {name: start for name, (start, _, _) in rows.items() if start.size}
        self.bounds = {name: rows[name][1:] for name in self.parameters}
        self._known: _Present | None = None
        self._analysed = batched(self.circuit, list(roles.inputs), list(roles.outputs), tolerance)
        smooth = self._present.smooth
        if smooth is not None and (self._gain[smooth.elements] != 1.0).any():
            k = smooth.elements[np.argmax(self._gain[smooth.elements] != 1.0)]
            raise UsageError(f"{circuit.names[k]}: a smooth device after an amplifier can be solved, not trained")

    # ------------------------------------------------------------------ shape
    @property
    def n_inputs(self) -> int:
        """Input sources."""
        return self._inputs.size

    @property
    def n_outputs(self) -> int:
        """Output pairs."""
        return len(self.roles.outputs)

    @property
    def has_energy(self) -> bool:
        """Whether the circuit has an energy: no controlled sources (then only its sections have, if any)."""
        return not self.whole.laws

    def _gain_of(self, p: str, q: str) -> float:
        """The gain of an output; ground belongs to every section."""
        ends = [self.whole.node_index(node) for node in (p, q)]
        found = {float(self._node_gain[node]) for node in ends if node != GROUND} or {1.0}
        if max(found) / min(found) > 1.0 + 1e-12:
            raise UsageError(f"the output v({p},{q}) lies between sections of different gain: read v({p}) and v({q})")
        return max(found)

    # ------------------------------------------------------------------ parameters
    @property
    def _present(self) -> _Present:
        """What belongs to the present parameters; new after changes."""
        key = b"".join(array.tobytes() for array in self.parameters.values())
        if self._known is None or self._known.key != key:
            theta, value = self.parameters.get("law", np.zeros(0)), self._value.copy()
            circuit = self.whole.with_values(self._laws.values(theta)) if theta.size else self.whole
            if self._resistors.size:
                value[self._resistors] = 1.0 / self.parameters["conductance"]
            if self._sources.size:
                value[self._sources] = self.parameters["current"]
            for place, _ in self._laws.rows:
                device = circuit.devices[place]
                if not isinstance(device, SmoothDevice):
                    for e, part in zip(self._expansion.parts[place], device.expand()):
                        value[e] = np.nan if part.value is None else part.value / self._scale[e]
            smooth = smooth_devices(circuit, self._expansion) if circuit.devices else None
            slopes = self._laws.derivatives(circuit.devices, theta)
            self._known = _Present(key, circuit, value, smooth, slopes, {})
        return self._known

    def trained(self) -> Circuit:
        """The circuit as it was given at the present parameters, within the bounds of the roles to the last bit."""
        present = self._present
        values = (present.value * self._scale)[self._adjustable].tolist()
        found = {a.name: min(max(value, a.minimum), a.maximum) for a, value in zip(self._own, values)}
        return present.circuit.with_values(found)

    def at(self, parameters: Mapping[str, np.ndarray]) -> CircuitBlock:
        """A copy with these parameters; the analysis of the circuit is shared."""
        other = copy(self)
        other.parameters = {name: np.array(parameters[name], dtype=np.float64) for name in self.parameters}
        return other

    def project(self) -> None:
        """Clip the parameters to their bounds."""
        for name, (low, high) in self.bounds.items():
            np.clip(self.parameters[name], low, high, out=self.parameters[name])

    def at_bound(self) -> int:
        """Parameters that lie on a bound."""
        return sum(
            int(((self.parameters[name] <= low) | (self.parameters[name] >= high)).sum())
            for name, (low, high) in self.bounds.items()
        )

    def _solver(self, clamped: bool = False) -> Any:
        """The solver at the present parameters, with sources across the outputs or without."""
        _, circuit, value, smooth, _, solvers = self._present
        if clamped not in solvers:
            made: Any = self._clamped if clamped else self._analysed
            made = made.with_values(np.append(value, np.zeros(self.n_outputs * clamped)))
            solvers[clamped] = made.with_devices(circuit, self._expansion, smooth)
        return solvers[clamped]

    @cached_property
    def _clamped(self) -> Any:
        """The circuit with a voltage source across each output, analysed."""
        circuit, names = self.circuit.with_values({}), list(self.roles.inputs)
        for k, (p, q) in enumerate(self.roles.outputs):
            name = f"Vclamp{k}"
            while name in circuit:
                name += "_"
            names.append(name)
            circuit.voltage_source(name, p, q, 0.0)
        return batched(circuit, names, list(self.roles.outputs), self.tolerance)

    def stiffness_limit(self) -> float:
        """Largest β, S, up to which a negative conductance −β across every output leaves the energy convex."""
        return float(self._solver().stiffness_limit()) / float(self._output_gain.max()) ** 2

    # ------------------------------------------------------------------ relaxing
    def stiffness(self) -> float:
        """What a nudge is measured against, S: `stiffness_limit`; of outputs that float while all diodes block the mean
        trainable conductance."""
        limit = self.stiffness_limit()
        if 0 < limit < np.inf:
            return limit
        return float(self.parameters.get("conductance", np.ones(1)).mean())

    def relax(self, x: np.ndarray, nudge: Nudge | None = None, start: State | None = None) -> CircuitState:
        """Operating points for the rows of ``x`` (batch, inputs), V or A.

        The arguments are those of `EnergyBlock.relax`.

        Raises
        ------
        NoEnergyError
            A nudge of a circuit with controlled sources, where controls form a loop or are currents of others than
            voltage sources, or where there are smooth devices.
        UsageError
            A nudge with ``follow``; one by a conductance for outputs of different gain or through controlled sources.
        UnboundedError
            A stiffness so negative that the energy is no longer convex.

        Notes
        -----
        A sample without a steady state, or without a certified one, comes back with ``certified`` false.
        """
        before = None if start is None or self.whole.laws else start.solution  # type: ignore[attr-defined]
        values, gain = x / self._scale[self._inputs], self._output_gain
        if nudge is None:
            return self._state(self._solver().solve(values, start=before))
        if nudge.follow is not None:
            raise UsageError(
                "a circuit is solved without sweeps, so its nudge cannot follow the output; use "
                "learning.FollowingCurrent"
            )
        solver = self._solver()
        if not self.has_energy and not isinstance(solver, SectionedBatch):
            self._require_energy()
        if nudge.stiffness and gain.max() > gain.min():
            raise UsageError("outputs of different gain cannot share one nudging conductance: nudge by a current")
        stiffness = nudge.stiffness * float(gain[0]) ** 2
        return self._state(solver.solve(values, injected=-nudge.linear * gain, stiffness=stiffness, start=before))

    def clamp(self, x: np.ndarray, output: np.ndarray, start: State | None = None) -> CircuitState:
        """Operating points with the outputs held at given voltages by sources across the pairs.

        Where diodes or sources do not let an output take its voltage, ``certified`` is false.

        Parameters
        ----------
        x : ndarray
            Inputs, (batch, inputs), V or A.
        output : ndarray
            Voltages of the outputs, (batch, outputs), V.
        start : CircuitState or None
            A state to start from.

        Raises
        ------
        NoEnergyError
            A circuit with controlled sources: clamped outputs are half of a rule that rests on energies.
        """
        self._require_energy()
        held = np.concatenate([x / self._scale[self._inputs], output / self._output_gain], axis=1)
        before = None if start is None else start.solution  # type: ignore[attr-defined]
        return self._state(self._solver(clamped=True).solve(held, start=before))

    def _state(self, found: Any) -> CircuitState:
        """In volts and amperes."""
        current = found.currents[:, : self._value.size] * self._gain
        voltages, output = found.voltages * self._node_gain, found.output * self._output_gain
        return CircuitState(voltages, current, output, found.relative, found.certified, found)

    def _inside(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """Voltages and currents of a state in the scale in which amplifiers are wires."""
        return state.voltages / self._node_gain, state.current / self._gain  # type: ignore[attr-defined]

    def _require_energy(self) -> None:
        if not self.has_energy:
            raise NoEnergyError(no_energy(self.whole))

    def kinks(self, state: State) -> tuple[np.ndarray, int]:
        """(batch,) diodes without current and voltage at a state, to `KINK` of their scales, and how many there are."""
        arrays, diodes = self.circuit.arrays()._replace(value=self._present.value), np.flatnonzero(self._kind == DIODE)
        v, current = self._inside(state)
        drop, count = self._drops(v), np.zeros(len(v), dtype=np.int64)
        # The largest drop and current of all are larger than the scales of a diode: the others are not kinks.
        sizes = np.abs(drop), np.abs(current)
        near = [size[:, diodes] <= KINK * size.max(axis=1, initial=0.0, keepdims=True) for size in sizes]
        for sample in np.flatnonzero((near[0] & near[1]).any(axis=1)).tolist():
            margin = diode_margins(arrays, v[sample], current[sample], drop[sample])
            count[sample] = (margin[diodes] <= KINK).sum()
        return count, diodes.size

    # ------------------------------------------------------------------ energy and its derivatives
    def energy(self, state: State, x: np.ndarray) -> np.ndarray:
        """(batch,) E(v) of Theorem 1 at a state, W: Σ of co-contents, in the scale in which amplifiers are wires.

        The arguments are those of `EnergyBlock.energy`.

        Raises
        ------
        NoEnergyError
            A circuit with controlled sources.
        """
        self._require_energy()
        _, circuit, value, smooth, *_ = self._present
        drop, ohmic = self._drops(self._inside(state)[0]), (self._kind == RESISTOR) & (value != 0.0)
        amperes = np.where(self._kind == CURRENT, value, np.zeros((len(drop), 1)))
        amperes[:, self._inputs] = np.where(self._kind[self._inputs] == CURRENT, x / self._scale[self._inputs], 0.0)
        by_laws: Any = 0.0
        if smooth is not None:
            ohmic[smooth.slope], amperes[:, smooth.rest] = False, 0.0
            own = [circuit.devices[int(k)] for k in smooth.elements]
            by_laws = np.array([sum(d.energy(u) for d, u in zip(own, row)) for row in drop[:, smooth.rest].tolist()])
        return 0.5 * drop[:, ohmic] ** 2 @ (1.0 / value[ohmic]) + (amperes * drop).sum(axis=1) + by_laws

    def parameter_difference(self, plus: State, minus: State, x: np.ndarray, weight: np.ndarray) -> Arrays:
        """Σ_b weight_b (∂E/∂θ at plus − ∂E/∂θ at minus): ½ Δv² for a conductance, Δv for a current source.

        ½ (Δv₊² − Δv₋²) is computed as (Δv₊ − Δv₋) · ½ (Δv₊ + Δv₋), which does not cancel. For a parameter of a device's
        law ∫ ∂i/∂θ dv between its two voltages (`circuitsim.newton.co_content`).
        The arguments are those of `EnergyBlock.parameter_difference`.
        """
        above, below = self._inside(plus), self._inside(minus)
        change, level = (tuple(f * (a + s * b) for a, b in zip(above, below)) for f, s in ((1.0, -1.0), (0.5, 1.0)))
        smooth, by_row = self._present.smooth, np.zeros((0, 0))
        if smooth is not None and self._laws.rows:
            u, i = map(np.array, zip(*(self._junctions(smooth, *end) for end in (above, below))))
            by_row = np.empty(smooth.rows.shape)
            differences = kernel(co_content_differences, 50 * u.size, TERM)
            differences(smooth.rows, np.array(NODES), np.array(WEIGHTS), u, i, weight, by_row)
        return self._derivatives(change, level, weight, by_row)

    def _derivatives(
        self, change: Sequence[np.ndarray], level: Sequence[np.ndarray], weight: np.ndarray, by_row: np.ndarray
    ) -> Arrays:
        """By the parameters, from changes and levels of voltages and currents, and by the rows of smooth devices."""
        counted, present, found = weight != 0.0, self._present, Arrays()
        change, level = ([part[counted] for part in of] for of in (change, level))
        by_value = weight[counted] @ self._by_values(slice(None), change, level)
        if self._resistors.size:
            found["conductance"] = 0.0 - by_value[self._resistors] * present.value[self._resistors] ** 2
        if self._sources.size:
            found["current"] = by_value[self._sources] * self._gain[self._sources]
        if self._laws.rows:
            rows = {} if present.smooth is None else dict(zip(present.smooth.elements.tolist(), by_row))
            found["law"] = np.array(
                [
                    slopes
                    @ (rows[device][: slopes.size] if device in rows else by_value[list(self._expansion.parts[device])])
                    for (device, _), slopes in zip(self._laws.rows, present.slopes)
                ]
            )
        return found

    def _drops(self, voltages: np.ndarray, elements: Any = slice(None)) -> np.ndarray:
        """(batch, elements) v(first) − v(second)."""
        return voltages[:, self._first[elements]] - voltages[:, self._second[elements]]

    def _junctions(self, smooth: Smooth, v: np.ndarray, current: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Voltages of the junctions, V, and currents of the devices, A (batch, s)."""
        i = current[:, smooth.slope] + current[:, smooth.rest]
        return self._drops(v, smooth.rest) - smooth.rows[:, 0] * i, i

    def _by_values(self, of: Any, change: Sequence[np.ndarray], level: Sequence[np.ndarray]) -> np.ndarray:
        """(batch, elements) −i i' by a resistance, −i by the voltage of a source and v by its current, with the
        changes v, i and the level i'; i of a resistor is that by Ohm's law (adjoint responses may have no other)."""
        kind, value = self._kind[of], self._present.value[of]
        ohmic = (kind == RESISTOR) & (value != 0.0)
        moved, held = (
            np.where(ohmic, self._drops(v, of) / np.where(ohmic, value, 1.0), i[:, of]) for v, i in (change, level)
        )
        by_source = np.where(kind == VOLTAGE, -moved, self._drops(change[0], of)) / self._gain[of]
        return np.where(kind == RESISTOR, -moved * held, by_source)

    def input_difference(self, plus: State, minus: State, x: np.ndarray) -> np.ndarray:
        """(batch, inputs) ∂E/∂x at plus − ∂E/∂x at minus.

        For a voltage source the current it delivers out of its + terminal (minus its SPICE current); for a current
        source v(first) − v(second).
        The arguments are those of `EnergyBlock.input_difference`.
        """
        change = [a - b for a, b in zip(self._inside(plus), self._inside(minus))]
        return self._by_values(self._inputs, change, change)

    def implicit(
        self, state: State, x: np.ndarray, cotangent: np.ndarray, weight: np.ndarray
    ) -> tuple[Arrays, np.ndarray]:
        """Exact derivatives of cotangent · output by the adjoint H λ = −Bᵀ cotangent on the active set.

        ∂ℓ/∂g = Δv Δλ, ∂ℓ/∂I = λ(first) − λ(second), ∂ℓ/∂V = the current that V delivers in the adjoint circuit.
        The arguments are those of `EnergyBlock.implicit`.
        """
        solution = state.solution  # type: ignore[attr-defined]
        adjoint = self._solver().adjoint(solution, cotangent * self._output_gain)
        v, current = self._inside(state)
        smooth, by_row = self._present.smooth, np.zeros((0, 0))
        if smooth is not None and self._laws.rows:
            u, by_row = self._junctions(smooth, v, current)[0], np.empty(smooth.rows.shape)
            respond = kernel(responses_of_laws, u.size, TERM)
            respond(smooth.rows, u, self._drops(adjoint[0], smooth.rest), weight, by_row)
        return self._derivatives(adjoint, (v, current), weight, by_row), self._by_values(self._inputs, adjoint, adjoint)


class _Present(NamedTuple):
    """Of parameters, by their bytes: the circuit, values of its elementary elements with amplifiers as wires (Ω, V, A;
    those of tangents of smooth devices are the circuit's own), smooth devices, derivatives by the coordinates of laws,
    and solvers, with sources across the outputs and without."""

    key: bytes
    circuit: Circuit
    value: np.ndarray
    smooth: Smooth | None
    slopes: list[np.ndarray]
    solvers: dict[bool, Any]


def _check_sensed(circuit: Circuit, roles: Roles) -> None:
    """Refuse a trainable resistor whose current controls a source."""
    sensed = {circuit.names[c.element].lower() for law in circuit.laws.values() for c in law.currents}
    for a in roles.trainable:
        if a.name.lower() in sensed:
            raise UsageError(
                f"{a.name} is trainable and its current controls a source: sense the current with a voltage "
                "source of 0 V in series"
            )
