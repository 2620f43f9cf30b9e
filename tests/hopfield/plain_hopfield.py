"""A deep Hopfield network and its training step in plain numpy, from the paper: the reference for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Layers = list[np.ndarray]


def sweep(
    weights: Layers, biases: Layers, x: np.ndarray, states: Layers, beta: float = 0.0, target: np.ndarray | None = None
) -> None:
    """One sweep in place: layers 1, 3, 5 … together, then 2, 4 …; hidden units in [0, 1], outputs linear.

    s ← clip(Wᵀ s_below + W_above s_above + b, 0, 1);  o ← (Wᵀ s_below + b + β y)/(1 + β)   (Scellier 2024, App. E)
    """
    last = len(states)
    for layer in [*range(1, last + 1, 2), *range(2, last + 1, 2)]:
        below = x if layer == 1 else states[layer - 2]
        pull = below @ weights[layer - 1] + biases[layer - 1]
        if layer < last:
            states[layer - 1] = np.clip(pull + states[layer] @ weights[layer].T, 0.0, 1.0)
        elif target is None:
            states[layer - 1] = pull
        else:
            states[layer - 1] = (pull + beta * target) / (1.0 + beta)


def phase(
    weights: Layers,
    biases: Layers,
    x: np.ndarray,
    start: Layers,
    sweeps: int,
    beta: float = 0.0,
    target: np.ndarray | None = None,
) -> Layers:
    """The states after so many sweeps."""
    states = [state.copy() for state in start]
    for _ in range(sweeps):
        sweep(weights, biases, x, states, beta, target)
    return states


def train_step(
    weights: Layers,
    biases: Layers,
    x: np.ndarray,
    target: np.ndarray,
    start: Layers,
    sweeps: int,
    nudged_sweeps: int,
    beta: float,
    rates: Sequence[float],
) -> tuple[Layers, Layers]:
    """One step of centred equilibrium propagation, parameters moved in place; the free and the last nudged states."""
    free = phase(weights, biases, x, start, sweeps)
    minus = phase(weights, biases, x, free, nudged_sweeps, -beta, target)
    plus = phase(weights, biases, x, free, nudged_sweeps, beta, target)
    scale = 1.0 / (2.0 * beta * len(x))
    for layer, rate in enumerate(rates):
        high, low = (x, x) if layer == 0 else (plus[layer - 1], minus[layer - 1])
        weights[layer] += rate * scale * (high.T @ plus[layer] - low.T @ minus[layer])
        biases[layer] += rate * scale * (plus[layer] - minus[layer]).sum(axis=0)
    return free, plus
