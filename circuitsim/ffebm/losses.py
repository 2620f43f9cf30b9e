"""Losses at the end of a chain: each sample's value and its derivative with respect to the predictions."""

from __future__ import annotations

from typing import Any, NamedTuple

from circuitsim._arrays import Array, device, namespace
from circuitsim.errors import UsageError


class ChainLoss(NamedTuple):
    """One of `LOSSES`.

    Attributes
    ----------
    name : str
    evaluate : callable
        ``evaluate(predictions, targets) -> (values (batch,), derivatives (batch, outputs))``.
    """

    name: str
    evaluate: Any


def as_targets(predictions: Array, targets: Array) -> Array:
    """Targets as rows like the predictions: whole numbers are labels and become one-hot rows.

    Raises
    ------
    UsageError
        Rows of another length, or labels that are no output's number.
    """
    xp = namespace(predictions)
    outputs = predictions.shape[1]
    if targets.ndim == 1 and xp.isdtype(targets.dtype, "integral"):
        if bool(xp.any((targets < 0) | (targets >= outputs))):
            raise UsageError(f"labels must be 0 to {outputs - 1}, the outputs of the chain")
        places = xp.arange(outputs, dtype=targets.dtype, device=device(targets))
        return xp.astype(targets[:, None] == places[None, :], predictions.dtype)
    if targets.ndim == 1:
        targets = targets[:, None]
    if tuple(targets.shape) != tuple(predictions.shape):
        raise UsageError(f"targets of shape {tuple(targets.shape)} for outputs of shape {tuple(predictions.shape)}")
    return xp.astype(targets, predictions.dtype)


def _cross_entropy(predictions: Array, targets: Array) -> tuple[Array, Array]:
    """−Σ y log softmax(o), and softmax(o) Σ y − y."""
    xp = namespace(predictions)
    targets = as_targets(predictions, targets)
    shifted = predictions - xp.max(predictions, axis=1, keepdims=True)
    powers = xp.exp(shifted)
    total = xp.sum(powers, axis=1, keepdims=True)
    weight = xp.sum(targets, axis=1, keepdims=True)
    values = xp.sum(targets * (xp.log(total) - shifted), axis=1)
    return values, powers / total * weight - targets


def _squared_error(predictions: Array, targets: Array) -> tuple[Array, Array]:
    """½ ‖o − y‖², and o − y."""
    xp = namespace(predictions)
    error = predictions - as_targets(predictions, targets)
    return 0.5 * xp.sum(error * error, axis=1), error


LOSSES = {"cross-entropy": ChainLoss("cross-entropy", _cross_entropy), "mse": ChainLoss("mse", _squared_error)}


def loss_named(name: str) -> ChainLoss:
    """One of `LOSSES`."""
    if name not in LOSSES:
        raise UsageError(f"there is no loss '{name}'; there are {', '.join(LOSSES)}")
    return LOSSES[name]
