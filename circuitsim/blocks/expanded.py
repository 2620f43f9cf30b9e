"""Circuits with devices as blocks: solved and differentiated as the elementary elements they consist of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.batch import BatchSolver
from circuitsim.analysis.batched import batched
from circuitsim.analysis.newton import Smooth, smooth_devices
from circuitsim.analysis.tangent_batch import TangentBatch
from circuitsim.blocks.circuit import Analyse, CircuitBlock
from circuitsim.blocks.law_parameters import LawParameters
from circuitsim.blocks.protocol import Arrays, State
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, RESISTOR
from circuitsim.circuit.expansion import expanded
from circuitsim.errors import UsageError
from circuitsim.models import Device
from circuitsim.models.smooth import SmoothDevice
from circuitsim.netlist.roles import Adjustable, Roles
from circuitsim.newton.contrasts import NODES, WEIGHTS
from circuitsim.newton.kernels import newton_kernel


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
