"""Losses of the outputs. A loss is a frozen value; targets are voltages, or classes (indices of outputs)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from circuitsim.errors import UsageError


@runtime_checkable
class Loss(Protocol):
    """A convex function of the outputs o (V) of each sample.

    Attributes
    ----------
    gradient_lipschitz : float
        Largest curvature of the loss in any direction, 1/V²  (the loss counts as a number).
    quadratic : bool
        Whether the loss is ½ gradient_lipschitz ‖o − y‖².
    """

    @property
    def gradient_lipschitz(self) -> float: ...

    @property
    def quadratic(self) -> bool: ...

    def value(self, output: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The loss of each sample.

        Parameters
        ----------
        output : (batch, outputs) ndarray
            Voltages, V.
        target : ndarray
            (batch, outputs) voltages, V, or (batch,) classes (indices of outputs).

        Returns
        -------
        (batch,) ndarray
        """
        ...

    def gradient(self, output: np.ndarray, target: np.ndarray) -> np.ndarray:
        """∂loss/∂output of each sample.

        Parameters
        ----------
        output : (batch, outputs) ndarray
            Voltages, V.
        target : ndarray
            (batch, outputs) voltages, V, or (batch,) classes (indices of outputs).

        Returns
        -------
        (batch, outputs) ndarray
            Loss per volt; positive where a higher output raises the loss.
        """
        ...


@dataclass(frozen=True)
class SquaredError:
    """½ Σ (o − y)² over the outputs (Scellier 2024); the targets of a class: ``high`` at its output, ``low`` elsewhere.

    Parameters
    ----------
    low, high : float
        Target voltages of classes, V.
    """

    low: float = 0.0
    high: float = 1.0
    gradient_lipschitz = 1.0
    quadratic = True

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise UsageError(f"the target of a class, {self.high} V, must lie above that of the others, {self.low} V")

    def targets(self, output: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Target voltages.

        Parameters
        ----------
        output : (batch, outputs) ndarray
            Gives the shape.
        target : ndarray
            (batch, outputs) voltages, V, taken as they are, or (batch,) classes.

        Returns
        -------
        (batch, outputs) ndarray
            V.
        """
        if target.ndim == 2:
            return target
        wanted = np.full(output.shape, self.low)
        wanted[np.arange(len(target)), target] = self.high
        return wanted

    def value(self, output: np.ndarray, target: np.ndarray) -> np.ndarray:
        """(batch,) losses, V²; the arguments are those of `Loss.value`."""
        return 0.5 * ((output - self.targets(output, target)) ** 2).sum(axis=1)

    def gradient(self, output: np.ndarray, target: np.ndarray) -> np.ndarray:
        """(batch, outputs) o − y, V; the arguments are those of `Loss.gradient`."""
        return output - self.targets(output, target)


@dataclass(frozen=True)
class CrossEntropy:
    """−log softmax(o / temperature) at the class of the sample.

    Parameters
    ----------
    temperature : float
        Scale of the output voltages in the softmax, V.
    """

    temperature: float = 1.0
    quadratic = False

    def __post_init__(self) -> None:
        if not 0.0 < self.temperature < np.inf:
            raise UsageError(f"the temperature must be a positive voltage, not {self.temperature}")

    @property
    def gradient_lipschitz(self) -> float:
        """½ / temperature²: the largest eigenvalue of the softmax's covariance is at most ½."""
        return 0.5 / self.temperature**2

    def value(self, output: np.ndarray, target: np.ndarray) -> np.ndarray:
        """(batch,) losses, nats; the arguments are those of `Loss.value`."""
        return -_log_softmax(output / self.temperature)[np.arange(len(output)), _classes(target)]

    def gradient(self, output: np.ndarray, target: np.ndarray) -> np.ndarray:
        """(batch, outputs) (softmax − one-hot) / temperature, 1/V; the arguments are those of `Loss.gradient`."""
        probability = np.exp(_log_softmax(output / self.temperature))
        probability[np.arange(len(output)), _classes(target)] -= 1.0
        return probability / self.temperature


def error(output: np.ndarray, target: np.ndarray) -> np.ndarray:
    """(batch,) 1 where the largest output is not that of the class; or the mean squared distance to the targets, V²."""
    if target.ndim == 1:
        return (output.argmax(axis=1) != target).astype(float)
    return ((output - target) ** 2).mean(axis=1)


def _classes(target: np.ndarray) -> np.ndarray:
    if target.ndim != 1:
        raise UsageError("cross-entropy needs a class for each sample, not target voltages; use the squared error")
    return target


def _log_softmax(z: np.ndarray) -> np.ndarray:
    z = z - z.max(axis=1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=1, keepdims=True))
