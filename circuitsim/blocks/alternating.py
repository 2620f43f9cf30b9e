"""Layered energies that are minimised exactly one layer at a time, odd layers and even layers in turn.

    E(s) = Σ_l [½ slope_l s_l² − constant_l · s_l] − Σ_l ⟨s_{l+1}, C_l s_l⟩,    lower_l ≤ s_l ≤ upper_l

Only neighbouring layers are coupled, so the odd layers are independent of each other given the even ones: one sweep is
exact block coordinate descent. Deep Hopfield networks and deep resistive networks are both of this kind; they differ in
slopes, bounds and couplings. The state is a list of arrays, one a layer, batch first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from circuitsim._arrays import Array, clip_into, device, for_products, namespace, to_numpy
from circuitsim.blocks.couplings import Coupling, rows
from circuitsim.blocks.protocol import Nudge
from circuitsim.errors import ConvergenceError

RESPONSE_SWEEPS, SWEEPS_AT_ONCE = 20_000, 8
"""Most sweeps of a response, and how many are made between two looks at its change."""

KINK = 1e-9
"""A unit at a bound whose minimum without it is within this share of max(1, |s|) of it is at a kink."""


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
    lower: Any = 0.0
    upper: Any = 1.0
    bias: float = 0.0

    @property
    def bounded(self) -> bool:
        """Whether its units have bounds."""
        return not (isinstance(self.lower, float) and math.isinf(self.lower))


class Relaxed(NamedTuple):
    """Layers after a number of sweeps, and the switches of their pooled couplings."""

    layers: tuple[Array, ...]
    switches: tuple[Array | None, ...]
    sweeps: int


class Tilted(NamedTuple):
    """Inverse slopes of the layers, pulls on them, and what follows the output, if anything."""

    inverses: list[Any]
    pulls: list[Array]
    follow: Callable[[Array], Array] | None


@dataclass(frozen=True, eq=False)
class LayeredEnergy:
    """An energy for one value of the parameters.

    Attributes
    ----------
    layers : sequence of Layer
    couplings : sequence of Coupling
        Between each layer and the next: one fewer than layers.
    local : bool
        What an error of a unit is relative to: the sum of the magnitudes of the terms of its balance, over its slope
        (circuits: Σ g (|v_j| + |v_k|) and its current, over Σ g; couplings without negative weights), or max(1, |s|).
    frozen : bool
        Whether the switches of pooled couplings stay.
    """

    layers: Sequence[Layer]
    couplings: Sequence[Coupling]
    local: bool = False
    frozen: bool = False

    def relax(
        self,
        constants: Sequence[Array],
        start: Relaxed,
        sweeps: int,
        nudge: Nudge | None = None,
        reverse: bool = False,
        tolerance: float | None = None,
    ) -> Relaxed:
        """``sweeps`` sweeps from a start, which is not changed.

        Parameters
        ----------
        constants : sequence of array
            Linear term of each layer: (units,) or (batch, units).
        sweeps : int
            Number of sweeps; with a tolerance, the most that are made.
        nudge : Nudge, optional
            Tilt of the last layer.
        reverse : bool
            Even layers first (layers are counted from 1).
        tolerance : float, optional
            Stop when a sweep moves no unit by more than this, relative to its `scale`.
        """
        xp = namespace(start.layers[0])
        states = [for_products(state) for state in start.layers]
        switches = list(start.switches)
        buffers = [xp.empty_like(state) for state in states]
        tilted = self._tilted(constants, nudge)
        tilted = tilted._replace(pulls=[for_products(pull) for pull in tilted.pulls])
        order = [*range(int(reverse), len(states), 2), *range(1 - reverse, len(states), 2)]
        done, moving = 0, True
        while moving and done < sweeps:
            done += 1
            before = states if tolerance is None else [xp.asarray(state, copy=True) for state in states]
            for index in order:
                self._minimise(index, states, switches, tilted, states[index], buffers[index])
            moving = tolerance is None or not all(
                bool(xp.all(xp.abs(state - before[k]) <= tolerance * self.scale(k, states, tilted)))
                for k, state in enumerate(states)
            )
        return Relaxed(tuple(states), tuple(switches), done)

    def start(self, like: Array, batch: int) -> Relaxed:
        """All units at zero, or at the bound nearest to it."""
        xp = namespace(like)
        states = []
        for layer in self.layers:
            state = xp.zeros((batch, *layer.shape), dtype=like.dtype, device=device(like))
            clip_into(xp, state, layer.lower, layer.upper)
            states.append(state)
        return Relaxed(tuple(states), (None,) * len(self.couplings), 0)

    def residual(self, constants: Sequence[Array], relaxed: Relaxed, nudge: Nudge | None = None) -> Array:
        """(batch,) largest |s − argmin over that unit alone|, relative to the unit's `scale`."""
        xp = namespace(relaxed.layers[0])
        tilted = self._tilted(constants, nudge)
        states, switches = relaxed.layers, list(relaxed.switches)
        off = []
        for index, state in enumerate(states):
            target = self._minimise(index, states, switches, tilted, xp.empty_like(state), xp.empty_like(state))
            off.append((target - state) / self.scale(index, states, tilted))
        return _largest(xp, off)

    def scale(self, index: int, states: Sequence[Array], tilted: Tilted) -> Array:
        """What errors of the units of a layer are relative to; see ``local``."""
        xp, size = namespace(states[index]), namespace(states[index]).abs(states[index])
        if not self.local:
            return xp.maximum(size, xp.ones_like(size))
        near = {k: xp.abs(states[k]) for k in (index - 1, index + 1) if 0 <= k < len(states)}
        total, buffer = xp.empty_like(size), xp.empty_like(size)
        self.pull(index, near, [None] * len(self.couplings), total, buffer, renew=True)
        total = (total + xp.abs(tilted.pulls[index])) * tilted.inverses[index] + size
        return xp.where(total > 0, total, xp.ones_like(total))

    def active(self, states: Sequence[Array]) -> np.ndarray:
        """(batch, units with bounds) −1 at the lower bound, +1 at the upper, 0 between."""
        xp, found = namespace(states[0]), [np.zeros((states[0].shape[0], 0), np.int8)]
        for layer, state in zip(self.layers, states, strict=True):
            if layer.bounded:
                sides = (to_numpy(rows(xp, state == bound)) for bound in (layer.upper, layer.lower))
                found.append(np.subtract(*sides, dtype=np.int8))
        return np.concatenate(found, axis=1)

    def kinks(self, constants: Sequence[Array], relaxed: Relaxed) -> tuple[np.ndarray, int]:
        """(batch,) units at a bound whose minimum without bounds is there too, to `KINK`, and the units with bounds."""
        xp, states = namespace(relaxed.layers[0]), relaxed.layers
        tilted, switches = self._tilted(constants, None), list(relaxed.switches)
        count, units = np.zeros(states[0].shape[0], dtype=np.int64), 0
        for index, (layer, state, gain) in enumerate(zip(self.layers, states, self.gains(states), strict=True)):
            if layer.bounded:
                target = xp.empty_like(state)
                self._minimise(index, states, switches, tilted, target, xp.empty_like(state), clipped=False)
                near = xp.abs(target - state) <= KINK * xp.maximum(xp.abs(state), xp.ones_like(state))
                count += to_numpy(rows(xp, near & (gain == 0))).sum(axis=1)
                units += math.prod(layer.shape)
        return count, units

    def energy(self, constants: Sequence[Array], states: Sequence[Array]) -> Array:
        """(batch,) energy of states."""
        xp = namespace(states[0])
        total = None
        for index, (layer, state) in enumerate(zip(self.layers, states, strict=True)):
            inner = 0.5 * layer.slope * state - constants[index]
            if index:
                out = xp.empty_like(state)
                self.couplings[index - 1].forward(states[index - 1], out, None, True)
                inner = inner - out
            part = xp.sum(rows(xp, inner * state), axis=1)
            total = part if total is None else total + part
        return total

    def gains(self, states: Sequence[Array]) -> list[Array]:
        """1 / slope where a unit is free to move, 0 where it is at a bound, for each layer."""
        pairs = list(zip(self.layers, states, strict=True))
        free = [(state > layer.lower) & (state < layer.upper) for layer, state in pairs]
        xp = namespace(states[0])
        return [xp.astype(inside, state.dtype) / layer.slope for inside, (layer, state) in zip(free, pairs)]

    def response(self, relaxed: Relaxed, cotangent: Array, sweeps: int | None = None) -> list[Array]:
        """Sensitivity of cotangent · s_L to a pull on each layer: H q = cotangent on the units that are not at a bound.

        Sweeps of the linearised energy from zero, even layers first: t of them are reverse-mode differentiation through
        t sweeps that stay at a state (truncated backpropagation).

        Parameters
        ----------
        relaxed : Relaxed
            The state; its switches stay.
        cotangent : (batch, outputs) array
        sweeps : int, optional
            As many as change q if not given.

        Raises
        ------
        ConvergenceError
            q does not converge: the state is no strict minimum, or nearly none.
        """
        xp, states = namespace(cotangent), relaxed.layers
        layers = []
        for layer, gain in zip(self.layers, self.gains(states), strict=True):
            slope = xp.where(gain > 0, layer.slope + xp.zeros_like(gain), xp.full_like(gain, math.inf))
            layers.append(Layer(layer.shape, slope, -math.inf, math.inf))
        linear = LayeredEnergy(layers, self.couplings, frozen=True)
        pulls = [xp.zeros_like(state) for state in states]
        pulls[-1] += xp.reshape(cotangent, states[-1].shape)
        found = relaxed._replace(layers=tuple(xp.zeros_like(state) for state in states))
        if sweeps is not None:
            return list(linear.relax(pulls, found, sweeps, reverse=True).layers)
        share, first = 64 * float(xp.finfo(pulls[0].dtype).eps), None
        for _ in range(0, RESPONSE_SWEEPS, SWEEPS_AT_ONCE):
            before, found = found, linear.relax(pulls, found, SWEEPS_AT_ONCE, reverse=True)
            change = _largest(xp, [new - old for new, old in zip(found.layers, before.layers)])
            size = _largest(xp, found.layers)
            if bool(xp.all(change <= share * size)):
                return list(found.layers)
            first = size if first is None else first
            if not bool(xp.all(share * size <= first)):
                break
        raise ConvergenceError(
            "the adjoint does not converge: the state is not a strict minimum of the energy, or too flat a one; relax "
            "with more sweeps"
        )

    def _minimise(
        self,
        index: int,
        states: Sequence[Array],
        switches: list[Array | None],
        tilted: Tilted,
        out: Array,
        buffer: Array,
        clipped: bool = True,
    ) -> Array:
        """The minimum over a layer given its neighbours, into `out` (within its bounds and with the switches that its
        neighbours then have, if ``clipped``); `buffer` is scratch."""
        xp, late = namespace(out), None
        if tilted.follow is not None and index == len(self.couplings):
            late = xp.reshape(tilted.follow(rows(xp, states[-1])), out.shape)
        self.pull(index, states, switches, out, buffer, renew=clipped and not self.frozen)
        out += tilted.pulls[index]
        if late is not None:
            out -= late
        out *= tilted.inverses[index]
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
        """What both neighbours pull at a layer with, into `out`; `buffer` is scratch."""
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

    def _tilted(self, constants: Sequence[Array], nudge: Nudge | None) -> Tilted:
        """The layers' own terms with a nudge of the last one."""
        slopes, pulls = [layer.slope for layer in self.layers], list(constants)
        if nudge is not None:
            slopes[-1] = slopes[-1] + nudge.stiffness
            if nudge.follow is None:
                pulls[-1] = pulls[-1] - namespace(pulls[-1]).reshape(nudge.linear, (-1, *self.layers[-1].shape))
        return Tilted([1.0 / slope for slope in slopes], pulls, None if nudge is None else nudge.follow)


def _largest(xp: Any, layers: Sequence[Array]) -> Array:
    """(batch,) largest magnitude over all layers."""
    found = [xp.max(xp.abs(rows(xp, layer)), axis=1) for layer in layers]
    return xp.max(xp.stack(found), axis=0)
