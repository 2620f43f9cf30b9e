"""Common parts of Hopfield and resistive networks as blocks: alternating layers, couplings, differences of states.

A nudge of negative strength takes curvature away. Where too much is gone the energy falls without end along some
direction: the sweeps diverge, slowly at first, and differences of such states are no gradients. Whether a nudged state
is a strict minimum is found from the least curvature of the nudged energy, by Lanczos' method.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from circuitsim._arrays import Array, device, namespace, to_numpy
from circuitsim.blocks.alternating import Layer, LayeredEnergy, Relaxed
from circuitsim.blocks.couplings import Coupling, DenseCoupling, rows
from circuitsim.blocks.protocol import Arrays, Nudge
from circuitsim.errors import TopologyError, UsageError
from circuitsim.training.checkpoint import CheckpointError, copy_into, load_checkpoint, save_checkpoint

Moved = Sequence[tuple[Array, Array]]
"""Layers: means, and moves about them."""

STEPS = 12
"""Products with the Hessian: an eigenvalue apart from the others is found to a few percent."""

NUDGE_STEPS, SAFETY = 4, 2.0
"""Products with a following nudge's own Hessian, and what its least eigenvalue found so is multiplied with."""

DISPLACEMENT = 1e-2
"""Largest move of an output by which the curvature of a nudge that follows it is measured."""

ROUNDING = 1e-3
"""Share of a layer's own curvature below which that of a nudge counts as rounding."""


def convex_between(energy: LayeredEnergy, begin: Relaxed, end: Relaxed, nudge: Nudge) -> np.ndarray:
    """Whether the nudged energy is convex at two states and half way between.

    A nudge that follows the output has another curvature at each: where a loss saturates the energy is convex again,
    at a state that has nothing to do with the one where the sweeps began. Of other nudges those of negative stiffness
    are looked at: no other one takes curvature away.

    Returns
    -------
    (batch,) ndarray of bool
        False also where a state is not finite.
    """
    half = tuple(0.5 * (a + b) for a, b in zip(begin.layers, end.layers, strict=True))
    states = [end._replace(layers=layers) for layers in (begin.layers, half, end.layers)]
    if nudge.follow is None:
        # Its curvature is the same everywhere. Half way all units are free that are so at one of the states, or move
        # from bound to bound.
        states, taken = states[1:2], -nudge.stiffness
    else:
        taken = -SAFETY * min(float(_least_of_nudge(state, nudge).min()) for state in states)
    slope = energy.layers[-1].slope
    own = float(slope if isinstance(slope, int | float) else to_numpy(slope).min())
    convex = np.ones(end.layers[0].shape[0], dtype=bool)
    if taken <= ROUNDING * own:
        return convex
    if all(switches is None for switches in end.switches):
        # With all units free the curvature is less than on any part of them, and that of every sample.
        free = replace(energy, layers=[layer._replace(lower=-np.inf, upper=np.inf) for layer in energy.layers])
        one = end._replace(layers=tuple(layer[:1] for layer in end.layers))
        if least_curvature(free, one, nudge._replace(stiffness=-taken, follow=None))[0] > 0.0:
            return convex
    for state in states:
        convex &= least_curvature(energy, state, nudge) > 0.0
    return convex


def _least_of_nudge(relaxed: Relaxed, nudge: Nudge) -> np.ndarray:
    """Least curvature of a following nudge at the outputs (batch,)."""
    xp, output = namespace(relaxed.layers[-1]), rows(namespace(relaxed.layers[-1]), relaxed.layers[-1])

    def apply(flat: np.ndarray) -> np.ndarray:
        return to_numpy(_followed(xp, nudge, output, _like(xp, flat, output))).astype(np.float64)

    return _least_ritz_value(apply, np.ones(tuple(output.shape)), NUDGE_STEPS)


def least_curvature(energy: LayeredEnergy, relaxed: Relaxed, nudge: Nudge) -> np.ndarray:
    """Least eigenvalue of the nudged energy's Hessian on the units that are not at a bound, an upper bound of it.

    Parameters
    ----------
    energy : LayeredEnergy
    relaxed : Relaxed
        The nudged state, finite.
    nudge : Nudge

    Returns
    -------
    (batch,) ndarray
        Positive where all units are at bounds.
    """
    xp, states = namespace(relaxed.layers[0]), relaxed.layers
    places = np.cumsum([math.prod(state.shape[1:]) for state in states])[:-1]
    inside = np.concatenate([to_numpy(rows(xp, gain > 0)) for gain in energy.gains(states)], axis=1)

    def apply(flat: np.ndarray) -> np.ndarray:
        """The Hessian times a direction (batch, units), both on the units inside their bounds."""
        parts = np.split(flat, places, axis=1)
        layers = [_like(xp, part.reshape(state.shape), state) for part, state in zip(parts, states)]
        found = [to_numpy(rows(xp, part)) for part in _product(xp, energy, relaxed, nudge, layers)]
        return inside * np.concatenate(found, axis=1).astype(np.float64)

    return _least_ritz_value(apply, inside, STEPS)


def _product(xp: Any, energy: LayeredEnergy, relaxed: Relaxed, nudge: Nudge, direction: list[Array]) -> list[Array]:
    """Hessian of the nudged energy at a state times a direction, without regard to bounds."""
    found = []
    for index, (layer, move) in enumerate(zip(energy.layers, direction, strict=True)):
        pull = xp.empty_like(move)
        energy.pull(index, direction, list(relaxed.switches), pull, xp.empty_like(move), renew=False)
        found.append(layer.slope * move - pull)
    found[-1] = found[-1] + nudge.stiffness * direction[-1]
    if nudge.follow is not None:
        output, move = rows(xp, relaxed.layers[-1]), rows(xp, direction[-1])
        found[-1] = found[-1] + xp.reshape(_followed(xp, nudge, output, move), found[-1].shape)
    return found


def _followed(xp: Any, nudge: Nudge, output: Array, move: Array) -> Array:
    """Derivative of a following nudge along a move of the output, by central differences."""
    assert nudge.follow is not None
    largest = xp.max(xp.abs(move), axis=1)[:, None]
    step = DISPLACEMENT / xp.where(largest > 0, largest, xp.ones_like(largest))
    return (nudge.follow(output + step * move) - nudge.follow(output - step * move)) / (2.0 * step)


def _least_ritz_value(apply: Any, inside: np.ndarray, steps: int) -> np.ndarray:
    """Least eigenvalue of a symmetric operator on a Krylov space, one for each row (batch, units); −inf for NaN.

    The space begins with a random vector that is zero outside of ``inside``.
    """
    basis, images = list[np.ndarray](), list[np.ndarray]()
    left, least = inside * np.random.default_rng(0).normal(size=(1, inside.shape[1])), np.zeros(len(inside))
    with np.errstate(invalid="ignore", over="ignore"):
        for _ in range(min(steps, inside.shape[1])):
            size = np.linalg.norm(left, axis=1)
            # A space that holds all further products is exact: it ends here.
            basis.append(np.where((size > least)[:, None], left / np.where(size > 0.0, size, 1.0)[:, None], 0.0))
            left = apply(basis[-1])
            images.append(left)
            least = 1e-6 * np.linalg.norm(left, axis=1)
            for vector in 2 * basis:
                left = left - (left * vector).sum(axis=1, keepdims=True) * vector
        space = np.stack(basis, axis=1)
        matrix = space @ np.stack(images, axis=2)
    finite = np.isfinite(matrix).all(axis=(1, 2))
    matrix = np.where(finite[:, None, None], 0.5 * (matrix + matrix.swapaxes(1, 2)), 0.0)
    # Directions beyond the end stand apart, above all eigenvalues.
    beyond = ~space.any(axis=2) * (1.0 + np.abs(matrix).sum(axis=(1, 2)))[:, None]
    found = np.linalg.eigvalsh(matrix + beyond[:, :, None] * np.eye(len(basis)))[:, 0]
    return np.where(finite, found, -np.inf)


def _like(xp: Any, values: np.ndarray, state: Array) -> Array:
    """An array as those of a state: library, precision, device."""
    return xp.asarray(values, dtype=state.dtype, device=device(state))


@dataclass(frozen=True, eq=False)
class LayeredState:
    """A relaxed batch of a layered block.

    Attributes
    ----------
    relaxed : Relaxed
        The layers, each (batch, units) or (batch, rows, columns, channels), and the switches of pooling.
    layered_energy : LayeredEnergy
        The energy that was minimised; it shares the block's parameters.
    constants, nudge
        Linear terms of the layers' energy, and the nudge.
    tolerance : float or None
        The requested one.
    begin : Relaxed or None
        The state from which the sweeps began.
    """

    relaxed: Relaxed
    layered_energy: LayeredEnergy
    constants: Sequence[Array]
    nudge: Nudge | None
    tolerance: float | None
    begin: Relaxed | None = None

    @property
    def layers(self) -> tuple[Array, ...]:
        """States of all layers, first to last."""
        return self.relaxed.layers

    @property
    def sweeps(self) -> int:
        """Number of sweeps made."""
        return self.relaxed.sweeps

    @property
    def output(self) -> Array:
        """(batch, outputs) the last layer."""
        return rows(namespace(self.layers[-1]), self.layers[-1])

    @cached_property
    def residual(self) -> Array:
        """(batch,) largest |s − argmin over that unit alone|, relative to the unit's scale (`LayeredEnergy.scale`).

        Measured at first access, at the cost of one sweep; to be read before the parameters change.
        """
        return self.layered_energy.residual(self.constants, self.relaxed, self.nudge)

    @property
    def active(self) -> np.ndarray:
        """(batch, units with bounds) −1 at the lower bound, +1 at the upper, 0 between."""
        return self.layered_energy.active(self.layers)

    @property
    def certified(self) -> Array:
        """(batch,) whether the state is finite, a strict minimum of the nudged energy (`strict`), and within the
        tolerance, where there is one.
        """
        xp = namespace(self.layers[0])
        held = xp.asarray(self.strict, device=device(self.layers[0]))
        return held if self.tolerance is None else held & (self.residual <= self.tolerance)

    @cached_property
    def finite(self) -> np.ndarray:
        """(batch,) all units have finite squares."""
        xp = namespace(self.layers[0])
        largest = float(xp.finfo(self.layers[0].dtype).max) ** 0.5
        good = [to_numpy(xp.all(xp.abs(rows(xp, layer)) < largest, axis=1)) for layer in self.layers]
        return np.logical_and.reduce(good)

    @cached_property
    def strict(self) -> np.ndarray:
        """(batch,) finite; with a nudge that takes curvature away, also: the nudged energy is convex where the sweeps
        began, where they ended and half way (on units that are not at a bound), and, where the nudge follows the
        output, they came nearer to its minimum.

        Measured at first access, with such a nudge at the cost of some 12 to 36 sweeps; to be read before the
        parameters change.
        """
        xp, finite = namespace(self.layers[0]), self.finite.copy()
        nudge, begin = self.nudge, self.begin or self.relaxed
        if nudge is None or (nudge.follow is None and nudge.stiffness >= 0.0) or not finite.any():
            return finite
        if nudge.follow is not None:
            before = to_numpy(self.layered_energy.residual(self.constants, begin, nudge))
            rounding = float(xp.finfo(self.layers[0].dtype).eps) ** 0.5
            finite &= to_numpy(self.residual) <= np.maximum(before, rounding)
        return finite & convex_between(self.layered_energy, begin, self.relaxed, nudge)


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
        if self.tolerance is not None and not self.tolerance > 0:
            raise UsageError(f"a tolerance must be positive, not {self.tolerance}")


class LayeredBlock:
    """An energy on layers, each coupled to its neighbours only.

    Attributes
    ----------
    parameters : dict of array
        The couplings' weights, number 0 those of the inputs (if any), then 1 … between layers l and l + 1; and
        ``bias1`` … of the layers.
    sweeps : Sweeps
    options : dict
        The constructor's arguments as JSON values, without those of the random initialisation.
    """

    kind: ClassVar[str]
    options: dict[str, Any]
    #: Name of the couplings' weights.
    weight_name = "weights"

    def __init__(
        self,
        layers: Sequence[Layer],
        couplings: Sequence[Coupling],
        inputs: DenseCoupling | None,
        sweeps: Sweeps,
        rng: Any,
        dtype: Any,
        parameters: Mapping[str, np.ndarray] | None = None,
        copy: bool | None = True,
    ) -> None:
        if not layers or any(size < 1 for layer in layers for size in layer.shape):
            shapes = [layer.shape for layer in layers]
            raise TopologyError(f"a block needs layers of at least one unit, not {shapes}")
        self.sweeps = sweeps
        self.parameters: dict[str, Any] = {}
        self._layers = tuple(layers)
        self._couplings = tuple(couplings)
        self._inputs = inputs
        if parameters is None:
            self.initialise(rng, dtype)
            return
        wanted = self.parameter_shapes()
        if {name: np.shape(array) for name, array in parameters.items()} != wanted:
            raise UsageError(f"the parameters must have shapes {wanted}")
        self.parameters |= {name: np.array(parameters[name], dtype, copy=copy) for name in wanted}

    def __repr__(self) -> str:
        layers = "-".join("×".join(map(str, layer.shape)) for layer in self._layers)
        count = sum(math.prod(array.shape) for array in self.parameters.values())
        inputs = f"{self.n_inputs} inputs" + ("" if self._inputs is None else " with weights")
        dtype = str(self.parameters["bias1"].dtype).removeprefix("torch.")
        return f"{type(self).__name__}({inputs}, layers {layers}, {count:,} parameters, {dtype})"

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the parameters by name."""
        shapes = {name: coupling.shape for name, coupling in self._maps.items()}
        return shapes | {f"bias{i}": layer.shape[-1:] for i, layer in enumerate(self._layers, start=1)}

    @property
    def _maps(self) -> dict[str, Coupling]:
        """The couplings by the names of their weights, that of the inputs first (if any)."""
        every = enumerate([self._inputs, *self._couplings])
        return {f"{self.weight_name}{i}": coupling for i, coupling in every if coupling is not None}

    def initialise(self, rng: Any, dtype: Any = np.float64) -> None:
        """Draw the weights anew and set the biases to their initial values; `rng` is a Generator or a seed."""
        rng = np.random.default_rng(rng)
        self.parameters.clear()
        for name, coupling in self._maps.items():
            self.parameters[name] = coupling.draw(rng).astype(dtype)
        for index, layer in enumerate(self._layers, start=1):
            self.parameters[f"bias{index}"] = np.full(layer.shape[-1], layer.bias, dtype)

    def at(self, parameters: Mapping[str, Array]) -> Self:
        """The same network with parameters of its own, copies of those given in the types of its present ones."""
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
        save_checkpoint(Path(path), arrays, facts)

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        CheckpointError
            The file is missing, damaged, or holds another kind of network.
        """
        arrays, facts = load_checkpoint(Path(path))
        if facts.get("kind") != cls.kind:
            raise CheckpointError(f"{path} holds {facts.get('kind')!r}, no {cls.kind} network that this version reads")
        options = dict(facts["options"])
        return cls._restored(options | {"sweeps": Sweeps(**options["sweeps"])}, arrays, np.dtype(facts["dtype"]))

    @classmethod
    def _restored(cls, options: Mapping[str, Any], parameters: Mapping[str, np.ndarray], dtype: Any) -> Self:
        """The network of these options and parameters."""
        block = cls(**options, dtype=dtype)
        copy_into(block.parameters, parameters, "parameters")
        return block

    @property
    def n_inputs(self) -> int:
        """Length of one row of x."""
        return math.prod(self._layers[0].shape) if self._inputs is None else self._inputs.lower

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
            Initial state; zero by default. A nudged phase starts at the free state.
        """
        layered_energy = self._layered_energy()
        # Within a batch the input's product is the same in every phase.
        constants = start.constants if start is not None and nudge is not None else self._constants(x)
        begin = layered_energy.start(constants[0], x.shape[0]) if start is None else start.relaxed
        rule = self.sweeps
        relaxed = layered_energy.relax(
            constants,
            begin,
            rule.free if nudge is None else rule.nudged,
            nudge,
            nudge is not None and rule.reverse_nudged,
            rule.tolerance,
        )
        return LayeredState(relaxed, layered_energy, constants, nudge, rule.tolerance, begin)

    def begun(self, layers: Sequence[Array]) -> LayeredState:
        """A state of these layers, for a free phase to start at."""
        return LayeredState(
            Relaxed(tuple(layers), (None,) * len(self._couplings), 0), self._layered_energy(), (), None, None
        )

    def resting(self, batch: int) -> LayeredState:
        """A batch of states with all units at zero, or at the bound nearest to it."""
        return self.begun(self._layered_energy().start(self.parameters["bias1"], batch).layers)

    def energy(self, state: LayeredState, x: Array) -> Array:
        """(batch,) the untilted energy at a state."""
        return self._layered_energy().energy(self._constants(x), state.layers)

    def parameter_difference(self, plus: LayeredState, minus: LayeredState, x: Array, weight: Array) -> Arrays:
        """Σ_b weight_b (∂E/∂θ at plus − ∂E/∂θ at minus), from means and differences of the layers."""
        layers = [_apart(high, low, weight) for high, low in zip(plus.layers, minus.layers, strict=True)]
        above = zip(self._couplings, plus.layers[1:], minus.layers[1:], plus.relaxed.switches, minus.relaxed.switches)
        lifted = [_apart(c.lift(high, up), c.lift(low, down), weight) for c, high, low, up, down in above]
        return self._derivative(x, layers, lifted)

    def input_difference(self, plus: LayeredState, minus: LayeredState, x: Array) -> Array:
        """(batch, inputs) ∂E/∂x at plus − ∂E/∂x at minus."""
        return self._input_derivative(plus.layers[0] - minus.layers[0])

    def implicit(self, state: LayeredState, x: Array, cotangent: Array, weight: Array) -> tuple[Arrays, Array]:
        """Exact derivatives of cotangent · output at a free state, by the adjoint."""
        return self._pulled(state, x, self._layered_energy().response(state.relaxed, cotangent), weight)

    def truncated(
        self, state: LayeredState, x: Array, cotangent: Array, weight: Array, sweeps: int | None = None
    ) -> tuple[Arrays, Array]:
        """Backpropagation through the last sweeps of a converged free phase (Nest & Ernoult 2024, Alg. 12).

        As `implicit`, but truncated after so many sweeps (by default as many as a nudged phase makes).
        """
        count = self.sweeps.nudged if sweeps is None else sweeps
        return self._pulled(state, x, self._layered_energy().response(state.relaxed, cotangent, count), weight)

    def kinks(self, state: LayeredState) -> tuple[np.ndarray, int]:
        """(batch,) units at a bound of a free state whose minimum without it is there too, and units with bounds."""
        return state.layered_energy.kinks(state.constants, state.relaxed)

    def project(self) -> None:
        """All values are allowed."""

    def _pulled(self, state: LayeredState, x: Array, sensitivity: list[Array], weight: Array) -> tuple[Arrays, Array]:
        """Derivatives of the output from its sensitivities to the layers' linear terms."""
        moves = [-_shares(weight, value) * value for value in sensitivity]
        above = zip(self._couplings, state.layers[1:], moves[1:], state.relaxed.switches)
        lifted = [(c.lift(mean, switches), c.lift(move, switches)) for c, mean, move, switches in above]
        layers = list(zip(state.layers, moves, strict=True))
        return self._derivative(x, layers, lifted), self._input_derivative(-sensitivity[0])

    def _derivative(self, x: Array, layers: Moved, lifted: Moved) -> Arrays:
        """Σ_b of the change of ∂E/∂θ when the layers move about their means; moves carry the samples' weights."""
        gradients: Arrays = {}
        if self._inputs is not None:
            gradients[f"{self.weight_name}0"] = -self._inputs.outer(self._entered(x), layers[0][1])
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
        return -move if self._inputs is None else -(move @ self._weights(0).T)

    def _layered_energy(self) -> LayeredEnergy:
        couplings = [coupling.bind(self._weights(i)) for i, coupling in enumerate(self._couplings, start=1)]
        return LayeredEnergy(self._layers, couplings)

    def _constants(self, x: Array) -> list[Array]:
        x, constants = self._entered(x), self._biases()
        pull = x if self._inputs is None else x @ self._weights(0)
        constants[0] = namespace(x).reshape(pull, (-1, *self._layers[0].shape)) + constants[0]
        return constants

    def _biases(self) -> list[Array]:
        return [self.parameters[f"bias{index}"] for index in range(1, len(self._layers) + 1)]

    def _entered(self, x: Array) -> Array:
        """Inputs in the type of the parameters, as the input weights multiply them."""
        if x.ndim != 2 or x.shape[1] != self.n_inputs:
            raise UsageError(f"this block takes rows of {self.n_inputs} inputs, not an array of shape {tuple(x.shape)}")
        dtype = self.parameters["bias1"].dtype
        return x if x.dtype == dtype else namespace(x).astype(x, dtype)

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
