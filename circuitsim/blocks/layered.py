"""Alternating layers as blocks: what Hopfield and resistive networks share, couplings, differences of states; and deep
resistive networks.

A nudge of negative strength takes curvature away. Where too much is gone the energy falls without end along some
direction: the sweeps diverge, slowly at first, and differences of such states are no gradients.

Deep resistive networks are crossbars of conductances between layers, diodes to ground, a linear last layer:

    E = ½ Σ_l Σ_jk g^l_jk (v^{l−1}_j / c_{l−1} − v^l_k / c_l)² + ½ leak Σ_l ‖v^l / c_l‖² − Σ_l b^l · v^l / c_l²

(Scellier 2024, §3 and Appendix D). c_l is the product of the gains of the bidirectional amplifiers behind layers 1 … l,
1 without amplifiers. Half of each hidden layer is excitatory (v ≥ 0), half inhibitory (v ≤ 0). Inputs are voltages,
doubled to [A x, −A x] because conductances have no sign, or currents into the first layer. The energy is convex, and
its box is met one layer at a time exactly: the column sums of g are the slopes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import InitVar, asdict, dataclass, field, replace
from functools import cache
from itertools import accumulate, pairwise
from operator import mul
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from circuitsim._arrays import Array, clip_into, device, namespace, to_numpy
from circuitsim.blocks.alternating import Coupling, DenseCoupling, Layer, LayeredEnergy, LayeredState, rows
from circuitsim.blocks.protocol import Arrays, Nudge
from circuitsim.errors import TopologyError, UsageError
from circuitsim.training.checkpoint import load_checkpoint, save_checkpoint

KINK = 1e-9
"""A unit at a bound whose minimum without it is within this fraction of max(1, |s|) of it is at a kink."""

Moved = Sequence[tuple[Array, Array]]
"""Layers: means, and moves about them."""


@dataclass(frozen=True)
class Sweeps:
    """How a layered block relaxes.

    Parameters
    ----------
    free, nudged : int
        Sweeps of a phase; with a tolerance, the most that are made.
    tolerance : float, optional
        Stop when a sweep moves no unit by more than this, relative to its scale (`LayeredEnergy.scale`); states with a
        larger residual are not certified.
    reverse_nudged : bool
        Nudged sweeps take even layers first, free ones odd layers: then t nudged sweeps from a free minimum are t
        steps of backpropagation through it (Nest & Ernoult 2024, App. A.5).
    """

    free: int = 20
    nudged: int = 20
    tolerance: float | None = None
    reverse_nudged: bool = True

    def __post_init__(self) -> None:
        if min(self.free, self.nudged) < 1:
            raise UsageError(f"at least one sweep is needed, not {self.free} free and {self.nudged} nudged ones")
        if self.tolerance is not None and not 0 < self.tolerance < 1:
            raise UsageError(f"a tolerance must be positive and below 1, not {self.tolerance}")


class LayeredBlock:
    """An energy on layers, each coupled to its neighbours only; families are dataclasses that `_assemble` theirs.

    Attributes
    ----------
    parameters : dict of array
        The couplings' weights, number 0 those of the inputs (if any), then 1 … between layers l and l + 1; and
        ``bias1`` … of the layers.
    sweeps : Sweeps
    """

    kind: ClassVar[str]
    parameters: dict[str, Any]
    sweeps: Sweeps
    inputs: int | None = None
    #: Name of the couplings' weights.
    weight_name: ClassVar[str] = "weights"

    def _assemble(
        self,
        layers: Sequence[Layer],
        couplings: Sequence[Coupling],
        entry: DenseCoupling | None,
        rng: Any,
        dtype: Any,
    ) -> None:
        if not layers or any(size < 1 for layer in layers for size in layer.shape):
            shapes = [layer.shape for layer in layers]
            raise TopologyError(f"a block needs layers of at least one unit, not {shapes}")
        self._layers, self._couplings, self._entry = tuple(layers), tuple(couplings), entry
        self.initialise(rng, dtype)

    def __repr__(self) -> str:
        layers = "-".join("×".join(map(str, layer.shape)) for layer in self._layers)
        count = sum(math.prod(array.shape) for array in self.parameters.values())
        inputs = f"{self.n_inputs} inputs" + ("" if self._entry is None else " with weights")
        dtype = str(self.parameters["bias1"].dtype).removeprefix("torch.")
        return f"{type(self).__name__}({inputs}, layers {layers}, {count:,} parameters, {dtype})"

    @property
    def options(self) -> dict[str, Any]:
        """The constructor's arguments as JSON values, without those of the initial parameters."""
        found = asdict(self)  # type: ignore[call-overload]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}

    def initialise(self, rng: Any, dtype: Any = np.float64) -> None:
        """Redraw the weights and reset the biases.

        Parameters
        ----------
        rng : Generator, int or mapping
            A source of chance, or its seed; or all arrays by name, which are copied.
        dtype : dtype
            Of the parameters.
        """
        given = rng if isinstance(rng, Mapping) else None
        rng = np.random.default_rng(rng if given is None else 0)
        every = enumerate([self._entry, *self._couplings])
        drawn = {f"{self.weight_name}{i}": c.draw(rng).astype(dtype) for i, c in every if c is not None}
        for index, layer in enumerate(self._layers, start=1):
            drawn[f"bias{index}"] = np.full(layer.shape[-1], layer.bias, dtype)
        if given is not None:
            wanted = {name: array.shape for name, array in drawn.items()}
            if {name: np.shape(array) for name, array in given.items()} != wanted:
                raise UsageError(f"the parameters must have shapes {wanted}")
            drawn = {name: np.array(given[name], dtype) for name in wanted}
        self.parameters = drawn

    def at(self, parameters: Mapping[str, Array]) -> Self:
        """A copy of the network with these parameters, converted to its own types."""
        other = copy(self)
        other.parameters = {
            name: namespace(own).asarray(parameters[name], dtype=own.dtype, copy=True)
            for name, own in self.parameters.items()
        }
        return other

    def save(self, path: Path | str) -> None:
        """Write options and parameters as one npz of plain arrays and JSON text."""
        arrays = {name: to_numpy(array) for name, array in self.parameters.items()}
        facts = {"kind": self.kind, "options": self.options, "dtype": arrays["bias1"].dtype.name}
        save_checkpoint(path, arrays, facts)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        CheckpointError
            The file is missing, damaged, or holds another kind of network.
        """
        arrays, facts = load_checkpoint(path, kind=cls.kind)
        options = facts["options"]
        block = cls.__new__(cls)
        vars(block).update(options, sweeps=Sweeps(**options["sweeps"]))
        block.__post_init__(arrays, np.dtype(facts["dtype"]))  # type: ignore[attr-defined]
        return block

    @property
    def n_inputs(self) -> int:
        """Length of one row of x."""
        return math.prod(self._layers[0].shape) if self.inputs is None else self.inputs

    @property
    def n_outputs(self) -> int:
        """Units of the last layer."""
        return math.prod(self._layers[-1].shape)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of the last layer of one sample."""
        return self._layers[-1].shape

    def relax(self, x: Array, nudge: Nudge | None = None, start: LayeredState | None = None) -> LayeredState:
        """Alternate over odd and even layers (Nest & Ernoult 2024, Algs 6–7).

        Parameters
        ----------
        x : array (batch, n_inputs)
            Linear terms of the first layer, or factors of the input weights.
        nudge : Nudge, optional
            Tilt of the last layer; a clamped layer is clipped after it.
        start : LayeredState, optional
            Initial state; zero by default. A nudged phase starts at the free state, whose energy it tilts.

        Raises
        ------
        TopologyError
            A node of a circuit has no conductance.
        ConvergenceError
            The nudge takes away all of an output's curvature (of a circuit, its conductance).
        """
        # Within a batch the input's product is the same in every phase.
        energy = self._energy(x) if start is None or nudge is None else start.minimised
        begin, rule = self.resting(x.shape[0]) if start is None else start, self.sweeps
        if nudge is None:
            return energy.relax(begin, rule.free, False, rule.tolerance)
        return replace(energy, nudge=nudge).relax(begin, rule.nudged, rule.reverse_nudged, rule.tolerance)

    def resting(self, batch: int) -> LayeredState:
        """A batch of states with all units at zero, or at the bound nearest to it: where a free phase starts."""
        like = self.parameters["bias1"]
        xp, states = namespace(like), []
        for layer in self._layers:
            states.append(xp.zeros((batch, *layer.shape), dtype=like.dtype, device=device(like)))
            clip_into(xp, states[-1], layer.lower, layer.upper)
        return LayeredState(tuple(states), (None,) * len(self._couplings))

    def begun(self, layers: Sequence[Array]) -> LayeredState:
        """A state of these layers, for a free phase to start at."""
        return replace(self.resting(0), layers=tuple(layers))

    def energy(self, state: LayeredState, x: Array) -> Array:
        """(batch,) the untilted energy at a state."""
        return self._energy(x).energy(state.layers)

    def parameter_difference(self, plus: LayeredState, minus: LayeredState, x: Array, weight: Array) -> Arrays:
        """Σ_b weight_b (∂E/∂θ at plus − ∂E/∂θ at minus), from means and differences of the layers."""
        layers = [_apart(high, low, weight) for high, low in zip(plus.layers, minus.layers, strict=True)]
        above = zip(self._couplings, plus.layers[1:], minus.layers[1:], plus.switches, minus.switches)
        lifted = [_apart(c.lift(high, up), c.lift(low, down), weight) for c, high, low, up, down in above]
        return self._derivative(x, layers, lifted)

    def input_difference(self, plus: LayeredState, minus: LayeredState, x: Array) -> Array:
        """(batch, inputs) ∂E/∂x at plus − ∂E/∂x at minus."""
        return self._input_derivative(plus.layers[0] - minus.layers[0])

    def implicit(
        self, state: LayeredState, x: Array, cotangent: Array, weight: Array, sweeps: int | None = None
    ) -> tuple[Arrays, Array]:
        """Derivatives of cotangent · output at a free state by the adjoint: exact, or from so many of its sweeps."""
        sensitivity = state.minimised.response(state, cotangent, sweeps)
        moves = [-_shares(weight, value) * value for value in sensitivity]
        above = zip(self._couplings, state.layers[1:], moves[1:], state.switches)
        lifted = [(c.lift(mean, switches), c.lift(move, switches)) for c, mean, move, switches in above]
        layers = list(zip(state.layers, moves, strict=True))
        return self._derivative(x, layers, lifted), self._input_derivative(-sensitivity[0])

    def truncated(
        self, state: LayeredState, x: Array, cotangent: Array, weight: Array, sweeps: int | None = None
    ) -> tuple[Arrays, Array]:
        """Backpropagation through the last sweeps of a converged free phase (Nest & Ernoult 2024, Alg. 12).

        As `implicit`, but truncated after this number of sweeps (by default that of a nudged phase).
        """
        return self.implicit(state, x, cotangent, weight, self.sweeps.nudged if sweeps is None else sweeps)

    def kinks(self, state: LayeredState) -> tuple[np.ndarray, int]:
        """(batch,) units at a bound of a free state whose minimum without it is there too, and units with bounds."""
        energy, xp = state.minimised, namespace(state.layers[0])
        found: Any = 0
        for free, target, own in zip(energy.free(state.layers), energy.minima(state, False), state.layers):
            near = xp.abs(target - own) <= KINK * xp.maximum(xp.abs(own), xp.ones_like(own))
            found = found + to_numpy(rows(xp, near & ~free)).sum(axis=1)
        return found, state.active.shape[1]

    def project(self) -> None:
        """All values are allowed."""

    def _derivative(self, x: Array, layers: Moved, lifted: Moved) -> Arrays:
        """Σ_b of the change of ∂E/∂θ when the layers move about their means; moves carry the samples' weights."""
        gradients: Arrays = {}
        if self._entry is not None:
            gradients[f"{self.weight_name}0"] = -self._entry.outer(self._entered(x), layers[0][1])
        pairs = zip(self._couplings, layers, lifted)
        for index, (coupling, (mean, move), (mean_above, move_above)) in enumerate(pairs, start=1):
            total = coupling.outer(mean, move_above)
            total += coupling.outer(move, mean_above)
            gradients[f"{self.weight_name}{index}"] = -total
        for index, (_, move) in enumerate(layers, start=1):
            xp = namespace(move)
            gradients[f"bias{index}"] = -xp.sum(xp.reshape(move, (-1, move.shape[-1])), axis=0)
        return gradients

    def _input_derivative(self, move: Array) -> Array:
        """(batch, inputs) change of ∂E/∂x when the first layer moves."""
        move = rows(namespace(move), move)
        return -move if self._entry is None else -(move @ self._weights(0).T)

    def _energy(self, x: Array) -> LayeredEnergy:
        """For inputs."""
        x, constants = self._entered(x), self._biases()
        pull = x if self._entry is None else x @ self._weights(0)
        constants[0] = namespace(x).reshape(pull, (-1, *self._layers[0].shape)) + constants[0]
        return self._energy_of(constants)

    def _energy_of(self, constants: Sequence[Array]) -> LayeredEnergy:
        """For the layers' linear terms."""
        couplings = [coupling.bind(self._weights(i)) for i, coupling in enumerate(self._couplings, start=1)]
        return LayeredEnergy(self._layers, couplings, constants)

    def _biases(self) -> list[Array]:
        return [self.parameters[f"bias{index}"] for index in range(1, len(self._layers) + 1)]

    def _entered(self, x: Array) -> Array:
        """Inputs in the type of the parameters, as the input weights multiply them."""
        if x.ndim != 2 or x.shape[1] != self.n_inputs:
            raise UsageError(f"this block takes rows of {self.n_inputs} inputs, not an array of shape {tuple(x.shape)}")
        return namespace(x).astype(x, self.parameters["bias1"].dtype, copy=False)

    def _weights(self, index: int) -> Array:
        return self.parameters[f"{self.weight_name}{index}"]


def _apart(high: Array, low: Array, weight: Array) -> tuple[Array, Array]:
    """The mean of two states of a layer, and their difference times the samples' weights.

    Zeros where a weight is zero: a state may be infinite there.
    """
    xp, share = namespace(high), _shares(weight, high)
    found = 0.5 * (high + low), share * (high - low)
    if bool(xp.all(weight != 0)):
        return found
    mean, move = (xp.where(share != 0, part, xp.zeros_like(part)) for part in found)
    return mean, move


def _shares(weight: Array, layer: Array) -> Array:
    """The samples' weights, to be multiplied with a layer."""
    xp = namespace(layer)
    return xp.reshape(xp.astype(weight, layer.dtype), (-1,) + (1,) * (layer.ndim - 1))


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
