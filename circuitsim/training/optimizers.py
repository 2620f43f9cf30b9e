"""Optimisers and learning-rate schedules.

An optimiser is a frozen value; its memory is a dict of arrays that a checkpoint can hold. A schedule is a factor on its
rates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from circuitsim.errors import UsageError
from circuitsim.training.checkpoint import Arrays

Rates = float | Mapping[str, float]


def _of(values: Rates, name: str) -> float:
    """The value for one parameter: the same for all, or looked up (0 for a decay that is not named)."""
    return values.get(name, 0.0) if isinstance(values, Mapping) else values


@dataclass(frozen=True)
class Optimizer:
    """A descent with rates and decays by parameter; its memory is the number of steps, and arrays for each parameter.

    A trainer takes any object with `start` and `step`.
    """

    rate: Rates
    decay: Rates = field(default=0.0, kw_only=True)

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of the arrays that are kept for each parameter."""
        return ()

    def __post_init__(self) -> None:
        for what, values in (("learning rate", self.rate), ("weight decay", self.decay)):
            for value in values.values() if isinstance(values, Mapping) else (values,):
                if not (0 <= value < float("inf")):
                    raise UsageError(f"a {what} must be finite and non-negative, not {value}")

    def start(self, parameters: Mapping[str, np.ndarray]) -> Arrays:
        """The memory before the first step: zeros."""
        known = sorted(parameters)
        if isinstance(self.rate, Mapping) and set(self.rate) != set(known):
            raise UsageError(f"learning rates are given for {sorted(self.rate)}, but the parameters are {known}")
        if isinstance(self.decay, Mapping) and not set(self.decay) <= set(known):
            raise UsageError(f"weight decays are given for {sorted(self.decay)}, but the parameters are {known}")
        arrays = {f"{slot}.{name}": np.zeros_like(array) for name, array in parameters.items() for slot in self.slots}
        return {"steps": np.zeros((), dtype=np.int64), **arrays}

    def step(self, parameters: Mapping[str, np.ndarray], gradients: Arrays, memory: Arrays, factor: float) -> None:
        """Move parameters and memory in place.

        Parameters
        ----------
        parameters : mapping of str to ndarray
            The model's own arrays.
        gradients : dict of str to ndarray
            Of the same names and shapes; may be overwritten.
        memory : dict of str to ndarray
            From `start` and earlier steps.
        factor : float
            Of the schedule; multiplies every learning rate.
        """
        memory["steps"] += 1
        for name, parameter in parameters.items():
            gradient, strength = gradients[name], _of(self.decay, name)
            if strength:
                # An L2 penalty: the gradient of decay/2 times the squared norm.
                gradient += strength * parameter
            slots = [memory[f"{slot}.{name}"] for slot in self.slots]
            rate = parameter.dtype.type(_of(self.rate, name) * factor)
            parameter -= self._change(gradient, rate, slots, int(memory["steps"]))

    def _change(self, gradient: np.ndarray, rate: np.floating, slots: list[np.ndarray], steps: int) -> np.ndarray:
        """What a parameter is lowered by; the gradient may be overwritten."""
        raise NotImplementedError


@dataclass(frozen=True)
class SGD(Optimizer):
    """``u ← momentum · u + gradient + decay p``, ``p ← p − rate · factor · u``; without momentum plain descent.

    Parameters
    ----------
    rate : float or mapping
        Learning rate, one for all or one for each parameter name.
    decay : float or mapping
        L2 weight decay, one for all or by name (names left out: none).
    momentum : float
        Of the heavy ball, in [0, 1).
    """

    decay: Rates = 0.0
    momentum: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.momentum < 1:
            raise UsageError(f"momentum must lie in [0, 1), not {self.momentum}")

    @property
    def slots(self) -> tuple[str, ...]:
        """The velocity u, where there is momentum."""
        return ("velocity",) * bool(self.momentum)

    def rates(self, parameters: Mapping[str, np.ndarray], factor: float) -> dict[str, float]:
        """The learning rate of each parameter, for models that make the step themselves.

        Parameters
        ----------
        parameters : mapping of str to ndarray
            Gives the names.
        factor : float
            Of the schedule; multiplies every learning rate.

        Raises
        ------
        UsageError
            There is momentum or weight decay, which such models do not support.
        """
        if self.momentum or any(_of(self.decay, name) for name in parameters):
            raise UsageError("this model makes its own steps, which have neither momentum nor weight decay")
        return {name: _of(self.rate, name) * factor for name in parameters}

    def _change(self, gradient: np.ndarray, rate: np.floating, slots: list[np.ndarray], steps: int) -> np.ndarray:
        for velocity in slots:
            velocity *= rate.dtype.type(self.momentum)
            velocity += gradient
            gradient[...] = velocity
        gradient *= rate
        return gradient


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam (Kingma & Ba 2015) with bias correction; decay is added to the gradient (L2), as in the papers' runs."""

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (0 <= self.beta1 < 1 and 0 <= self.beta2 < 1):
            raise UsageError(f"Adam's averages must lie in [0, 1), not {self.beta1} and {self.beta2}")

    @property
    def slots(self) -> tuple[str, ...]:
        """First and second moments."""
        return ("first", "second")

    def _change(self, gradient: np.ndarray, rate: np.floating, slots: list[np.ndarray], steps: int) -> np.ndarray:
        first, second = slots
        first += (1 - self.beta1) * (gradient - first)
        second += (1 - self.beta2) * (gradient * gradient - second)
        scale = np.sqrt(second / (1 - self.beta2**steps)) + self.epsilon
        return rate / (1 - self.beta1**steps) * first / scale


class Schedule(Protocol):
    """A factor for each epoch, counted from 0."""

    def factor(self, epoch: int) -> float:
        """Multiplier of every learning rate during this epoch."""
        ...


@dataclass(frozen=True)
class Exponential:
    """The rate is multiplied by ``decay`` after every epoch (Scellier 2024 uses 0.99)."""

    decay: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.decay <= 1:
            raise UsageError(f"the rate's decay per epoch must lie in (0, 1], not {self.decay}")

    def factor(self, epoch: int) -> float:
        """``decay ** epoch``."""
        return self.decay**epoch


Constant = Exponential
"""The same rate throughout."""


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from 1 at epoch 0 down to ``final`` at epoch ``epochs`` (Nest & Ernoult 2024), then ``final``."""

    epochs: int
    final: float = 0.0

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise UsageError(f"a cosine schedule needs at least one epoch, not {self.epochs}")
        if not 0 <= self.final <= 1:
            raise UsageError(f"the final rate of a cosine schedule is a fraction in [0, 1], not {self.final}")

    def factor(self, epoch: int) -> float:
        """``final + (1 - final) (1 + cos(pi epoch / epochs)) / 2``."""
        turn = math.pi * min(epoch, self.epochs) / self.epochs
        return self.final + (1.0 - self.final) * 0.5 * (1.0 + math.cos(turn))
