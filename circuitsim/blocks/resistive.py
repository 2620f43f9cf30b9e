"""Deep resistive networks as blocks: crossbars of conductances between layers, diodes to ground, a linear last layer.

    E = ½ Σ_l Σ_jk g^l_jk (v^{l−1}_j − v^l_k)² + ½ leak Σ_l ‖v^l‖² − Σ_l b^l · v^l        (Scellier 2024, §3)

Half of each hidden layer is excitatory (v ≥ 0), half inhibitory (v ≤ 0). Inputs are voltages, doubled to [A x, −A x]
because conductances have no sign, or currents into the first layer. The energy is convex, and its box is met one layer
at a time exactly: the column sums of g are the slopes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from circuitsim._arrays import Array, device, namespace
from circuitsim.blocks.alternating import Layer, LayeredEnergy
from circuitsim.blocks.couplings import DenseCouplingSpec
from circuitsim.blocks.layered import LayeredBlock, LayeredState, Sweeps
from circuitsim.blocks.protocol import Arrays
from circuitsim.errors import TopologyError, UsageError


@dataclass(frozen=True)
class Crossbar(DenseCouplingSpec):
    """Dense couplings by conductances, S: max(0, w) of uniform w, so that half of them start at zero."""

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """(lower, upper), none negative."""
        return np.maximum(0.0, super().draw(rng))


class ResistiveBlock(LayeredBlock):
    """A deep resistive network with voltage or current inputs.

    Parameters
    ----------
    layers : sequence of int
        Nodes of each layer after the inputs, first to last.
    inputs : int, optional
        Input voltages; left out, x is a current, A, into each node of the first layer.
    gain : float
        A: volts for each unit of x.
    leak : float
        Conductance, S, from every node to ground.
    sweeps, rng, dtype
        As for `DeepHopfieldBlock`.
    spread : float
        Conductances start as max(0, w), w uniform in ±spread/√(nodes before them).

    Attributes
    ----------
    parameters : dict of array
        ``conductances0`` of the inputs (2 · inputs, first layer), ``conductances1`` …, S; ``bias1`` …, A.

    Raises
    ------
    TopologyError
        When relaxed: a node has no conductance at all, so that its voltage is anyone's guess.
    """

    kind = "resistive"
    weight_name = "conductances"

    def __init__(
        self, layers: Sequence[int], inputs: int | None = None, gain: float = 1.0, leak: float | None = None,
        sweeps: Sweeps | None = None, spread: float = 1.0, rng: Any = 0, dtype: Any = np.float64,
    ) -> None:  # fmt: skip
        leak = (1.0 if inputs is None else 0.0) if leak is None else leak
        sweeps = sweeps or Sweeps()
        if not (leak >= 0 and gain > 0 and math.isfinite(leak) and math.isfinite(gain)):
            raise UsageError(f"the leak must not be negative and the gain positive, not {leak} and {gain}")
        if inputs is None and leak == 0:
            raise UsageError("current inputs need a path to ground: give the nodes a leak")
        self.options = {
            "layers": list(layers), "inputs": inputs, "gain": gain, "leak": leak, "sweeps": asdict(sweeps),
            "spread": spread,
        }  # fmt: skip
        self._leak, self._gain = leak, gain
        entry = None if inputs is None else Crossbar(2 * inputs, layers[0], spread)
        specs = [Crossbar(lower, upper, spread) for lower, upper in pairwise(layers)]
        shapes = [Layer((units,), 1.0, *_diodes(units)) for units in layers[:-1]] + [
            Layer((units,), 1.0, None, None) for units in layers[-1:]
        ]
        super().__init__(shapes, specs, entry, sweeps, rng, dtype)

    @property
    def n_inputs(self) -> int:
        """Length of one row of x."""
        return self._layers[0].shape[0] if self._inputs is None else self._inputs.lower // 2

    def input_difference(self, plus: LayeredState, minus: LayeredState, x: Array) -> Array:
        """(batch, inputs): A times the currents that +x and −x deliver, or minus the voltages x is driven into."""
        return self._input_derivative(plus.layers[0] - minus.layers[0])

    def energy(self, state: LayeredState, x: Array) -> Array:
        """(batch,) the untilted energy at a state, W; that of the inputs themselves included."""
        total = self._layered_energy().energy(self._constants(x), state.layers)
        if self._inputs is None:
            return total
        xp = namespace(total)
        volts = self._volts(self._cast(x))
        return total + 0.5 * xp.sum(volts * volts * xp.sum(self._weights(0), axis=1), axis=1)

    def stiffness(self) -> float:
        """Mean conductance, S, at an output node: what a nudge is measured against."""
        return float(namespace(self.parameters["bias1"]).mean(self._conductance_sums()[-1]))

    def project(self) -> None:
        """No conductance below zero."""
        for name, array in self.parameters.items():
            if name.startswith(self.weight_name):
                xp = namespace(array)
                array[...] = xp.maximum(array, xp.zeros_like(array))

    def _volts(self, x: Array) -> Array:
        return namespace(x).concat([x * self._gain, x * -self._gain], axis=1)

    def _layered_energy(self) -> LayeredEnergy:
        layered_energy = super()._layered_energy()
        like = self.parameters["bias1"]
        xp = namespace(like)
        layers = []
        for layer, slope in zip(layered_energy.layers, self._conductance_sums(), strict=True):
            lower, upper = (
                None if bound is None else xp.asarray(bound, dtype=like.dtype, device=device(like))
                for bound in (layer.lower, layer.upper)
            )
            layers.append(Layer(layer.shape, slope, lower, upper))
        return LayeredEnergy(layers, layered_energy.couplings)

    def _conductance_sums(self) -> list[Array]:
        """Total conductance at each node, S."""
        xp = namespace(self.parameters["bias1"])
        sums = [xp.zeros_like(self.parameters[f"bias{i}"]) + self._leak for i in range(1, len(self._layers) + 1)]
        if self._inputs is not None:
            sums[0] = sums[0] + xp.sum(self._weights(0), axis=0)
        for index in range(1, len(self._layers)):
            sums[index - 1] = sums[index - 1] + xp.sum(self._weights(index), axis=1)
            sums[index] = sums[index] + xp.sum(self._weights(index), axis=0)
        for number, total in enumerate(sums, start=1):
            if not bool(xp.all(total > 0)):
                where = int(xp.argmin(total))
                raise TopologyError(
                    f"node {where} of layer {number} has no conductance left: give the nodes a leak to ground"
                )
        return sums

    def _constants(self, x: Array) -> list[Array]:
        if self._inputs is None:
            return super()._constants(x)
        if x.ndim != 2 or x.shape[1] != self.n_inputs:
            raise UsageError(f"this block takes rows of {self.n_inputs} inputs, not an array of shape {tuple(x.shape)}")
        half = self.n_inputs
        effective = self._weights(0)[:half, :] - self._weights(0)[half:, :]
        constants = [self.parameters[f"bias{index}"] for index in range(1, len(self._layers) + 1)]
        constants[0] = (self._cast(x) @ effective) * self._gain + constants[0]
        return constants

    def _derivative(
        self, x: Array, means: list[Array], moves: list[Array], lifted: list[tuple[Array, Array]]
    ) -> Arrays:
        """½ (v_j − v_k)² moves by (m_j − m_k)(d_j − d_k): the products common to couplings, and each node's own."""
        gradients = super()._derivative(x, means, moves, lifted)
        own = [namespace(m).sum(m * d, axis=0) for m, d in zip(means, moves, strict=True)]
        if self._inputs is not None:
            cross = self._inputs.outer(self._volts(self._cast(x)), moves[0])
            gradients["conductances0"] = own[0][None, :] - cross
        for index in range(1, len(self._layers)):
            gradients[f"conductances{index}"] += own[index - 1][:, None] + own[index][None, :]
        return gradients

    def _input_derivative(self, move: Array) -> Array:
        if self._inputs is None:
            return -move
        half = self.n_inputs
        effective = self._weights(0)[:half, :] - self._weights(0)[half:, :]
        return -self._gain * (move @ effective.T)


def _diodes(units: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of a hidden layer: its first half at 0 V or above, its second at 0 V or below."""
    excitatory = np.arange(units) < units // 2
    return np.where(excitatory, 0.0, -np.inf), np.where(excitatory, np.inf, 0.0)
