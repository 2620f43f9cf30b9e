"""Circuits with bidirectional amplifiers as blocks: solved and differentiated in the scale with amplifiers as wires.

With v = c v' behind amplifiers of gain c in all, the energy of a resistor is ½ g (Δv')², and a nudge λ o + ½ κ o² of an
output o = c o' is c λ o' + ½ c² κ o'² there. So contrastive estimates are gradients of the loss without further
factors; Scellier (2024, Eq. 51), who nudges by ½ β o'², is short by c².
"""

from __future__ import annotations

import numpy as np

from circuitsim.blocks.circuit import Analyse, CircuitBlock, CircuitState
from circuitsim.blocks.protocol import Arrays, Nudge, State
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import GROUND, Circuit
from circuitsim.circuit.amplifiers import without_amplifiers
from circuitsim.circuit.elements import CURRENT
from circuitsim.errors import UsageError
from circuitsim.netlist.roles import Roles


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
