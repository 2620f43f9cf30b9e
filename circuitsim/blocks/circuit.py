"""`CircuitBlock`: any circuit as a block of learning.

The energy is E(v) = ½ Σ g Δv² + Σ I Δv (Scellier 2024, Theorem 1); inputs are source values, outputs are voltages
between node pairs, parameters the conductances of resistors and the currents of sources that may change. A nudge is a
current pushed into the output pairs and a conductance across them, so that a relaxation is a solve.

Devices are solved as the elementary elements they consist of. Circuits with controlled sources have no energy: what
needs one (nudged phases, clamps) is refused by name. Where controls by voltages form no loop (buffers between passive
sections) each section has an energy, and nudged phases go section by section.

Circuits with bidirectional amplifiers are solved in the scale with amplifiers as wires. With v = c v' behind amplifiers
of gain c in all, the energy of a resistor is ½ g (Δv')², and a nudge λ o + ½ κ o² of an output o = c o' is
c λ o' + ½ c² κ o'² there. So contrastive estimates are gradients of the loss without further factors; Scellier (2024,
Eq. 51), who nudges by ½ β o'², is short by c².
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from circuitsim._jit import jit
from circuitsim.analysis.batch import BatchSolver
from circuitsim.analysis.batched import batched
from circuitsim.analysis.controlled_batch import no_energy
from circuitsim.analysis.kinks import diode_margins
from circuitsim.analysis.newton import Smooth, smooth_devices
from circuitsim.analysis.sectioned_batch import SectionedBatch
from circuitsim.analysis.tangent_batch import TangentBatch
from circuitsim.blocks.law_parameters import LawParameters
from circuitsim.blocks.protocol import Arrays, Nudge, State
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import GROUND, Circuit
from circuitsim.circuit.amplifiers import without_amplifiers
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.circuit.expansion import expanded
from circuitsim.errors import NoEnergyError, UsageError
from circuitsim.models import Device
from circuitsim.models.smooth import SmoothDevice
from circuitsim.netlist.roles import Adjustable, Roles
from circuitsim.newton.contrasts import NODES, WEIGHTS
from circuitsim.newton.kernels import newton_kernel


@jit(unroll=True)
def branch_products(
    first: np.ndarray, second: np.ndarray, left: np.ndarray, right: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Σ_b weight_b (left_a − left_c)(right_a − right_c) for every branch a → c.

    Parameters
    ----------
    first, second : (r,) int arrays
        Ends of the branches.
    left, right : (batch, n_nodes) float arrays
    weight : (batch,) float array

    Returns
    -------
    (r,) float array
    """
    out = np.zeros(first.size)
    for b in range(weight.size):
        if weight[b] != 0.0:
            for r in range(first.size):
                a, c = first[r], second[r]
                out[r] += weight[b] * ((left[b, a] - left[b, c]) * (right[b, a] - right[b, c]))
    return out


Analyse = Callable[..., Any]

KINK = 1e-9
"""A diode whose current and voltage are within this share of their scales is at a kink."""


class CircuitState(NamedTuple):
    """Operating points of one circuit for a batch of inputs.

    Attributes
    ----------
    voltages : (batch, n_nodes) float array
        Node potentials, V.
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
    def closed(self) -> np.ndarray:
        """(batch, diodes) bool: conducting."""
        return self.solution.closed

    @property
    def active(self) -> np.ndarray:
        """The same: what tells kinks between two states."""
        return self.solution.closed


def combined(states: Sequence[CircuitState], coefficients: Sequence[float]) -> CircuitState:
    """Σ coefficient · state: no operating point, but what the differences of a block are linear in."""

    def total(name: str) -> np.ndarray:
        return sum(c * getattr(state, name) for c, state in zip(coefficients, states))

    residual = np.maximum.reduce([state.residual for state in states])
    certified = np.logical_and.reduce([state.certified for state in states])
    return CircuitState(total("voltages"), total("current"), total("output"), residual, certified, states[0].solution)


class CircuitBlock:
    """A circuit with roles as an `EnergyBlock`.

    Parameters
    ----------
    circuit : Circuit
        Its values are the initial parameters; it is never changed.
    roles : Roles
        Inputs, outputs, adjustable elements (`circuitsim.netlist.roles`).
    tolerance : float
        What each operating point is certified to, relative to local scales.
    analyse : callable, optional
        Another batch solver than `circuitsim.analysis.batched.batched`, with its interface.

    Attributes
    ----------
    parameters : dict of str to ndarray
        ``conductance`` (S) of the adjustable resistors and ``current`` (A, SPICE sign) of the adjustable sources, in
        the order of the circuit's elements; ``law``, the adjustable parameters of devices, in the coordinates of
        `circuitsim.blocks.law_parameters`; a kind that does not occur is left out.
    bounds : dict of str to (ndarray, ndarray)
        Least and largest value of each parameter; `project` clips to them.

    Raises
    ------
    UsageError
        Roles without inputs, outputs or anything to train.
    """

    def __new__(cls, circuit: Circuit, *arguments: Any, **options: Any) -> CircuitBlock:
        """A circuit with amplifiers is solved in other coordinates, one with devices expanded: by other classes."""
        if cls is CircuitBlock and circuit.laws:
            if circuit.devices:
                raise UsageError("a circuit with devices and controlled sources can be solved, but not trained")
            return object.__new__(ControlledBlock)
        if cls is CircuitBlock and circuit.devices:
            return object.__new__(ExpandedBlock)
        if cls is CircuitBlock and circuit.amplified:
            return object.__new__(AmplifiedBlock)
        return object.__new__(cls)

    def __getnewargs__(self) -> tuple[Circuit]:
        """What copies of estimators need to make the same class again."""
        return (self.circuit,)

    def __init__(
        self, circuit: Circuit, roles: Roles, tolerance: float = TOLERANCE, analyse: Analyse | None = None
    ) -> None:
        self.circuit, self.roles, self.tolerance = circuit, roles.require(), tolerance
        self.analyse = analyse or batched
        kind, self._first, self._second, value, self.n_nodes = circuit.arrays()
        self._kind, self._value = kind, value
        self._inputs = np.array([circuit.element_index(name) for name in roles.inputs], dtype=np.int64)
        own = self._elements()
        adjustable = np.array([circuit.element_index(a.name) if a.name in circuit else -1 for a in own], dtype=np.int64)
        acts = (adjustable >= 0) & ((kind[adjustable] == RESISTOR) | (kind[adjustable] == CURRENT))
        if not acts.all():
            still = [own[k].name for k in np.flatnonzero(~acts).tolist()]
            raise UsageError(
                f"{', '.join(still)}: no effect on voltages at rest; trained on waveforms, data with a column time"
            )
        low, high = (np.array([a[side] for a in own], dtype=np.float64) for side in (1, 2))
        ohmic = kind[adjustable] == RESISTOR
        self._resistors, self._sources = adjustable[ohmic], adjustable[~ohmic]
        self.parameters: Arrays = {}
        self.bounds: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        if ohmic.any():
            self.parameters["conductance"] = 1.0 / value[self._resistors]
            self.bounds["conductance"] = 1.0 / high[ohmic], 1.0 / low[ohmic]
        if self._sources.size:
            self.parameters["current"] = value[self._sources].copy()
            self.bounds["current"] = low[~ohmic], high[~ohmic]
        self._analysed = self.analyse(circuit, list(roles.inputs), list(roles.outputs), tolerance)
        self._solver: Any = None
        self._solved: Arrays = {}

    # ------------------------------------------------------------------ shape
    @property
    def n_inputs(self) -> int:
        """Input sources."""
        return self._inputs.size

    @property
    def n_outputs(self) -> int:
        """Output pairs."""
        return len(self.roles.outputs)

    # ------------------------------------------------------------------ parameters
    def _elements(self) -> tuple[Adjustable, ...]:
        """The adjustable elements of this circuit."""
        return self.roles.trainable

    def values(self) -> np.ndarray:
        """(m,) values of all elements at the present parameters: Ω, V, A."""
        value = self._value.copy()
        if self._resistors.size:
            value[self._resistors] = 1.0 / self.parameters["conductance"]
        if self._sources.size:
            value[self._sources] = self.parameters["current"]
        return value

    @property
    def whole(self) -> Circuit:
        """The circuit as it was given, devices included."""
        return self.circuit

    def trained(self) -> Circuit:
        """The circuit at the present parameters, within the bounds of the roles to the last bit."""
        value = self.values().tolist()
        ends = {self.circuit.element_index(a.name): a for a in self._elements()}
        return self.circuit.with_values({a.name: min(max(value[k], a.minimum), a.maximum) for k, a in ends.items()})

    def at(self, parameters: Mapping[str, np.ndarray]) -> CircuitBlock:
        """The same circuit with parameters of its own; what was analysed is shared."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.parameters = {name: np.array(parameters[name], dtype=np.float64) for name in self.parameters}
        other._solver, other._solved = None, {}
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

    def _current(self) -> Any:
        """The solver at the present parameters; rebuilt only after changes."""
        if self._solver is None or any((self._solved[name] != p).any() for name, p in self.parameters.items()):
            self._solver = self._with_values(self._analysed, self.values())
            self._solved = {name: p.copy() for name, p in self.parameters.items()}
        return self._solver

    def _with_values(self, analysed: Any, value: np.ndarray) -> Any:
        """An analysed circuit with the element values (m,) that belong to the present parameters."""
        return analysed.with_values(value)

    def stiffness_limit(self) -> float:
        """Largest β, S, up to which a negative conductance −β across every output leaves the energy convex."""
        return float(self._current().stiffness_limit())

    # ------------------------------------------------------------------ relaxing
    def relax(self, x: np.ndarray, nudge: Nudge | None = None, start: State | None = None) -> CircuitState:
        """Operating points for the rows of ``x`` (batch, inputs), V or A.

        The arguments are those of `EnergyBlock.relax`.

        Raises
        ------
        UsageError
            A nudge with ``follow``.
        UnboundedError
            A stiffness so negative that the energy is no longer convex.

        Notes
        -----
        A sample without a steady state, or without a certified one, comes back with ``certified`` false.
        """
        before = None if start is None else start.solution  # type: ignore[attr-defined]
        if nudge is None:
            return self._state(self._current().solve(x, start=before))
        if nudge.follow is not None:
            raise UsageError(
                "a circuit is solved without sweeps, so its nudge cannot follow the output; use "
                "learning.nudges.FollowingCurrent"
            )
        found = self._current().solve(x, injected=-nudge.linear, stiffness=nudge.stiffness, start=before)
        return self._state(found)

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
        """
        held = np.concatenate([x, output], axis=1)
        before = None if start is None else start.solution  # type: ignore[attr-defined]
        state = self._state(self._clamped().solve(held, start=before))
        return state._replace(current=state.current[:, : self._value.size])

    def _clamped(self) -> Any:
        """The solver of the circuit with a voltage source across each output."""
        if "_clamped_analysed" not in self.__dict__:
            circuit = self.circuit.with_values({})
            names = [_unused(circuit, f"Vclamp{k}") for k in range(self.n_outputs)]
            for name, (p, q) in zip(names, self.roles.outputs):
                circuit.voltage_source(name, p, q, 0.0)
            inputs = [*self.roles.inputs, *names]
            self._clamped_analysed = self.analyse(circuit, inputs, list(self.roles.outputs), self.tolerance)
        solver = self._current()
        cached = self.__dict__.get("_clamped_solver")
        if cached is None or cached[0] is not solver:
            value = np.concatenate([self.values(), np.zeros(self.n_outputs)])
            self._clamped_solver = cached = solver, self._with_values(self._clamped_analysed, value)
        return cached[1]

    def _state(self, found: Any) -> CircuitState:
        return CircuitState(found.voltages, found.currents, found.output, found.relative, found.certified, found)

    def kinks(self, state: State) -> tuple[np.ndarray, int]:
        """(batch,) diodes without current and voltage at a state, to `KINK` of their scales, and how many there are."""
        arrays = self.circuit.arrays()._replace(value=self.values())
        diodes = np.flatnonzero(self._kind == DIODE)
        v, current = state.voltages, state.current[:, : self._kind.size]  # type: ignore[attr-defined]
        count = np.zeros(len(v), dtype=np.int64)
        drop = v[:, self._first] - v[:, self._second]
        near = np.abs(drop[:, diodes]) <= KINK * np.abs(drop).max(axis=1, initial=0.0)[:, None]
        near &= np.abs(current[:, diodes]) <= KINK * np.abs(current).max(axis=1, initial=0.0)[:, None]
        # The largest drop and current of all are larger than the scales of a diode: the others are no kinks.
        for sample in np.flatnonzero(near.any(axis=1)).tolist():
            margin = diode_margins(arrays, v[sample], current[sample], drop[sample])
            count[sample] = (margin[diodes] <= KINK).sum()
        return count, diodes.size

    # ------------------------------------------------------------------ energy and its derivatives
    def energy(self, state: State, x: np.ndarray) -> np.ndarray:
        """(batch,) E(v) of Theorem 1 at a state, W.

        The arguments are those of `EnergyBlock.energy`.
        """
        v = state.voltages  # type: ignore[attr-defined]
        value = self.values()
        ohmic = np.flatnonzero((self._kind == RESISTOR) & (value != 0.0))
        drop = v[:, self._first[ohmic]] - v[:, self._second[ohmic]]
        total = 0.5 * (drop * drop) @ (1.0 / value[ohmic])
        sources = np.flatnonzero(self._kind == CURRENT)
        if sources.size:
            amperes = np.tile(value[sources], (len(v), 1))
            place = {int(k): j for j, k in enumerate(sources)}
            for column, k in enumerate(self._inputs.tolist()):
                if k in place:
                    amperes[:, place[k]] = x[:, column]
            total = total + (amperes * (v[:, self._first[sources]] - v[:, self._second[sources]])).sum(axis=1)
        return total

    def parameter_difference(self, plus: State, minus: State, x: np.ndarray, weight: np.ndarray) -> Arrays:
        """Σ_b weight_b (∂E/∂θ at plus − ∂E/∂θ at minus): ½ Δv² for a conductance, Δv for a current source.

        ½ (Δv₊² − Δv₋²) is computed as (Δv₊ − Δv₋) · ½ (Δv₊ + Δv₋), which does not cancel.
        The arguments are those of `EnergyBlock.parameter_difference`.
        """
        above, below = plus.voltages, minus.voltages  # type: ignore[attr-defined]
        return self._derivatives(above - below, 0.5 * (above + below), weight)

    def _derivatives(self, change: np.ndarray, level: np.ndarray, weight: np.ndarray) -> Arrays:
        found: Arrays = {}
        if self._resistors.size:
            r = self._resistors
            found["conductance"] = branch_products(self._first[r], self._second[r], change, level, weight)
        if self._sources.size:
            total = weight @ change
            found["current"] = total[self._first[self._sources]] - total[self._second[self._sources]]
        return found

    def input_difference(self, plus: State, minus: State, x: np.ndarray) -> np.ndarray:
        """(batch, inputs) ∂E/∂x at plus − ∂E/∂x at minus.

        For a voltage source the current it delivers out of its + terminal (minus its SPICE current); for a current
        source v(first) − v(second).
        The arguments are those of `EnergyBlock.input_difference`.
        """
        voltage = self._kind[self._inputs] == VOLTAGE
        found = np.empty((len(plus.output), self.n_inputs))
        v = self._inputs[voltage]
        found[:, voltage] = minus.current[:, v] - plus.current[:, v]  # type: ignore[attr-defined]
        i = self._inputs[~voltage]
        change = plus.voltages - minus.voltages  # type: ignore[attr-defined]
        found[:, ~voltage] = change[:, self._first[i]] - change[:, self._second[i]]
        return found

    def implicit(
        self, state: State, x: np.ndarray, cotangent: np.ndarray, weight: np.ndarray
    ) -> tuple[Arrays, np.ndarray]:
        """Exact derivatives of cotangent · output by the adjoint H λ = −Bᵀ cotangent on the active set.

        ∂ℓ/∂g = Δv Δλ, ∂ℓ/∂I = λ(first) − λ(second), ∂ℓ/∂V = the current that V delivers in the adjoint circuit.
        The arguments are those of `EnergyBlock.implicit`.
        """
        solution = state.solution  # type: ignore[attr-defined]
        adjoint, currents = self._current().adjoint(solution, cotangent)
        parameters = self._responses(state, adjoint, currents, weight)
        voltage = self._kind[self._inputs] == VOLTAGE
        inputs = np.empty((len(cotangent), self.n_inputs))
        i = self._inputs[~voltage]
        inputs[:, ~voltage] = adjoint[:, self._first[i]] - adjoint[:, self._second[i]]
        inputs[:, voltage] = -currents[:, self._inputs[voltage]]
        return parameters, inputs

    def _responses(self, state: State, adjoint: np.ndarray, currents: np.ndarray, weight: np.ndarray) -> Arrays:
        """Derivatives by the parameters from potentials, V, and currents, A, of the adjoint circuit."""
        return self._derivatives(adjoint, state.voltages, weight)  # type: ignore[attr-defined]


def _unused(circuit: Circuit, name: str) -> str:
    while name in circuit:
        name += "_"
    return name


class ControlledBlock(CircuitBlock):
    """What `CircuitBlock` makes of a circuit with controlled sources.

    Raises
    ------
    UsageError
        A trainable resistor whose current controls a source.
    """

    def __init__(
        self, circuit: Circuit, roles: Roles, tolerance: float = TOLERANCE, analyse: Analyse | None = None
    ) -> None:
        sensed = {circuit.names[c.element].lower() for law in circuit.laws.values() for c in law.currents}
        wrong = [a.name for a in roles.trainable if a.name.lower() in sensed]
        if wrong:
            raise UsageError(
                f"{wrong[0]} is to be trained, and its current controls a source: sense the current with a voltage "
                "source of 0 V in series"
            )
        super().__init__(circuit, roles, tolerance, analyse)

    def relax(self, x: np.ndarray, nudge: Nudge | None = None, start: State | None = None) -> CircuitState:
        """Operating points for the rows of ``x``; see `CircuitBlock.relax`.

        Raises
        ------
        UsageError
            A nudge, where controls form a loop or are currents; a nudge by a conductance.
        """
        if nudge is not None and not isinstance(self._analysed, SectionedBatch):
            self._refuse()
        return super().relax(x, nudge)

    @property
    def has_energy(self) -> bool:
        """No: only its sections have, if any."""
        return False

    def clamp(self, x: np.ndarray, output: np.ndarray, start: State | None = None) -> CircuitState:
        """Refused: clamped outputs are half of a rule that rests on energies.

        Raises
        ------
        NoEnergyError
        """
        self._refuse()

    def energy(self, state: State, x: np.ndarray) -> np.ndarray:
        """Refused: there is none.

        Raises
        ------
        NoEnergyError
        """
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NoEnergyError(no_energy(self.circuit))


class ExpandedBlock(CircuitBlock):
    """What `CircuitBlock` makes of a circuit with devices.

    States have the voltages and currents of the elementary circuit: the circuit's own nodes and elements come first.

    Raises
    ------
    UsageError
        A circuit with amplifiers, too.
    """

    def __init__(
        self, circuit: Circuit, roles: Roles, tolerance: float = TOLERANCE, analyse: Analyse | None = None
    ) -> None:
        if circuit.amplified:
            raise UsageError("a circuit with devices and amplifiers can be solved, but not trained")
        self._outside, self._expansion = circuit, expanded(circuit)
        self._smooth = smooth_devices(circuit, self._expansion)
        self._laws = LawParameters.of(circuit, roles.trainable)
        self._known: _Present | None = None
        if analyse is None and self._smooth is not None:
            analyse = self._with_tangents
        super().__init__(self._expansion.circuit, roles, tolerance, analyse)
        if self._laws.rows:
            self.parameters["law"], self.bounds["law"] = self._laws.start(), self._laws.bounds()

    def _elements(self) -> tuple[Adjustable, ...]:
        return tuple(a for a in self.roles.trainable if self._outside.device_parameter(a.name) is None)

    def _with_tangents(
        self, circuit: Circuit, inputs: Sequence[str], outputs: Sequence[tuple[str, str]], tolerance: float
    ) -> TangentBatch:
        """The batch solver of the elementary elements, with the tangents of the smooth devices."""
        inner = batched(circuit, inputs, outputs, tolerance)
        assert isinstance(inner, BatchSolver) and self._smooth is not None
        return TangentBatch(inner, self._smooth)

    # ------------------------------------------------------------------ devices at the present parameters
    @property
    def _present(self) -> _Present:
        """The devices at the present parameters."""
        theta = self.parameters.get("law", np.zeros(0))
        if self._known is None or (self._known.theta != theta).any():
            circuit, smooth = self._outside, self._smooth
            if theta.size:
                circuit = circuit.with_values(self._laws.values(theta))
                smooth = smooth_devices(circuit, self._expansion)
            devices = circuit.devices
            self._known = _Present(theta.copy(), devices, smooth, self._laws.derivatives(devices, theta))
        return self._known

    def values(self) -> np.ndarray:
        """(m,) values of the elementary elements at the present parameters; those of tangents are the circuit's own."""
        value = super().values()
        for row in self._laws.rows:
            device = self._present.devices[row.device]
            if not isinstance(device, SmoothDevice):
                for e, part in zip(self._expansion.parts[row.device], device.expand()):
                    value[e] = np.nan if part.value is None else part.value
        return value

    def _with_values(self, analysed: Any, value: np.ndarray) -> Any:
        made = analysed.with_values(value)
        smooth = self._present.smooth
        return TangentBatch(made.inner, smooth) if isinstance(made, TangentBatch) and smooth is not None else made

    @property
    def whole(self) -> Circuit:
        """The circuit as it was given, devices included."""
        return self._outside

    def trained(self) -> Circuit:
        """The circuit, devices included, at the present parameters."""
        inside = super().trained()
        values = {a.name: inside[a.name].value or 0.0 for a in self._elements()}
        return self._outside.with_values({**values, **self._laws.values(self.parameters.get("law", np.zeros(0)))})

    # ------------------------------------------------------------------ energy and its derivatives
    def energy(self, state: State, x: np.ndarray) -> np.ndarray:
        """(batch,) Σ of co-contents at a state, W; see `CircuitBlock.energy`."""
        total = super().energy(state, x)
        own, devices = self._present.smooth, self._present.devices
        if own is None:
            return total
        v, value = state.voltages, self.values()  # type: ignore[attr-defined]
        along, drop = (v[:, self._first[place]] - v[:, self._second[place]] for place in (own.slope, own.rest))
        total = total - (0.5 * along**2 / value[own.slope] + drop * value[own.rest]).sum(axis=1)
        smooth = [devices[int(k)] for k in own.elements]
        return total + np.array([sum(d.energy(u) for d, u in zip(smooth, row)) for row in drop.tolist()])

    def parameter_difference(self, plus: State, minus: State, x: np.ndarray, weight: np.ndarray) -> Arrays:
        """Σ_b weight_b (∂E/∂θ at plus − ∂E/∂θ at minus); see `CircuitBlock.parameter_difference`.

        For a parameter of a device's law ∫ ∂i/∂θ dv between its two voltages (`circuitsim.newton.contrasts`).
        """
        found = super().parameter_difference(plus, minus, x, weight)
        if self._laws.rows:
            v = plus.voltages - minus.voltages, 0.5 * (plus.voltages + minus.voltages)  # type: ignore[attr-defined]
            i = plus.current - minus.current, 0.5 * (plus.current + minus.current)  # type: ignore[attr-defined]
            by_row = np.zeros((0, 0))
            if self._present.smooth is not None:
                by_row = self._contrasts(plus, minus, weight)
            found["law"] = self._by_law(by_row, v[0], (i[0], i[1]), weight)
        return found

    def _contrasts(self, plus: State, minus: State, weight: np.ndarray) -> np.ndarray:
        """Differences of ∂φ/∂p of the smooth devices (s, w)."""
        smooth = self._present.smooth
        assert smooth is not None
        ends = [self._junctions(smooth, state) for state in (plus, minus)]
        u, i = np.array([end[0] for end in ends]), np.array([end[1] for end in ends])
        out = np.empty(smooth.rows.shape)
        newton_kernel("contrasts", 50 * u.size)(smooth.rows, np.array(NODES), np.array(WEIGHTS), u, i, weight, out)
        return out

    def _junctions(self, smooth: Smooth, state: State) -> tuple[np.ndarray, np.ndarray]:
        """Voltages of the junctions, V, and currents of the devices, A (batch, s)."""
        v, current = state.voltages, state.current  # type: ignore[attr-defined]
        i = current[:, smooth.slope] + current[:, smooth.rest]
        return v[:, self._first[smooth.rest]] - v[:, self._second[smooth.rest]] - smooth.rows[:, 0] * i, i

    def _responses(self, state: State, adjoint: np.ndarray, currents: np.ndarray, weight: np.ndarray) -> Arrays:
        found = super()._responses(state, adjoint, currents, weight)
        if self._laws.rows:
            smooth, by_row = self._present.smooth, np.zeros((0, 0))
            if smooth is not None:
                a, b = self._first[smooth.rest], self._second[smooth.rest]
                u, by_row = self._junctions(smooth, state)[0], np.empty(smooth.rows.shape)
                newton_kernel("responses_of_laws", u.size)(
                    smooth.rows, u, adjoint[:, a] - adjoint[:, b], weight, by_row
                )
            i = currents, state.current  # type: ignore[attr-defined]
            found["law"] = self._by_law(by_row, adjoint, i, weight)
        return found

    def _by_law(
        self, by_row: np.ndarray, voltages: np.ndarray, currents: tuple[np.ndarray, np.ndarray], weight: np.ndarray
    ) -> np.ndarray:
        """Derivatives by the parameters of laws from those by the numbers that laws are made of.

        A resistance R has −i i', a source of a voltage −i, one of a current v, with the changes v, i and the level i'.
        """
        smooth, found = self._present.smooth, np.zeros(len(self._laws.rows))
        place = {} if smooth is None else {int(k): d for d, k in enumerate(smooth.elements)}
        for q, (row, slopes) in enumerate(zip(self._laws.rows, self._present.slopes)):
            if row.device in place:
                found[q] = slopes @ by_row[place[row.device], : slopes.size]
                continue
            for e, slope in zip(self._expansion.parts[row.device], slopes.tolist()):
                if slope == 0.0:
                    continue
                change = currents[0][:, e]
                if self._kind[e] == RESISTOR:
                    change = change * currents[1][:, e]
                if self._kind[e] == CURRENT:
                    change = voltages[:, self._second[e]] - voltages[:, self._first[e]]
                found[q] -= slope * (weight @ change)
        return found


class _Present(NamedTuple):
    """Devices at parameters: coordinates, devices by place, the smooth ones, and derivatives by the coordinates."""

    theta: np.ndarray
    devices: Mapping[int, Device]
    smooth: Smooth | None
    slopes: list[np.ndarray]


class AmplifiedBlock(CircuitBlock):
    """What `CircuitBlock` makes of a circuit with amplifiers; inputs and outputs are in volts and amperes.

    Attributes
    ----------
    parameters : dict of str to ndarray
        ``conductance`` (S), and ``current``, divided by the gain of the source's section (A).

    Raises
    ------
    AmplifierError
        Gains that contradict each other.
    UsageError
        An output between sections of different gain.
    """

    def __init__(
        self, circuit: Circuit, roles: Roles, tolerance: float = TOLERANCE, analyse: Analyse | None = None
    ) -> None:
        image = without_amplifiers(circuit)
        self._outside, self._outer_roles, self._gain, self._node_gain = circuit, roles, image.element, image.node
        fed = np.array([circuit.element_index(name) for name in roles.inputs], dtype=np.int64)
        self._fed_gain = image.element[fed]
        self._output_gain = np.array([self._gain_of(image.node, p, q) for p, q in roles.outputs])
        kind = circuit.arrays().kind
        trainable = []
        for item in roles.trainable:
            k = circuit.element_index(item.name)
            c = image.element[k] if kind[k] == CURRENT else 1.0
            trainable.append(item._replace(minimum=item.minimum / c, maximum=item.maximum / c))
        super().__init__(image.circuit, roles._replace(trainable=tuple(trainable)), tolerance, analyse)

    def _gain_of(self, gain: np.ndarray, p: str, q: str) -> float:
        """The gain of an output; ground belongs to every section."""
        ends = [self._outside.node_index(node) for node in (p, q)]
        found = {float(gain[node]) for node in ends if node != GROUND} or {1.0}
        if max(found) / min(found) > 1.0 + 1e-12:
            raise UsageError(f"the output v({p},{q}) lies between sections of different gain: read v({p}) and v({q})")
        return max(found)

    def trained(self) -> Circuit:
        """The circuit, amplifiers included, at the present parameters."""
        inside = super().trained()
        values = {}
        for item in self._outer_roles.trainable:
            k = inside.element_index(item.name)
            c = float(self._gain[k]) if inside.arrays().kind[k] == CURRENT else 1.0
            values[item.name] = min(max(float(inside.arrays().value[k]) * c, item.minimum), item.maximum)
        return self._outside.with_values(values)

    def relax(self, x: np.ndarray, nudge: Nudge | None = None, start: State | None = None) -> CircuitState:
        """Operating points for the rows of ``x``, V or A; see `CircuitBlock.relax`."""
        return self._out(super().relax(x / self._fed_gain, self._inner_nudge(nudge), start))

    def _inner_nudge(self, nudge: Nudge | None) -> Nudge | None:
        if nudge is None or nudge.follow is not None:
            return nudge
        c = self._output_gain
        if nudge.stiffness and c.max() > c.min():
            raise UsageError("outputs of different gain cannot share one nudging conductance: nudge by a current")
        return Nudge(nudge.linear * c, nudge.stiffness * float(c[0]) ** 2)

    def _out(self, state: CircuitState) -> CircuitState:
        v, i, o = state.voltages * self._node_gain, state.current * self._gain, state.output * self._output_gain
        return state._replace(voltages=v, current=i, output=o)

    def _inside(self, state: State) -> CircuitState:
        """The state in the scale in which amplifiers are wires, but for its output."""
        v, i = state.voltages / self._node_gain, state.current / self._gain  # type: ignore[attr-defined]
        found: CircuitState = state._replace(voltages=v, current=i)  # type: ignore[attr-defined]
        return found

    def kinks(self, state: State) -> tuple[np.ndarray, int]:
        """(batch,) diodes without current and voltage at a state, and how many there are; see `CircuitBlock.kinks`."""
        return super().kinks(self._inside(state))

    def stiffness_limit(self) -> float:
        """Largest β, S, up to which a negative conductance −β across every output leaves the energy convex."""
        return super().stiffness_limit() / float(self._output_gain.max()) ** 2

    def clamp(self, x: np.ndarray, output: np.ndarray, start: State | None = None) -> CircuitState:
        """Operating points with the outputs held at given voltages; see `CircuitBlock.clamp`."""
        return self._out(super().clamp(x / self._fed_gain, output / self._output_gain, start))

    def energy(self, state: State, x: np.ndarray) -> np.ndarray:
        """(batch,) E at a state, in the scale in which amplifiers are wires, W."""
        return super().energy(self._inside(state), x / self._fed_gain)

    def parameter_difference(self, plus: State, minus: State, x: np.ndarray, weight: np.ndarray) -> Arrays:
        """Σ_b weight_b (∂E/∂θ at plus − ∂E/∂θ at minus); see `CircuitBlock.parameter_difference`."""
        return super().parameter_difference(self._inside(plus), self._inside(minus), x, weight)

    def input_difference(self, plus: State, minus: State, x: np.ndarray) -> np.ndarray:
        """(batch, inputs) ∂E/∂x at plus − ∂E/∂x at minus."""
        found: np.ndarray = super().input_difference(self._inside(plus), self._inside(minus), x)
        found /= self._fed_gain
        return found

    def implicit(
        self, state: State, x: np.ndarray, cotangent: np.ndarray, weight: np.ndarray
    ) -> tuple[Arrays, np.ndarray]:
        """Exact derivatives of cotangent · output by the adjoint; see `CircuitBlock.implicit`."""
        parameters, inputs = super().implicit(self._inside(state), x, cotangent * self._output_gain, weight)
        return parameters, inputs / self._fed_gain
