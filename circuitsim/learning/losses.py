"""Losses of the outputs. A loss is a frozen value; targets are rows like the outputs, or classes (indices of outputs).

Arrays may be of any library of the array API.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from circuitsim._arrays import Array, device, namespace, to_numpy
from circuitsim.blocks.propagation import check_named
from circuitsim.errors import UsageError


@runtime_checkable
class Loss(Protocol):
    """A convex function of the outputs o (V) of each sample.

    Attributes
    ----------
    gradient_lipschitz : float
        Largest curvature of the loss in any direction, 1/V²  (the loss counts as a number).
    quadratic : bool
        Whether the curvature is gradient_lipschitz in every direction and at every output.
    """

    @property
    def gradient_lipschitz(self) -> float: ...

    @property
    def quadratic(self) -> bool: ...

    def value(self, output: Array, target: Array) -> Array:
        """The loss of each sample.

        Parameters
        ----------
        output : (batch, outputs) array
            Voltages, V.
        target : array
            (batch, outputs) voltages, V, or (batch,) classes (indices of outputs).

        Returns
        -------
        (batch,) array
        """
        ...

    def gradient(self, output: Array, target: Array) -> Array:
        """∂loss/∂output of each sample.

        Parameters
        ----------
        output : (batch, outputs) array
            Voltages, V.
        target : array
            (batch, outputs) voltages, V, or (batch,) classes (indices of outputs).

        Returns
        -------
        (batch, outputs) array
            Loss per volt; positive where a higher output raises the loss.
        """
        ...


def are_classes(target: Array) -> bool:
    """Whether targets are classes: whole numbers, one per sample."""
    return target.ndim == 1 and bool(namespace(target).isdtype(target.dtype, "integral"))


def target_rows(output: Array, target: Array, low: float = 0.0, high: float = 1.0) -> Array:
    """Targets as rows like the outputs.

    Parameters
    ----------
    output : (batch, outputs) array
        Gives shape and type.
    target : array
        Rows, one number a sample where there is one output, or classes.
    low, high : float
        Of the other outputs and the output of a class.

    Raises
    ------
    UsageError
        Rows of another shape, or classes that are no output's number.
    """
    xp, outputs = namespace(output), output.shape[1]
    if are_classes(target):
        if bool(xp.any((target < 0) | (target >= outputs))):
            raise UsageError(f"labels must be 0 to {outputs - 1}, the outputs of the chain")
        places = xp.arange(outputs, dtype=target.dtype, device=device(target))
        return xp.astype(target[:, None] == places[None, :], output.dtype) * (high - low) + low
    if target.ndim == 1:
        target = target[:, None]
    if tuple(target.shape) != tuple(output.shape):
        raise UsageError(f"targets of shape {tuple(target.shape)} for outputs of shape {tuple(output.shape)}")
    return xp.astype(target, output.dtype)


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

    def value(self, output: Array, target: Array) -> Array:
        """(batch,) losses, V²; the arguments are those of `Loss.value`."""
        return 0.5 * namespace(output).sum(self.gradient(output, target) ** 2, axis=1)

    def gradient(self, output: Array, target: Array) -> Array:
        """(batch, outputs) o − y, V; the arguments are those of `Loss.gradient`."""
        return output - target_rows(output, target, self.low, self.high)


@dataclass(frozen=True)
class CrossEntropy:
    """−Σ y log softmax(o / temperature); y is one at the class of the sample, or a row of shares.

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

    def value(self, output: Array, target: Array) -> Array:
        """(batch,) losses, nats; the arguments are those of `Loss.value`."""
        shifted, powers = self._powers(output)
        xp = namespace(output)
        spread = xp.log(xp.sum(powers, axis=1, keepdims=True)) - shifted
        return xp.sum(self._shares(output, target) * spread, axis=1)

    def gradient(self, output: Array, target: Array) -> Array:
        """(batch, outputs) (softmax Σ y − y) / temperature, 1/V; the arguments are those of `Loss.gradient`."""
        xp, wanted = namespace(output), self._shares(output, target)
        _, powers = self._powers(output)
        share = xp.sum(wanted, axis=1, keepdims=True) / xp.sum(powers, axis=1, keepdims=True)
        return (powers * share - wanted) / self.temperature

    def _shares(self, output: Array, target: Array) -> Array:
        xp, rows = namespace(output), target_rows(output, target)
        if not are_classes(target) and bool(xp.any(rows < 0) | xp.any(xp.sum(rows, axis=1) == 0)):
            raise UsageError("cross-entropy needs a class for each sample, not target voltages; use the squared error")
        return rows

    def _powers(self, output: Array) -> tuple[Array, Array]:
        """Outputs over the temperature less their largest, and e to these."""
        xp, scaled = namespace(output), output / self.temperature
        shifted = scaled - xp.max(scaled, axis=1, keepdims=True)
        return shifted, xp.exp(shifted)


@dataclass(frozen=True)
class Pull:
    """cotangent · o: the loss that a block within a chain sees, whose error at the block's output is given.

    Parameters
    ----------
    cotangent : (batch, outputs) array
    """

    cotangent: Any
    gradient_lipschitz = 0.0
    quadratic = True

    def value(self, output: Array, target: Array) -> Array:
        """(batch,) cotangent · o."""
        return namespace(output).sum(self.cotangent * output, axis=1)

    def gradient(self, output: Array, target: Array) -> Array:
        """(batch, outputs) the cotangent."""
        return self.cotangent


def error(output: Array, target: Array) -> Array:
    """(batch,) 1 where the largest output is not that of the class; or the mean squared distance to the targets, V²."""
    xp = namespace(output)
    if are_classes(target):
        return xp.astype(xp.argmax(output, axis=1) != target, xp.float64)
    return xp.mean((output - target_rows(output, target)) ** 2, axis=1)


MANY_CLASSES = 20
"""Classes beyond which the five largest outputs are measured too."""


def measured(loss: Loss, output: Array, target: Array) -> dict[str, float]:
    """Means over samples: ``loss``, ``error``, and of many classes ``top5_error``."""
    found = {"loss": loss.value(output, target), "error": error(output, target)}
    means = {name: float(to_numpy(values).mean(dtype=np.float64)) for name, values in found.items()}
    if are_classes(target) and output.shape[1] > MANY_CLASSES:
        outputs = to_numpy(output)
        right = np.take_along_axis(outputs, to_numpy(target)[:, None], axis=1)
        means["top5_error"] = float(np.mean((outputs > right).sum(axis=1) >= 5))
    return means


LOSSES: dict[str, Loss] = {"cross-entropy": CrossEntropy(), "mse": SquaredError()}
"""By their names in descriptions and commands."""


def loss_named(loss: str | dict[str, Any] | Loss) -> Loss:
    """One of `LOSSES` by its name or as `describe_loss` writes it; a loss as it is.

    Raises
    ------
    UsageError
        There is none of that name.
    """
    table = {"name": loss} if isinstance(loss, str) else loss
    if not isinstance(table, dict):
        return table
    fields = dict(table)
    name = fields.pop("name")
    check_named(loss=(name, LOSSES))
    return type(LOSSES[name])(**fields)


def describe_loss(loss: Loss) -> str | dict[str, Any]:
    """A loss as plain values: its name, and its parameters where they are others than in `LOSSES`."""
    for name, known in LOSSES.items():
        if loss == known:
            return name
        if type(loss) is type(known):
            return {"name": name, **asdict(loss)}  # type: ignore[call-overload]
    return type(loss).__name__
