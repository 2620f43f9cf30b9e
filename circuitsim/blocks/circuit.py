"""`CircuitBlock`: any circuit as a block of learning.

The energy is E(v) = ½ Σ g Δv² + Σ I Δv (Scellier 2024, Theorem 1); inputs are source values, outputs are voltages
between node pairs, parameters the conductances of resistors and the currents of sources that may change. A nudge is a
current pushed into the output pairs and a conductance across them, so that a relaxation is a solve.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.kinks import diode_margins
from circuitsim.blocks.circuit_kernels import branch_products
from circuitsim.blocks.protocol import Arrays, Nudge, State
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.errors import UsageError
from circuitsim.netlist.roles import Adjustable, Roles

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
            from circuitsim.blocks.controlled import ControlledBlock

            if circuit.devices:
                raise UsageError("a circuit with devices and controlled sources can be solved, but not trained")
            return object.__new__(ControlledBlock)
        if cls is CircuitBlock and circuit.devices:
            from circuitsim.blocks.expanded import ExpandedBlock

            return object.__new__(ExpandedBlock)
        if cls is CircuitBlock and circuit.amplified:
            from circuitsim.blocks.amplified import AmplifiedBlock

            return object.__new__(AmplifiedBlock)
        return object.__new__(cls)

    def __getnewargs__(self) -> tuple[Circuit]:
        """What copies of estimators need to make the same class again."""
        return (self.circuit,)

    def __init__(
        self, circuit: Circuit, roles: Roles, tolerance: float = TOLERANCE, analyse: Analyse | None = None
    ) -> None:
        self.circuit, self.roles, self.tolerance = circuit, roles.require(), tolerance
        self.analyse = _default_solver() if analyse is None else analyse
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


def _default_solver() -> Analyse:
    from circuitsim.analysis.batched import batched

    return batched


def _unused(circuit: Circuit, name: str) -> str:
    while name in circuit:
        name += "_"
    return name
