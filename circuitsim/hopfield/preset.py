"""The published deep Hopfield networks as values, from a table."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import NamedTuple

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


@cache
def published_models() -> dict[str, HopfieldPreset]:
    """The published models by name."""
    text = resources.files("circuitsim.hopfield").joinpath("presets.toml").read_text(encoding="utf-8")
    found = {}
    for name, row in tomllib.loads(text).items():
        published = row.pop("published")
        hidden, rates = tuple(row.pop("hidden")), tuple(row.pop("rates"))
        found[name] = HopfieldPreset(name, hidden=hidden, rates=rates, **row, **published)
    return found


def rates_by_name(rates: tuple[float, ...], factor: float = 1.0) -> dict[str, float]:
    """The rates of `HopfieldPreset.rates` by the parameter names of `DeepHopfieldBlock`, times a factor."""
    named = {}
    for layer, rate in enumerate(rates):
        named[f"weights{layer}"] = named[f"bias{layer + 1}"] = factor * rate
    return named
