"""Layered energies that are minimised exactly one layer at a time, odd layers and even layers in turn.

    E(s) = Σ_l [½ slope_l s_l² − constant_l · s_l] − Σ_l ⟨s_{l+1}, C_l s_l⟩,    lower_l ≤ s_l ≤ upper_l

Only neighbouring layers are coupled, so the odd layers are independent of each other given the even ones: one sweep is
exact block coordinate descent. Deep Hopfield networks and deep resistive networks are both of this kind; they differ in
slopes, bounds and couplings. The state is a list of arrays, one a layer, batch first.

A coupling is a linear (or pooled) map C. It knows the shape of its weights, draws initial ones, and differentiates by
them (`outer`); bound to weights, it is the map of one relaxation, which writes into the arrays given. `lift` gives the
upper layer before pooling.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from circuitsim._arrays import Array, clip_into, device, for_products, namespace, product_into, to_numpy
from circuitsim.blocks.protocol import Nudge
from circuitsim.errors import ConvergenceError

Coupling = Any
"""C: `DenseCoupling`, or any class with its attributes; with pooling, the indices of the pooled entries are its
*switches*, which `forward` finds anew (`renew`) or takes, and returns."""


@dataclass(frozen=True)
class DenseCoupling:
    """Every unit of a layer with every unit of the next: C below = below @ weights. Images are read as rows.

    Parameters
    ----------
    lower, upper : int
        Units.
    spread : float
        Weights start uniform in ±spread/√lower.
    gain : float, optional
        Given, they start as a random matrix with orthogonal rows or columns, whose singular values are all this.
    weights : (lower, upper) array, optional
        Those that it is bound to.
    """

    lower: int
    upper: int
    spread: float = 1.0
    gain: float | None = None
    weights: Any = None

    @property
    def shape(self) -> tuple[int, int]:
        """(lower, upper)."""
        return self.lower, self.upper

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """(lower, upper) uniform or orthogonal."""
        if self.gain is not None:
            left, _, right = np.linalg.svd(rng.normal(size=self.shape), full_matrices=False)
            return self.gain * (left @ right)
        limit = self.spread / math.sqrt(self.lower)
        return rng.uniform(-limit, limit, self.shape)

    def bind(self, weights: Array) -> Self:
        """The coupling with these weights."""
        return replace(self, weights=weights)

    def forward(self, below: Array, out: Array, switches: Array | None = None, renew: bool = True) -> None:
        """``out = below @ weights``."""
        xp = namespace(out)
        product_into(xp, rows(xp, below), self.weights, rows(xp, out))

    def backward(self, above: Array, out: Array, switches: Array | None = None) -> None:
        """``out = above @ weights.T``."""
        xp = namespace(out)
        product_into(xp, rows(xp, above), self.weights.T, rows(xp, out))

    def lift(self, above: Array, switches: Array | None) -> Array:
        """The upper layer itself: no pooling."""
        return above

    def outer(self, below: Array, lifted: Array) -> Array:
        """(lower, upper) Σ_b below_b ⊗ lifted_b."""
        xp = namespace(below)
        return rows(xp, below).T @ rows(xp, lifted)


def rows(xp: Any, array: Array) -> Array:
    """A batch as a matrix, one sample a row; a view, as all arrays of a relaxation are contiguous."""
    return array if array.ndim == 2 else xp.reshape(array, (array.shape[0], math.prod(array.shape[1:])))


RESPONSE_SWEEPS, SWEEPS_AT_ONCE = 20_000, 8
"""Maximum number of sweeps of a response, and the number between two checks of its size."""

DIRECTIONS = 12
"""Conjugate directions along which the curvature of a nudged energy is computed."""

DISPLACEMENT = 1e-2
"""Step of the central difference that gives the curvature of a nudge that follows the output."""

ROUNDING = 1e-3
"""Share of a layer's own curvature below which that of a nudge counts as rounding."""

UNTILTED = Nudge(np.zeros(()))
"""No nudge at all."""


class Layer(NamedTuple):
    """The part of the energy that belongs to one layer.

    Attributes
    ----------
    shape : tuple of int
        Of one sample.
    slope : float or array
        Curvature ∂²E/∂s² of each unit, positive.
    lower, upper : float or array
        Bounds of the units, which may be infinite.
    bias : float
        Initial one.
    """

    shape: tuple[int, ...]
    slope: Any = 1.0
    lower: Any = -math.inf
    upper: Any = math.inf
    bias: float = 0.0

    @property
    def bounded(self) -> bool:
        """Whether its units have bounds."""
        return not (isinstance(self.lower, float) and math.isinf(self.lower))


@dataclass(frozen=True, eq=False)
class LayeredState:
    """A relaxed batch of a layered block.

    Attributes
    ----------
    layers : tuple of array
        States of all layers, first to last, each (batch, units) or (batch, rows, columns, channels).
    switches : tuple of array or None
        Those of pooled couplings.
    minimised : LayeredEnergy, or None where nothing was
        The energy that was minimised; it shares the block's parameters.
    sweeps : int
        Number of sweeps made.
    tolerance : float or None
        The requested one.
    begin : tuple of array
        Layers at which the sweeps began.
    """

    layers: tuple[Array, ...]
    switches: tuple[Array | None, ...]
    minimised: Any = None
    sweeps: int = 0
    tolerance: float | None = None
    begin: tuple[Array, ...] = ()

    @property
    def output(self) -> Array:
        """(batch, outputs) the last layer."""
        return rows(namespace(self.layers[-1]), self.layers[-1])

    @cached_property
    def residual(self) -> Array:
        """(batch,) largest |s − argmin over that unit alone|, relative to the unit's scale (`LayeredEnergy.scale`).

        Measured at first access, at the cost of one sweep; to be read before the parameters change.
        """
        pairs = enumerate(zip(self.minimised.minima(self, True), self.layers))
        return largest([(target - own) / self.minimised.scale(k, self.layers) for k, (target, own) in pairs])

    @property
    def active(self) -> np.ndarray:
        """(batch, units with bounds) −1 at the lower bound, +1 at the upper, 0 between."""
        xp, found = namespace(self.layers[0]), [np.zeros((self.layers[0].shape[0], 0), np.int8)]
        for layer, state in zip(self.minimised.layers, self.layers, strict=True):
            if layer.bounded:
                sides = (to_numpy(rows(xp, state == bound)) for bound in (layer.upper, layer.lower))
                found.append(np.subtract(*sides, dtype=np.int8))
        return np.concatenate(found, axis=1)

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
        bound = float(namespace(self.layers[0]).finfo(self.layers[0].dtype).max) ** 0.5
        return to_numpy(largest(self.layers) < bound)

    @cached_property
    def strict(self) -> np.ndarray:
        """(batch,) finite; with a nudge that takes curvature away, also: the nudged energy is convex on the units that
        are not at a bound half way between the states where the sweeps began and ended, and, where the nudge follows
        the output, at these two as well, of which the last is nearer to its minimum.

        Measured at first access, with such a nudge at the cost of some 12 to 36 sweeps; to be read before the
        parameters change.
        """
        energy, nudge, finite = self.minimised, self.minimised.nudge, self.finite.copy()
        if not finite.any() or (nudge.follow is None and nudge.stiffness >= 0.0):
            return finite
        # Half way all units are free that are so at one of the states, or move from bound to bound.
        begin, half = self.begin, tuple(0.5 * (a + b) for a, b in zip(self.begin, self.layers))
        states = [replace(self, layers=half)]
        if nudge.follow is not None:
            # Where a loss saturates the energy is convex again, at a state that has nothing to do with the first one.
            states += [replace(self, layers=begin), self]
            rounding = float(namespace(half[0]).finfo(half[0].dtype).eps) ** 0.5
            finite &= to_numpy(self.residual) <= np.maximum(to_numpy(states[1].residual), rounding)
        return np.logical_and.reduce([finite, *map(energy.convex, states)])


@dataclass(frozen=True, eq=False)
class LayeredEnergy:
    """An energy for one value of the parameters and one batch of inputs.

    Attributes
    ----------
    layers : sequence of Layer
    couplings : sequence of Coupling
        Between each layer and the next: one fewer than layers.
    constants : sequence of array
        Linear term of each layer: (units,) or (batch, units).
    local : bool
        What an error of a unit is relative to: the sum of the magnitudes of the terms of its balance, over its slope
        (circuits: Σ g (|v_j| + |v_k|) and its current, over Σ g; couplings without negative weights), or max(1, |s|).
    frozen : bool
        Of a linear response: the switches of pooled couplings stay, and errors are relative to its largest entry.
    nudge : Nudge
        Tilt of the last layer; a clamped layer is clipped after it.
    """

    layers: Sequence[Layer]
    couplings: Sequence[Coupling]
    constants: Sequence[Array]
    local: bool = False
    frozen: bool = False
    nudge: Nudge = UNTILTED

    @cached_property
    def inverses(self) -> list[Any]:
        """1 / slope of each layer."""
        slopes = [layer.slope for layer in self.layers]
        slopes[-1] = slopes[-1] + self.nudge.stiffness
        if not (to_numpy(slopes[-1]) > 0.0).all():
            raise ConvergenceError(
                f"a nudge of {self.nudge.stiffness} takes away more conductance than an output has (its curvature)"
            )
        return [1.0 / slope for slope in slopes]

    @cached_property
    def pulls(self) -> list[Array]:
        """Linear terms, that of the nudge included unless it follows the output."""
        last, linear = self.constants[-1], self.nudge.linear
        if self.nudge.follow is None and linear.ndim:
            last = last - namespace(last).reshape(linear, (-1, *self.layers[-1].shape))
        return [for_products(pull) for pull in (*self.constants[:-1], last)]

    def relax(
        self, start: LayeredState, sweeps: int, reverse: bool = False, tolerance: float | None = None
    ) -> LayeredState:
        """``sweeps`` sweeps from a start, which is not changed.

        Parameters
        ----------
        start : LayeredState
        sweeps : int
            Number of sweeps; with a tolerance, the most that are made.
        reverse : bool
            Even layers first (layers are counted from 1).
        tolerance : float, optional
            Stop when a sweep moves no unit by more than this, relative to its `scale`.
        """
        xp = namespace(start.layers[0])
        states = [for_products(state) for state in start.layers]
        switches = list(start.switches)
        buffers = [xp.empty_like(state) for state in states]
        order = [*range(int(reverse), len(states), 2), *range(1 - reverse, len(states), 2)]
        done, moving = 0, True
        while moving and done < sweeps:
            done += 1
            before = states if tolerance is None else [xp.asarray(state, copy=True) for state in states]
            for index in order:
                self._minimise(index, states, switches, states[index], buffers[index])
            moving = tolerance is None or not all(
                bool(xp.all(xp.abs(state - before[k]) <= tolerance * self.scale(k, states)))
                for k, state in enumerate(states)
            )
        return LayeredState(tuple(states), tuple(switches), self, done, tolerance, start.layers)

    def scale(self, index: int, states: Sequence[Array]) -> Array:
        """What errors of the units of a layer are relative to; see ``local``."""
        xp, size = namespace(states[index]), namespace(states[index]).abs(states[index])
        if self.frozen:
            return xp.reshape(largest(states), (-1,) + (1,) * (size.ndim - 1))
        if not self.local:
            return xp.maximum(size, xp.ones_like(size))
        near = {k: xp.abs(states[k]) for k in (index - 1, index + 1) if 0 <= k < len(states)}
        total, buffer = xp.empty_like(size), xp.empty_like(size)
        self.pull(index, near, [None] * len(self.couplings), total, buffer, renew=True)
        total = (total + xp.abs(self.pulls[index])) * self.inverses[index] + size
        return xp.where(total > 0, total, xp.ones_like(total))

    def energy(self, states: Sequence[Array]) -> Array:
        """(batch,) energy of states, without the nudge."""
        xp, parts = namespace(states[0]), []
        for index, (layer, state) in enumerate(zip(self.layers, states, strict=True)):
            inner = 0.5 * layer.slope * state - self.constants[index]
            if index:
                out = xp.empty_like(state)
                self.couplings[index - 1].forward(states[index - 1], out, None, True)
                inner = inner - out
            parts.append(xp.sum(rows(xp, inner * state), axis=1))
        return sum(parts)

    def response(self, state: LayeredState, cotangent: Array, sweeps: int | None = None) -> list[Array]:
        """Sensitivity of cotangent · s_L to a pull on each layer: H q = cotangent on the units that are not at a bound.

        Sweeps of the linearised energy from zero, even layers first: t of them are reverse-mode differentiation through
        t sweeps that stay at a state (truncated backpropagation).

        Parameters
        ----------
        state : LayeredState
            The state; its switches stay.
        cotangent : (batch, outputs) array
        sweeps : int, optional
            As many as change q if not given.

        Raises
        ------
        ConvergenceError
            q does not converge: the state is not a strict minimum, or nearly none.
        """
        xp = namespace(cotangent)
        layers = [
            Layer(layer.shape, xp.where(free, layer.slope + xp.zeros_like(own), xp.full_like(own, math.inf)))
            for layer, free, own in zip(self.layers, self.free(state.layers), state.layers)
        ]
        pulls = [xp.zeros_like(own) for own in state.layers]
        pulls[-1] += xp.reshape(cotangent, pulls[-1].shape)
        linear = LayeredEnergy(layers, self.couplings, pulls, frozen=True)
        found = replace(state, layers=tuple(xp.zeros_like(own) for own in state.layers))
        if sweeps is not None:
            return list(linear.relax(found, sweeps, True).layers)
        rounding = 16 * float(xp.finfo(pulls[0].dtype).eps)
        most = largest([pulls[-1] / layers[-1].slope]) / rounding
        for _ in range(0, RESPONSE_SWEEPS, SWEEPS_AT_ONCE):
            found = linear.relax(found, SWEEPS_AT_ONCE, True, rounding)
            if found.sweeps < SWEEPS_AT_ONCE:
                return list(found.layers)
            if not bool(xp.all(largest(found.layers) <= most)):
                break
        raise ConvergenceError(
            "the adjoint does not converge: the state is not a strict minimum of the energy, or it is too flat; relax "
            "with more sweeps"
        )

    def convex(self, state: LayeredState) -> np.ndarray:
        """(batch,) whether the nudge leaves a state's energy convex on the units that are not at a bound.

        Conjugate gradients on a random right-hand side search for a direction of negative curvature of both the nudged
        energy and the nudge alone.
        """
        xp, states = namespace(state.layers[0]), state.layers
        places = np.cumsum([math.prod(own.shape[1:]) for own in states])[:-1]
        free = np.concatenate([to_numpy(rows(xp, inside)) for inside in self.free(states)], axis=1)
        slope = self.layers[-1].slope
        least = -ROUNDING * float(slope if isinstance(slope, int | float) else to_numpy(slope).min())
        left = way = free * np.random.default_rng(0).normal(size=(1, free.shape[1]))
        convex = np.ones(len(free), dtype=bool)
        for _ in range(min(DIRECTIONS, free.shape[1])):
            parts = np.split(way, places, axis=1)
            moves = [
                xp.asarray(part.reshape(own.shape), dtype=own.dtype, device=device(own))
                for part, own in zip(parts, states)
            ]
            bent = to_numpy(self._bent(states[-1], moves[-1]))
            images = []
            for index, (layer, move) in enumerate(zip(self.layers, moves)):
                pull = xp.empty_like(move)
                self.pull(index, moves, list(state.switches), pull, xp.empty_like(move), renew=False)
                images.append(to_numpy(rows(xp, layer.slope * move - pull)))
            images[-1] = images[-1] + bent
            image = free * np.concatenate(images, axis=1).astype(np.float64)
            curvature, size = (way * image).sum(axis=1), (left * left).sum(axis=1)
            nudged = (parts[-1] * bent).sum(axis=1) < least * (parts[-1] ** 2).sum(axis=1)
            convex &= ~nudged | (curvature > 0.0)
            left = left - _share(size, curvature) * image
            way = left + _share((left * left).sum(axis=1), size) * way
        return convex

    def _bent(self, output: Array, move: Array) -> Array:
        """(batch, outputs) what the nudge adds to the Hessian times a move of the output; central differences."""
        xp, follow = namespace(output), self.nudge.follow
        output, move = rows(xp, output), rows(xp, move)
        if follow is None:
            return self.nudge.stiffness * move
        size = xp.max(xp.abs(move), axis=1)[:, None]
        step = DISPLACEMENT / xp.where(size > 0, size, xp.ones_like(size))
        return (follow(output + step * move) - follow(output - step * move)) / (2.0 * step)

    def free(self, states: Sequence[Array]) -> list[Array]:
        """Whether units are not at a bound, for each layer."""
        return [(state > layer.lower) & (state < layer.upper) for layer, state in zip(self.layers, states)]

    def minima(self, state: LayeredState, clipped: bool) -> list[Array]:
        """For each layer the minimum over it alone, within its bounds or without."""
        xp, states, switches = namespace(state.layers[0]), state.layers, list(state.switches)
        return [
            self._minimise(index, states, switches, xp.empty_like(own), xp.empty_like(own), clipped)
            for index, own in enumerate(states)
        ]

    def _minimise(
        self,
        index: int,
        states: Sequence[Array],
        switches: list[Array | None],
        out: Array,
        buffer: Array,
        clipped: bool = True,
    ) -> Array:
        """The minimum over a layer given its neighbours, into `out` (within its bounds and with the switches that its
        neighbours then have, if ``clipped``); `buffer` is scratch."""
        xp, late = namespace(out), None
        if self.nudge.follow is not None and index == len(self.couplings):
            late = xp.reshape(self.nudge.follow(rows(xp, states[-1])), out.shape)
        self.pull(index, states, switches, out, buffer, renew=clipped and not self.frozen)
        out += self.pulls[index]
        if late is not None:
            out -= late
        out *= self.inverses[index]
        if clipped:
            clip_into(xp, out, self.layers[index].lower, self.layers[index].upper)
        return out

    def pull(
        self,
        index: int,
        states: Sequence[Array] | Mapping[int, Array],
        switches: list[Array | None],
        out: Array,
        buffer: Array,
        renew: bool,
    ) -> None:
        """The linear term of a layer from both of its neighbours, into `out`; `buffer` is scratch."""
        last = len(self.couplings)
        if not last:
            out[...] = 0
        if index:
            switches[index - 1] = self.couplings[index - 1].forward(states[index - 1], out, switches[index - 1], renew)
        if index < last:
            place = buffer if index else out
            self.couplings[index].backward(states[index + 1], place, switches[index])
            if index:
                out += buffer


def largest(layers: Sequence[Array]) -> Array:
    """(batch,) largest magnitude over all layers."""
    xp = namespace(layers[0])
    return xp.max(xp.stack([xp.max(xp.abs(rows(xp, layer)), axis=1) for layer in layers]), axis=0)


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """(batch, 1) quotients, zero where the whole is."""
    return (part / np.where(whole == 0.0, np.inf, whole))[:, None]
