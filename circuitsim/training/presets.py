"""The published models of all families, from one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from circuitsim._bundled import tables


def published(family: str) -> dict[str, dict[str, Any]]:
    """The models of a family of ``circuitsim train`` as ``presets.toml`` states them.

    Parameters
    ----------
    family : {"drn", "dhn", "ffebm", "chains", "studies"}

    Returns
    -------
    dict
        By name; not to be changed. Those of ``ffebm`` share the ``layers`` and ``pixels`` of ``chains``.
    """
    table: dict[str, dict[str, Any]] = tables("training/presets.toml")[family]
    return table


class Preset(NamedTuple):
    """A published network of layers: its sizes, hyper-parameters and results on MNIST.

    Attributes
    ----------
    name, title : str
    hidden : list of int
        Units of the hidden layers.
    sweeps, nudged_sweeps : int
        T and K; K is T where it is None.
    beta : float
        Strength of the nudge.
    weight_rates, bias_rates : list of float
        Learning rates of the layers, first to last.
    epochs, batch : int
    published : mapping
        ``ep`` and ``bp``: test ``error``, %, its ``spread`` over runs, and ``hours`` on one A100.
    rate_decay : float
        Factor on the learning rates after each epoch.
    input_gain : float
        Volts for an input of one, of resistive networks.
    spread : float
        Weights start uniform in ±spread/√(units before them).
    """

    name: str
    title: str
    hidden: Sequence[int]
    sweeps: int
    beta: float
    weight_rates: Sequence[float]
    bias_rates: Sequence[float]
    epochs: int
    batch: int
    published: Mapping[str, Mapping[str, float]]
    nudged_sweeps: int | None = None
    rate_decay: float = 0.99
    input_gain: float = 1.0
    spread: float = 1.0

    @classmethod
    def models(cls, family: str) -> dict[str, Self]:
        """The published models of a family by name."""
        return {name: cls(name, **row) for name, row in published(family).items()}

    def rates(self, weights: str = "conductances") -> dict[str, float]:
        """Learning rates by parameter name; Hopfield networks call their conductances ``weights``."""
        return rates_by_name(self.weight_rates, self.bias_rates, weights)


def rates_by_name(
    weight_rates: Sequence[float], bias_rates: Sequence[float], weights: str = "conductances"
) -> dict[str, float]:
    """Learning rates of the layers by parameter name; Hopfield networks call their conductances ``weights``."""
    found = {f"{weights}{layer}": rate for layer, rate in enumerate(weight_rates)}
    return found | {f"bias{layer}": rate for layer, rate in enumerate(bias_rates, 1)}
