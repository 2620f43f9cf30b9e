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
    lower, upper : float, array or None
        Bounds of the units.
    """

    shape: tuple[int, ...]
    slope: Any = 1.0
    lower: Any = 0.0
    upper: Any = 1.0


class Relaxed(NamedTuple):
    """Layers after a number of sweeps, and the switches of their pooled couplings."""

    layers: tuple[Array, ...]
    switches: tuple[Array | None, ...]
    sweeps: int


class Tilted(NamedTuple):
    """Inverse slopes of the layers (None where they are 1), pulls on them, and what follows the output, if anything."""

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
        record: list[Relaxed] | None = None,
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
        record : list of Relaxed, optional
            The state after each sweep is appended.
        """
        xp = namespace(start.layers[0])
        states = [for_products(state) for state in start.layers]
        switches = list(start.switches)
        buffers = [xp.empty_like(state) for state in states]
        tilted = self._tilted(xp, constants, nudge)
        tilted = tilted._replace(pulls=[for_products(pull) for pull in tilted.pulls])
        order = _order(len(states), reverse)
        done = 0
        for done in range(1, sweeps + 1):
            before = None if tolerance is None else [xp.asarray(state, copy=True) for state in states]
            for index in order:
                self._minimise(index, states, switches, tilted, states[index], buffers[index])
            if record is not None:
                record.append(Relaxed(tuple(xp.asarray(state, copy=True) for state in states), tuple(switches), done))
            if before is not None and all(
                bool(xp.all(xp.abs(state - before[k]) <= tolerance * self.scale(k, states, tilted)))
                for k, state in enumerate(states)
            ):
                break
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
        tilted = self._tilted(xp, constants, nudge)
        states, switches = relaxed.layers, list(relaxed.switches)
        worst = None
        for index, state in enumerate(states):
            target = self._minimise(index, states, switches, tilted, xp.empty_like(state), xp.empty_like(state))
            off = rows(xp, xp.abs(target - state) / self.scale(index, states, tilted))
            here = xp.max(off, axis=1)
            worst = here if worst is None else xp.maximum(worst, here)
        return worst

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
        found = [np.zeros((states[0].shape[0], 0), np.int8)]
        for layer, state in zip(self.layers, states, strict=True):
            if layer.lower is None and layer.upper is None:
                continue
            at = np.zeros(state.shape, np.int8)
            for bound, sign in ((layer.lower, -1), (layer.upper, 1)):
                if bound is not None:
                    at[to_numpy(state == bound)] = sign
            found.append(at.reshape(len(at), -1))
        return np.concatenate(found, axis=1)

    def kinks(self, constants: Sequence[Array], relaxed: Relaxed) -> tuple[np.ndarray, int]:
        """(batch,) units at a bound whose minimum without bounds is there too, to `KINK`, and the units with bounds."""
        xp, states = namespace(relaxed.layers[0]), relaxed.layers
        tilted, switches = self._tilted(xp, constants, None), list(relaxed.switches)
        at_bound = self.active(states) != 0
        count, units = np.zeros(len(at_bound), dtype=np.int64), 0
        for index, (layer, state) in enumerate(zip(self.layers, states, strict=True)):
            if layer.lower is None and layer.upper is None:
                continue
            target = xp.empty_like(state)
            self._minimise(index, states, switches, tilted, target, xp.empty_like(state), clipped=False)
            near = to_numpy(xp.abs(target - state) <= KINK * xp.maximum(xp.abs(state), xp.ones_like(state)))
            size = math.prod(state.shape[1:])
            count += (near.reshape(len(near), -1) & at_bound[:, units : units + size]).sum(axis=1)
            units += size
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
        xp = namespace(states[0])
        gains = []
        for layer, state in zip(self.layers, states, strict=True):
            free = xp.ones_like(state)
            if layer.lower is not None:
                free = free * xp.astype(state > layer.lower, state.dtype)
            if layer.upper is not None:
                free = free * xp.astype(state < layer.upper, state.dtype)
            gains.append(free / layer.slope)
        return gains

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
            layers.append(Layer(layer.shape, slope, None, None))
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
        follows = tilted.follow is not None and index == len(states) - 1
        late = tilted.follow(states[-1]) if follows else None  # type: ignore[misc]
        self.pull(index, states, switches, out, buffer, renew=clipped and not self.frozen)
        out += tilted.pulls[index]
        if late is not None:
            out -= late
        if tilted.inverses[index] is not None:
            out *= tilted.inverses[index]
        if clipped:
            clip_into(namespace(out), out, self.layers[index].lower, self.layers[index].upper)
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
        written = False
        if index:
            switches[index - 1] = self.couplings[index - 1].forward(states[index - 1], out, switches[index - 1], renew)
            written = True
        if index + 1 < len(states):
            place = buffer if written else out
            self.couplings[index].backward(states[index + 1], place, switches[index])
            if written:
                out += buffer
            written = True
        if not written:
            out[...] = 0

    def _tilted(self, xp: Any, constants: Sequence[Array], nudge: Nudge | None) -> Tilted:
        """The layers' own terms with a nudge of the last one."""
        slopes = [layer.slope for layer in self.layers]
        pulls = list(constants)
        follow = None
        if nudge is not None:
            shape = self.layers[-1].shape
            slopes[-1] = slopes[-1] + nudge.stiffness
            if nudge.follow is not None:
                law = nudge.follow

                def follow(output: Array) -> Array:
                    return xp.reshape(law(rows(xp, output)), output.shape)
            else:
                pulls[-1] = pulls[-1] - xp.reshape(nudge.linear, (-1, *shape))
        inverses = [None if isinstance(slope, int | float) and slope == 1.0 else 1.0 / slope for slope in slopes]
        return Tilted(inverses, pulls, follow)


def _order(count: int, reverse: bool) -> list[int]:
    """Layers in the order of a sweep; index 0 is layer 1."""
    odd, even = list(range(0, count, 2)), list(range(1, count, 2))
    return even + odd if reverse else odd + even


def _largest(xp: Any, layers: Sequence[Array]) -> Array:
    """(batch,) largest magnitude over all layers."""
    found = [xp.max(xp.abs(rows(xp, layer)), axis=1) for layer in layers]
    return xp.max(xp.stack(found), axis=0)
