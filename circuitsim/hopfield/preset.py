"""The published deep Hopfield networks as values, from a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
    hidden : list of int
        Units of the hidden layers.
    sweeps, nudged_sweeps : int
        T and K.
    beta : float
        Strength of the nudge.
    rates : list of float
        Learning rate of each layer's weights and biases, first to last.
    epochs : int
    published : mapping
        ``ep``: test ``error``, %, and its ``spread`` over runs.
    """

    name: str
    title: str
    hidden: Sequence[int]
    sweeps: int
    nudged_sweeps: int
    beta: float
    rates: Sequence[float]
    epochs: int
    published: Mapping[str, Mapping[str, float]]


def published_models() -> dict[str, HopfieldPreset]:
    """The published models by name."""
    return {name: HopfieldPreset(name, **row) for name, row in published("dhn").items()}


def rates_by_name(rates: Sequence[float]) -> dict[str, float]:
    """The rates of `HopfieldPreset.rates` by the parameter names of `DeepHopfieldBlock`."""
    weights = {f"weights{layer}": rate for layer, rate in enumerate(rates)}
    return weights | {f"bias{layer}": rate for layer, rate in enumerate(rates, 1)}
