"""The published deep Hopfield networks as values, from a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from circuitsim.training.presets import published


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
    batch : int
    rate_decay : float
        Factor on the learning rates after each epoch.
    spread : float
        Weights start uniform in ±spread/√(units before them).
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
    batch: int = 16
    rate_decay: float = 0.99
    spread: float = 0.7


def published_models() -> dict[str, HopfieldPreset]:
    """The published models by name."""
    return {name: HopfieldPreset(name, **row) for name, row in published("dhn").items()}
