"""Deep resistive networks as blocks: crossbars of conductances between layers, diodes to ground, a linear last layer.

    E = ½ Σ_l Σ_jk g^l_jk (v^{l−1}_j / c_{l−1} − v^l_k / c_l)² + ½ leak Σ_l ‖v^l / c_l‖² − Σ_l b^l · v^l / c_l²

(Scellier 2024, §3 and Appendix D). c_l is the product of the gains of the bidirectional amplifiers behind layers 1 … l,
1 without amplifiers. Half of each hidden layer is excitatory (v ≥ 0), half inhibitory (v ≤ 0). Inputs are voltages,
doubled to [A x, −A x] because conductances have no sign, or currents into the first layer. The energy is convex, and
its box is met one layer at a time exactly: the column sums of g are the slopes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import accumulate, pairwise
from operator import mul
from typing import Any

import numpy as np

from circuitsim._arrays import Array, device, namespace
from circuitsim.blocks.alternating import Layer, LayeredEnergy
from circuitsim.blocks.couplings import DenseCoupling, DenseCouplingSpec
from circuitsim.blocks.layered import LayeredBlock, LayeredState, Sweeps
from circuitsim.blocks.protocol import Arrays, Nudge
from circuitsim.errors import ConvergenceError, TopologyError, UsageError


def conductance_rows(
    shape: tuple[int, int], limit: float, rng: np.random.Generator
) -> Iterator[tuple[slice, np.ndarray]]:
    """max(0, w), w uniform in ±limit: about half the conductances start at 0. Some rows at a time.

    A unit without any positive w (with few inputs) has |w| in the last rows, so that every unit has a conductance.
    """
    some = max(1, 2**18 // shape[1])
    connected = np.zeros(shape[1], bool)
    for start in range(0, shape[0], some):
        rows = slice(start, min(shape[0], start + some))
        drawn = rng.uniform(-limit, limit, (rows.stop - start, shape[1]))
        connected |= (drawn > 0.0).any(axis=0)
        if rows.stop == shape[0]:
            drawn[:, ~connected] *= -1.0
        yield rows, np.maximum(0.0, drawn)


@dataclass(frozen=True)
class Crossbar(DenseCouplingSpec):
    """Dense couplings by conductances, S: `conductance_rows` with the limit spread/√lower."""

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """(lower, upper), none negative."""
        rows = conductance_rows(self.shape, self.spread * self.lower**-0.5, rng)
        return np.concatenate([some for _, some in rows])


def total_conductances(load: Array, crossbars: Sequence[Array], leak: float = 0.0) -> list[Array]:
    """Total conductance at each unit, S: ``load`` of the first layer's inputs, crossbars to layers 2 …, leak."""
    xp = namespace(load)
    sums = [load + leak] + [xp.sum(g, axis=0) + leak for g in crossbars]
    for layer, g in enumerate(crossbars):
        sums[layer] = sums[layer] + xp.sum(g, axis=1)
    return sums


def resistive_energy(sums: Sequence[Array], crossbars: Sequence[Array]) -> LayeredEnergy:
    """The energy of layers with these total conductances, joined by crossbars; the last layer has no diodes."""
    xp, like = namespace(sums[0]), sums[0]
    layers = []
    for number, total in enumerate(sums, start=1):
        units = total.shape[0]
        lower, upper = (
            None if number == len(sums) else xp.asarray(bound, dtype=like.dtype, device=device(like))
            for bound in diodes(units)
        )
        layers.append(Layer((units,), total, lower, upper))
    return LayeredEnergy(layers, [DenseCoupling(g) for g in crossbars], local=True)


def crossbar_gradients(means: Sequence[Array], moves: Sequence[Array]) -> tuple[Array, list[Array]]:
    """Change of ½ Σ_b (v_j − v_k)² as layers move about their means, without cancellation: (m_j − m_k)(d_j − d_k).

    Returns
    -------
    own : (units,) array
        Σ_b m d of the first layer.
    inner : list of array
        By the conductances between layers l and l + 1.
    """
    own = [namespace(m).sum(m * d, axis=0) for m, d in zip(means, moves, strict=True)]
    inner = []
    for index, ((mj, mk), (dj, dk)) in enumerate(zip(pairwise(means), pairwise(moves))):
        inner.append(own[index][:, None] + own[index + 1][None, :] - dj.T @ mk - mj.T @ dk)
    return own[0], inner


@cache
def diodes(units: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of a hidden layer: its first half at 0 V or above, its second at 0 V or below; not to be changed."""
    excitatory = np.arange(units) < units // 2
    return np.where(excitatory, 0.0, -np.inf), np.where(excitatory, np.inf, 0.0)


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
    gains : sequence of float
        Of the bidirectional amplifiers behind each layer; none by default.
    parameters : mapping, optional
        Arrays by name, in place of random ones.
    copy : bool, optional
        None takes arrays of the block's type as they are, without a copy.

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

    def __init__(
        self,
        layers: Sequence[int],
        inputs: int | None = None,
        gain: float = 1.0,
        leak: float | None = None,
        sweeps: Sweeps | None = None,
        spread: float = 1.0,
        rng: Any = 0,
        dtype: Any = np.float64,
        gains: Sequence[float] = (),
        parameters: Mapping[str, np.ndarray] | None = None,
        copy: bool | None = True,
    ) -> None:
        leak = (1.0 if inputs is None else 0.0) if leak is None else leak
        sweeps = sweeps or Sweeps()
        if not (leak >= 0 and gain > 0 and math.isfinite(leak) and math.isfinite(gain)):
            raise UsageError(f"the leak must not be negative and the gain positive, not {leak} and {gain}")
        if inputs is None and leak == 0:
            raise UsageError("current inputs need a path to ground: give the nodes a leak")
        if gains and (len(gains) != len(layers) or not all(0 < a < math.inf for a in gains)):
            raise UsageError(f"{len(layers)} amplifiers with positive gains are needed, one a layer, not {gains}")
        self.options = {
            "layers": list(layers),
            "inputs": inputs,
            "gain": gain,
            "leak": leak,
            "sweeps": asdict(sweeps),
            "spread": spread,
            "gains": [float(a) for a in gains],
        }
        self._leak, self._gain = leak, gain
        # Without amplifiers nothing is scaled.
        self._scales = list(accumulate(gains, mul)) if any(a != 1 for a in gains) else None
        entry = None if inputs is None else Crossbar(2 * inputs, layers[0], spread)
        specs = [Crossbar(lower, upper, spread) for lower, upper in pairwise(layers)]
        shapes = [Layer((units,), 1.0, *diodes(units)) for units in layers[:-1]] + [
            Layer((units,), 1.0, None, None) for units in layers[-1:]
        ]
        super().__init__(shapes, specs, entry, sweeps, rng, dtype, parameters, copy)

    @property
    def n_inputs(self) -> int:
        """Length of one row of x."""
        return self._layers[0].shape[0] if self._inputs is None else self._inputs.lower // 2

    def relax(self, x: Array, nudge: Nudge | None = None, start: LayeredState | None = None) -> LayeredState:
        """The state of least (tilted) energy of each row of x; the arguments are those of `EnergyBlock.relax`.

        Raises
        ------
        TopologyError
            A node has no conductance.
        ConvergenceError
            The nudge takes away more conductance than an output has.
        """
        if nudge is not None and nudge.stiffness < 0:
            slope = self._layered_energy().layers[-1].slope
            if not bool(namespace(slope).all(slope + nudge.stiffness > 0)):
                raise ConvergenceError(f"a nudge of {nudge.stiffness} S takes away more conductance than an output has")
        return super().relax(x, nudge, start)

    def energy(self, state: LayeredState, x: Array) -> Array:
        """The untilted energy at a state, W, that of the inputs themselves included.

        The arguments are those of `EnergyBlock.energy`.
        """
        total = self._layered_energy().energy(self._constants(x), state.layers)
        if self._inputs is None:
            return total
        xp = namespace(total)
        x = self._cast(x) * self._gain
        rows = xp.sum(self._weights(0), axis=1)
        return total + 0.5 * xp.sum(x * x * (rows[: self.n_inputs] + rows[self.n_inputs :]), axis=1)

    def stiffness(self) -> float:
        """Mean conductance, S, at an output node: what a nudge is measured against."""
        return float(namespace(self.parameters["bias1"]).mean(self._layered_energy().layers[-1].slope))

    def project(self) -> None:
        """No conductance below zero."""
        for name, array in self.parameters.items():
            if name.startswith(self.weight_name):
                xp = namespace(array)
                array[...] = xp.maximum(array, xp.zeros_like(array))

    def _layered_energy(self) -> LayeredEnergy:
        """In volts: slopes Σ g / c², couplings g / (c_{l−1} c_l)."""
        sums = self._conductance_sums()
        crossbars = [self._weights(index) for index in range(1, len(self._layers))]
        if self._scales is not None:
            sums = [total / c**2 for total, c in zip(sums, self._scales)]
            crossbars = [g / (below * c) for g, (below, c) in zip(crossbars, pairwise(self._scales))]
        return resistive_energy(sums, crossbars)

    def _conductance_sums(self) -> list[Array]:
        """Total conductance at each node, S."""
        xp = namespace(self.parameters["bias1"])
        load = xp.zeros_like(self.parameters["bias1"]) if self._inputs is None else xp.sum(self._weights(0), axis=0)
        sums = total_conductances(load, [self._weights(i) for i in range(1, len(self._layers))], self._leak)
        for number, total in enumerate(sums, start=1):
            if not bool(xp.all(total > 0)):
                where = int(xp.argmin(total))
                raise TopologyError(
                    f"node {where} of layer {number} has no conductance left: give the nodes a leak to ground"
                )
        return sums

    def _constants(self, x: Array) -> list[Array]:
        self._check_shape(x)
        x = self._cast(x)
        pull = x if self._inputs is None else (x @ self._effective()) * self._gain
        constants = self._scaled([self.parameters[f"bias{index}"] for index in range(1, len(self._layers) + 1)])
        constants[0] = pull + constants[0]
        return self._scaled(constants)

    def _scaled(self, layers: Sequence[Array]) -> list[Array]:
        """Each layer's array over c."""
        return list(layers) if self._scales is None else [a / c for a, c in zip(layers, self._scales, strict=True)]

    def _effective(self) -> Array:
        """(inputs, first layer) conductances of +x less those of −x, S."""
        return self._weights(0)[: self.n_inputs, :] - self._weights(0)[self.n_inputs :, :]

    def _derivative(
        self, x: Array, means: list[Array], moves: list[Array], lifted: list[tuple[Array, Array]]
    ) -> Arrays:
        """Change of ∂E/∂θ when the layers move about their means."""
        moves = self._scaled(moves)
        own, inner = crossbar_gradients(self._scaled(means), moves)
        gradients: Arrays = {}
        if self._inputs is not None:
            xp = namespace(own)
            product = self._cast(x).T @ moves[0] * self._gain
            gradients["conductances0"] = xp.concat([own - product, own + product])
        gradients |= {f"conductances{index}": by for index, by in enumerate(inner, start=1)}
        by_bias = self._scaled([-namespace(d).sum(d, axis=0) for d in moves])
        return gradients | {f"bias{index}": by for index, by in enumerate(by_bias, start=1)}

    def _input_derivative(self, move: Array) -> Array:
        """(batch, inputs): A times the currents that +x and −x deliver, or minus the voltages x is driven into."""
        move = move if self._scales is None else move / self._scales[0]
        return -move if self._inputs is None else -self._gain * (move @ self._effective().T)
