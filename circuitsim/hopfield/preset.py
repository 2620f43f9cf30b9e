"""The published deep Hopfield networks as values, from a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from circuitsim.training.presets import published

SPREAD = 0.7
"""Weights start uniform in ±SPREAD/√(units before them)."""

RATE_DECAY = 0.99
"""Factor on the learning rates after each epoch."""

BATCH = 16


class HopfieldPreset(NamedTuple):
    """A published model.

    Attributes
    ----------
    name, title : str
    hidden : tuple of int
        Units of the hidden layers.
    sweeps, nudged_sweeps : int
        T and K.
    beta : float
        Strength of the nudge.
    rates : tuple of float
        Learning rate of each layer's weights and biases, first to last.
    epochs : int
    error, spread : float
        Published test error, %, mean and deviation over runs.
    """

    name: str
    title: str
    hidden: tuple[int, ...]
    sweeps: int
    nudged_sweeps: int
    beta: float
    rates: tuple[float, ...]
    epochs: int
    error: float
    spread: float


def published_models() -> dict[str, HopfieldPreset]:
    """The published models by name."""
    return {name: _preset(name, **row) for name, row in published("dhn").items()}


def _preset(name: str, hidden: list[int], rates: list[float], published: Any, **more: Any) -> HopfieldPreset:
    return HopfieldPreset(name, hidden=tuple(hidden), rates=tuple(rates), **more, **published["ep"])


def rates_by_name(rates: Sequence[float]) -> dict[str, float]:
    """The rates of `HopfieldPreset.rates` by the parameter names of `DeepHopfieldBlock`."""
    weights = {f"weights{layer}": rate for layer, rate in enumerate(rates)}
    return weights | {f"bias{layer}": rate for layer, rate in enumerate(rates, 1)}
