"""Whether a nudged state is a strict minimum: least curvature of the nudged energy, by Lanczos' method.

A nudge of negative strength takes curvature away. Where too much is gone the energy falls without end along some
direction: the sweeps diverge, slowly at first, and differences of such states are no gradients.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from circuitsim._arrays import Array, device, for_products, namespace, to_numpy
from circuitsim.blocks.couplings import rows
from circuitsim.blocks.protocol import Nudge

if TYPE_CHECKING:
    from circuitsim.blocks.alternating import LayeredEnergy, Relaxed

STEPS = 12
"""Products with the Hessian: an eigenvalue apart from the others is found to a few percent."""

NUDGE_STEPS, SAFETY = 4, 2.0
"""Products with a following nudge's own Hessian, and what its least eigenvalue found so is multiplied with."""

DISPLACEMENT = 1e-2
"""Largest move of an output by which the curvature of a nudge that follows it is measured."""

ROUNDING = 1e-3
"""Share of a layer's own curvature below which that of a nudge counts as rounding."""


def takes_curvature_away(nudge: Nudge | None) -> bool:
    """Whether the energy may be less convex with the nudge than without."""
    return nudge is not None and (nudge.follow is not None or least_stiffness(nudge) < 0.0)


def least_stiffness(nudge: Nudge) -> float:
    """The least of a nudge's stiffnesses, of any array library."""
    value: Any = nudge.stiffness
    return float(value if isinstance(value, int | float) else to_numpy(value).min())


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
    softened = _softened(nudge)
    if softened is None:
        return _convex_between(energy, begin, end, nudge)
    samples, stiffness = softened
    convex = np.ones(end.layers[0].shape[0], dtype=bool)
    for layer in end.layers:
        convex &= np.isfinite(to_numpy(rows(namespace(layer), layer))).all(axis=1)
    part = nudge._replace(stiffness=stiffness)
    convex[samples] = _convex_between(energy, _some(begin, samples), _some(end, samples), part)
    return convex


def _softened(nudge: Nudge) -> tuple[np.ndarray, Any] | None:
    """Samples of negative stiffness and what it is, where they are only a part of the batch."""
    stiffness: Any = nudge.stiffness
    if nudge.follow is not None or isinstance(stiffness, int | float) or stiffness.ndim < 2 or len(stiffness) < 2:
        return None
    negative = (to_numpy(stiffness) < 0.0).reshape(len(stiffness), -1).any(axis=1)
    samples = np.flatnonzero(negative)
    return None if negative.all() else (samples, stiffness[samples])


def _convex_between(energy: LayeredEnergy, begin: Relaxed, end: Relaxed, nudge: Nudge) -> np.ndarray:
    """`convex_between` on all samples."""
    half = tuple(0.5 * (a + b) for a, b in zip(begin.layers, end.layers, strict=True))
    states = [end._replace(layers=layers) for layers in (begin.layers, half, end.layers)]
    if nudge.follow is None:
        # Its curvature is the same everywhere. Half way all units are free that are so at one of the states, or move
        # from bound to bound.
        states, taken = states[1:2], -least_stiffness(nudge)
    else:
        taken = -SAFETY * min(float(_least_of_nudge(state, nudge).min()) for state in states)
    slope = energy.layers[-1].slope
    own = float(slope if isinstance(slope, int | float) else to_numpy(slope).min())
    convex = np.ones(end.layers[0].shape[0], dtype=bool)
    if taken <= ROUNDING * own or taken < _least_of_all(energy, end):
        return convex
    for state in states:
        convex &= least_curvature(energy, state, nudge) > 0.0
    return convex


def _least_of_all(energy: LayeredEnergy, relaxed: Relaxed) -> float:
    """Least curvature of the energy without a nudge, with all units free: less than on any part of them."""
    if any(switches is not None for switches in relaxed.switches):
        return -np.inf  # pooled: another one for each sample
    free = [layer._replace(lower=None, upper=None) for layer in energy.layers]
    first = relaxed._replace(layers=tuple(layer[:1] for layer in relaxed.layers))
    found = float(least_curvature(replace(energy, layers=free), first, None)[0])
    return found if np.isfinite(found) else -np.inf


def _some(relaxed: Relaxed, samples: np.ndarray) -> Relaxed:
    """Some samples of a batch."""
    switches = tuple(None if switch is None else switch[samples] for switch in relaxed.switches)
    layers = tuple(for_products(layer[samples]) for layer in relaxed.layers)
    return relaxed._replace(layers=layers, switches=switches)


def _least_of_nudge(relaxed: Relaxed, nudge: Nudge) -> np.ndarray:
    """Least curvature of a following nudge at the outputs (batch,); −inf for NaN."""
    xp, output = namespace(relaxed.layers[-1]), rows(namespace(relaxed.layers[-1]), relaxed.layers[-1])
    units = output.shape[1]

    def apply(flat: np.ndarray) -> np.ndarray:
        return to_numpy(_followed(xp, nudge, output, _like(xp, flat, output))).astype(np.float64)

    start = np.repeat(np.random.default_rng(0).normal(size=(1, units)), output.shape[0], axis=0)
    with np.errstate(invalid="ignore", over="ignore"):
        found = _least_ritz_value(apply, start, min(NUDGE_STEPS, units))
    return np.where(np.isnan(found), -np.inf, found)


def least_curvature(energy: LayeredEnergy, relaxed: Relaxed, nudge: Nudge | None) -> np.ndarray:
    """Least eigenvalue of the nudged energy's Hessian on the units that are not at a bound, an upper bound of it.

    Parameters
    ----------
    energy : LayeredEnergy
    relaxed : Relaxed
        The nudged state.
    nudge : Nudge or None

    Returns
    -------
    (batch,) ndarray
        +inf where all units are at bounds; NaN where the state is not finite.
    """
    xp, states = namespace(relaxed.layers[0]), relaxed.layers
    sizes = [math.prod(state.shape[1:]) for state in states]
    inside = np.concatenate(
        [to_numpy(rows(xp, xp.astype(gain > 0, gain.dtype))) for gain in energy.gains(states)], axis=1
    ).astype(np.float64)

    def apply(flat: np.ndarray) -> np.ndarray:
        """The Hessian times a direction (batch, units), both on the units inside their bounds."""
        parts = np.split(flat, np.cumsum(sizes)[:-1], axis=1)
        layers = [_like(xp, part.reshape(state.shape), state) for part, state in zip(parts, states)]
        found = [rows(xp, part) for part in _product(xp, energy, relaxed, nudge, layers)]
        return inside * np.concatenate([to_numpy(part) for part in found], axis=1).astype(np.float64)

    start = inside * np.random.default_rng(0).normal(size=(1, sum(sizes)))
    finite = np.array([np.isfinite(to_numpy(rows(xp, state))).all(axis=1) for state in states]).all(axis=0)
    with np.errstate(invalid="ignore", over="ignore"):
        found = _least_ritz_value(apply, start, min(STEPS, sum(sizes)))
    found = np.where(inside.any(axis=1), found, np.inf)
    return np.where(finite, found, np.nan)


def _product(
    xp: Any, energy: LayeredEnergy, relaxed: Relaxed, nudge: Nudge | None, direction: list[Array]
) -> list[Array]:
    """Hessian of the nudged energy at a state times a direction, without regard to bounds."""
    found = []
    for index, (layer, move) in enumerate(zip(energy.layers, direction, strict=True)):
        total, buffer = layer.slope * move, xp.empty_like(move)
        if index:
            energy.couplings[index - 1].forward(direction[index - 1], buffer, relaxed.switches[index - 1], False)
            total = total - buffer
        if index + 1 < len(direction):
            energy.couplings[index].backward(direction[index + 1], buffer, relaxed.switches[index])
            total = total - buffer
        found.append(total)
    if nudge is not None:
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


def _least_ritz_value(apply: Any, start: np.ndarray, steps: int) -> np.ndarray:
    """Least eigenvalue of a symmetric operator on the Krylov space of a start, one for each row."""
    norm = np.linalg.norm(start, axis=1, keepdims=True)
    basis = [start / np.where(norm > 0.0, norm, 1.0)]
    diagonal, beside = np.zeros((len(start), steps)), np.zeros((len(start), steps))
    length = np.full(len(start), steps)
    for k in range(steps):
        image = apply(basis[k])
        diagonal[:, k] = (image * basis[k]).sum(axis=1)
        size = np.linalg.norm(image, axis=1)
        for _ in range(2):
            for vector in basis:
                image = image - (image * vector).sum(axis=1, keepdims=True) * vector
        left = np.linalg.norm(image, axis=1)
        # A space that holds all further products is exact: it ends here.
        ended = (left <= 1e-6 * size) & (length == steps)
        length[ended] = k + 1
        beside[:, k] = np.where(length > k + 1, left, 0.0)
        basis.append(np.where((length > k + 1)[:, None], image / np.where(left > 0.0, left, 1.0)[:, None], 0.0))
    # Beyond the end of a space its largest diagonal entry stands alone: it is no less than the least eigenvalue.
    beyond = np.arange(steps) >= length[:, None]
    diagonal = np.where(beyond, diagonal.max(axis=1, keepdims=True, where=~beyond, initial=-np.inf), diagonal)
    matrix = diagonal[:, :, None] * np.eye(steps)
    places = np.arange(steps - 1)
    matrix[:, places, places + 1] = matrix[:, places + 1, places] = beside[:, :-1]
    finite = np.asarray(np.isfinite(matrix).all(axis=(1, 2)))
    found = np.linalg.eigvalsh(np.where(finite[:, None, None], matrix, 0.0))[:, 0]
    return np.where(finite, found, np.nan)


def _like(xp: Any, values: np.ndarray, state: Array) -> Array:
    """An array as those of a state: library, precision, device."""
    return xp.asarray(values, dtype=state.dtype, device=device(state))
