"""Deep resistive networks as blocks: crossbars of conductances between layers, diodes to ground, a linear last layer.

    E = ½ Σ_l Σ_jk g^l_jk (v^{l−1}_j / c_{l−1} − v^l_k / c_l)² + ½ leak Σ_l ‖v^l / c_l‖² − Σ_l b^l · v^l / c_l²

(Scellier 2024, §3 and Appendix D). c_l is the product of the gains of the bidirectional amplifiers behind layers 1 … l,
1 without amplifiers. Half of each hidden layer is excitatory (v ≥ 0), half inhibitory (v ≤ 0). Inputs are voltages,
doubled to [A x, −A x] because conductances have no sign, or currents into the first layer. The energy is convex, and
its box is met one layer at a time exactly: the column sums of g are the slopes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from functools import cache
from itertools import accumulate, pairwise
from operator import mul
from typing import Any

import numpy as np

from circuitsim._arrays import Array, device, namespace
from circuitsim.blocks.alternating import DenseCoupling, Layer, LayeredEnergy, LayeredState
from circuitsim.blocks.layered import LayeredBlock, Moved, Sweeps
from circuitsim.blocks.protocol import Arrays
from circuitsim.errors import TopologyError, UsageError


@dataclass(frozen=True)
class Crossbar(DenseCoupling):
    """Dense couplings by conductances, S: max(0, w), w uniform in ±spread/√lower; about half of them start at 0.

    An upper unit without any positive w (with few lower ones) has |w|, so that every unit has a conductance.
    """

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """(lower, upper), none negative."""
        limit = self.spread * self.lower**-0.5
        drawn = rng.uniform(-limit, limit, self.shape)
        drawn[:, ~(drawn > 0.0).any(axis=0)] *= -1.0
        return np.maximum(0.0, drawn, out=drawn)


@cache
def diodes(units: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of a hidden layer: its first half at 0 V or above, its second at 0 V or below; not to be changed."""
    excitatory = np.arange(units) < units // 2
    return np.where(excitatory, 0.0, -np.inf), np.where(excitatory, np.inf, 0.0)


@dataclass(eq=False, repr=False)
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
    sweeps, dtype
        As for `DeepHopfieldBlock`.
    spread : float
        Conductances start as max(0, w), w uniform in ±spread/√(nodes before them).
    rng : Generator, int, or mapping
        Source of the conductances; or all arrays by name.
    gains : sequence of float
        Of the bidirectional amplifiers behind each layer; none by default.

    Attributes
    ----------
    parameters : dict of array
        ``conductances0`` of the inputs (2 · inputs, first layer; rows of +x first), ``conductances1`` …, S; ``bias1``
        …, A.

    Notes
    -----
    A nudge acts on the physical outputs, so that contrastive estimates are gradients of the loss without further
    factors: the nudge β (c_L)² of Scellier's Appendix D.

    Raises
    ------
    TopologyError
        When relaxed: a node has no conductance at all, so that its voltage is not determined.
    """

    kind = "resistive"
    weight_name = "conductances"

    layers: Sequence[int]
    inputs: int | None = None
    gain: float = 1.0
    leak: float | None = None
    sweeps: Sweeps = field(default_factory=Sweeps)
    spread: float = 1.0
    rng: InitVar[Any] = 0
    dtype: InitVar[Any] = np.float64
    gains: Sequence[float] = ()

    def __post_init__(self, rng: Any, dtype: Any) -> None:
        layers, inputs, gains = self.layers, self.inputs, self.gains
        self.leak = (1.0 if inputs is None else 0.0) if self.leak is None else self.leak
        if not (self.leak >= 0 and self.gain > 0 and math.isfinite(self.leak) and math.isfinite(self.gain)):
            raise UsageError(f"the leak must be at least 0 and the gain above 0, not {self.leak} and {self.gain}")
        if inputs is None and self.leak == 0:
            raise UsageError("current inputs need a path to ground: give the nodes a leak")
        if gains and (len(gains) != len(layers) or not all(0 < a < math.inf for a in gains)):
            raise UsageError(f"{len(layers)} amplifiers with positive gains are needed, one a layer, not {gains}")
        self._scales = list(accumulate(gains or [1.0] * len(layers), mul))
        entry = None if inputs is None else Crossbar(2 * inputs, layers[0], self.spread)
        couplings = [Crossbar(lower, upper, self.spread) for lower, upper in pairwise(layers)]
        shapes = [Layer((units,), 1.0, *diodes(units)) for units in layers[:-1]]
        self._assemble([*shapes, *(Layer((units,)) for units in layers[-1:])], couplings, entry, rng, dtype)

    def energy(self, state: LayeredState, x: Array) -> Array:
        """The untilted energy at a state, W, that of the inputs themselves included.

        The arguments are those of `EnergyBlock.energy`.
        """
        total = super().energy(state, x)
        if self._entry is None:
            return total
        xp, volts = namespace(total), self._entered(x)
        return total + 0.5 * xp.sum(volts * volts * xp.sum(self._weights(0), axis=1), axis=1)

    def stiffness(self) -> float:
        """Mean conductance, S, at an output node: what a nudge is measured against."""
        return float(namespace(self.parameters["bias1"]).mean(self._energy_of([]).layers[-1].slope))

    def project(self) -> None:
        """No conductance below zero."""
        for name, array in self.parameters.items():
            if name.startswith(self.weight_name):
                xp = namespace(array)
                array[...] = xp.maximum(array, xp.zeros_like(array))

    def _energy_of(self, constants: Sequence[Array]) -> LayeredEnergy:
        """In volts: slopes Σ g / c², couplings g / (c_{l−1} c_l)."""
        layers = []
        for layer, total, c in zip(self._layers, self._conductance_sums(), self._scales):
            xp = namespace(total)
            bounds = [layer.lower, layer.upper]
            if layer.bounded:
                bounds = [xp.asarray(bound, dtype=total.dtype, device=device(total)) for bound in bounds]
            layers.append(Layer(layer.shape, total / c**2, *bounds))
        products = enumerate((below * c for below, c in pairwise(self._scales)), start=1)
        couplings = [self._couplings[k - 1].bind(self._weights(k) / c) for k, c in products]
        return LayeredEnergy(layers, couplings, self._scaled(constants), local=True)

    def _conductance_sums(self) -> list[Array]:
        """Total conductance at each node, S."""
        sums, crossbars = [], [self.parameters.get(f"conductances{k}") for k in range(len(self._layers) + 1)]
        for number, (before, after) in enumerate(pairwise(crossbars), start=1):
            bias = self.parameters[f"bias{number}"]
            xp = namespace(bias)
            total = (xp.zeros_like(bias) if before is None else xp.sum(before, axis=0)) + self.leak
            total = total if after is None else total + xp.sum(after, axis=1)
            if not bool(xp.all(total > 0)):
                where = int(xp.argmin(total))
                raise TopologyError(
                    f"node {where} of layer {number} has no conductance left: give the nodes a leak to ground"
                )
            sums.append(total)
        return sums

    def _entered(self, x: Array) -> Array:
        x = super()._entered(x)
        return x if self._entry is None else namespace(x).concat([self.gain * x, -self.gain * x], axis=1)

    def _biases(self) -> list[Array]:
        return self._scaled(super()._biases())

    def _scaled(self, layers: Sequence[Array]) -> list[Array]:
        """Each layer's array over c."""
        return [array / c for array, c in zip(layers, self._scales)]

    def _derivative(self, x: Array, layers: Moved, lifted: Moved) -> Arrays:
        """½ (v_j − v_k)² changes by (m_j − m_k)(d_j − d_k) when the layers move by d about their means m."""
        layers = [(mean / c, move / c) for (mean, move), c in zip(layers, self._scales)]
        found = super()._derivative(x, layers, layers[1:])
        own = [namespace(move).sum(mean * move, axis=0) for mean, move in layers]
        for index, (total, c) in enumerate(zip(own, self._scales)):
            if index or self._entry is not None:
                found[f"conductances{index}"] += total
            if index:
                found[f"conductances{index}"] += own[index - 1][:, None]
            found[f"bias{index + 1}"] = found[f"bias{index + 1}"] / c
        return found

    def _input_derivative(self, move: Array) -> Array:
        """(batch, inputs): A times the currents that +x and −x deliver, or minus the voltages x is driven into."""
        back = super()._input_derivative(move / self._scales[0])
        count = self.n_inputs
        return back if self._entry is None else self.gain * (back[:, :count] - back[:, count:])
