"""Steps downhill. An optimiser is a frozen value; its memory is a dict of arrays that a checkpoint can hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from circuitsim.errors import UsageError
from circuitsim.training.trainable import Arrays

Rates = float | Mapping[str, float]


class Optimizer(Protocol):
    """The interface of an optimiser."""

    def start(self, parameters: Mapping[str, np.ndarray]) -> Arrays:
        """The memory before the first step."""
        ...

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
        ...


PART = 1 << 14
"""Numbers of which one step is made at a time."""


def _of(values: Rates, name: str) -> float:
    """The value for one parameter: the same for all, or looked up (0 for a decay that is not named)."""
    return values.get(name, 0.0) if isinstance(values, Mapping) else values


def _check(rate: Rates, decay: Rates) -> None:
    rates = rate.values() if isinstance(rate, Mapping) else (rate,)
    decays = decay.values() if isinstance(decay, Mapping) else (decay,)
    for value in rates:
        if not (0 <= value < float("inf")):
            raise UsageError(f"a learning rate must be finite and not negative, not {value}")
    for value in decays:
        if not (0 <= value < float("inf")):
            raise UsageError(f"a weight decay must be finite and not negative, not {value}")


def _check_names(rate: Rates, decay: Rates, parameters: Mapping[str, np.ndarray]) -> None:
    known = list(parameters)
    if isinstance(rate, Mapping) and set(rate) != set(known):
        raise UsageError(f"learning rates are given for {sorted(rate)}, but the parameters are {sorted(known)}")
    if isinstance(decay, Mapping) and not set(decay) <= set(known):
        raise UsageError(f"weight decays are given for {sorted(decay)}, but the parameters are {sorted(known)}")


def _add_decay(decay: Rates, name: str, parameter: np.ndarray, gradient: np.ndarray) -> None:
    """L2 penalty: gradient of decay/2 times the squared norm."""
    strength = _of(decay, name)
    if strength:
        gradient += strength * parameter


def _parts(parameter: np.ndarray, gradient: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Both in parts that stay in the cache between two operations, where they have one order in memory."""
    for turned in (np.asarray, np.transpose):
        flat = [turned(array) for array in (parameter, gradient)]
        if all(array.flags.c_contiguous for array in flat):
            ours, theirs = (array.reshape(-1) for array in flat)
            for start in range(0, ours.size, PART):
                yield ours[start : start + PART], theirs[start : start + PART]
            return
    yield parameter, gradient


@dataclass(frozen=True)
class SGD:
    """``p ← p − rate · factor · (gradient + decay p)``.

    Parameters
    ----------
    rate : float or mapping
        Learning rate, one for all or one for each parameter name.
    decay : float or mapping
        L2 weight decay, one for all or by name (names left out: none).
    """

    rate: Rates
    decay: Rates = 0.0

    def __post_init__(self) -> None:
        _check(self.rate, self.decay)

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
            There is weight decay, which such models do not support.
        """
        if any(_of(self.decay, name) for name in parameters):
            raise UsageError("this model makes its own steps, which have no weight decay")
        return {name: _of(self.rate, name) * factor for name in parameters}

    def start(self, parameters: Mapping[str, np.ndarray]) -> Arrays:
        """No memory."""
        _check_names(self.rate, self.decay, parameters)
        return {}

    def step(self, parameters: Mapping[str, np.ndarray], gradients: Arrays, memory: Arrays, factor: float) -> None:
        """One step, in place; the arguments are those of `Optimizer.step`."""
        for name, parameter in parameters.items():
            gradient = gradients[name]
            _add_decay(self.decay, name, parameter, gradient)
            rate = parameter.dtype.type(_of(self.rate, name) * factor)
            for part, slope in _parts(parameter, gradient):
                part -= rate * slope


@dataclass(frozen=True)
class Momentum:
    """Heavy ball: ``u ← momentum · u + gradient + decay p``, ``p ← p − rate · factor · u``."""

    rate: Rates
    momentum: float = 0.9
    decay: Rates = 0.0

    def __post_init__(self) -> None:
        _check(self.rate, self.decay)
        if not 0 <= self.momentum < 1:
            raise UsageError(f"momentum must lie in [0, 1), not {self.momentum}")

    def start(self, parameters: Mapping[str, np.ndarray]) -> Arrays:
        """Velocities at rest."""
        _check_names(self.rate, self.decay, parameters)
        return {f"velocity.{name}": np.zeros_like(parameter) for name, parameter in parameters.items()}

    def step(self, parameters: Mapping[str, np.ndarray], gradients: Arrays, memory: Arrays, factor: float) -> None:
        """One step, in place; the arguments are those of `Optimizer.step`."""
        for name, parameter in parameters.items():
            gradient, velocity = gradients[name], memory[f"velocity.{name}"]
            _add_decay(self.decay, name, parameter, gradient)
            velocity *= parameter.dtype.type(self.momentum)
            velocity += gradient
            np.multiply(velocity, parameter.dtype.type(_of(self.rate, name) * factor), out=gradient)
            parameter -= gradient


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma & Ba 2015) with bias correction; decay is added to the gradient (L2), as in the papers' runs."""

    rate: Rates
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    decay: Rates = field(default=0.0)

    def __post_init__(self) -> None:
        _check(self.rate, self.decay)
        if not (0 <= self.beta1 < 1 and 0 <= self.beta2 < 1):
            raise UsageError(f"Adam's averages must lie in [0, 1), not {self.beta1} and {self.beta2}")

    def start(self, parameters: Mapping[str, np.ndarray]) -> Arrays:
        """First and second moments at zero, and the number of steps."""
        _check_names(self.rate, self.decay, parameters)
        memory: Arrays = {"steps": np.zeros((), dtype=np.int64)}
        for name, parameter in parameters.items():
            memory[f"first.{name}"] = np.zeros_like(parameter)
            memory[f"second.{name}"] = np.zeros_like(parameter)
        return memory

    def step(self, parameters: Mapping[str, np.ndarray], gradients: Arrays, memory: Arrays, factor: float) -> None:
        """One step, in place; the arguments are those of `Optimizer.step`."""
        memory["steps"] += 1
        steps = int(memory["steps"])
        for name, parameter in parameters.items():
            gradient, first, second = gradients[name], memory[f"first.{name}"], memory[f"second.{name}"]
            _add_decay(self.decay, name, parameter, gradient)
            first += (1 - self.beta1) * (gradient - first)
            second += (1 - self.beta2) * (gradient * gradient - second)
            scale = np.sqrt(second / (1 - self.beta2**steps)) + self.epsilon
            parameter -= _of(self.rate, name) * factor / (1 - self.beta1**steps) * first / scale
