"""Common types of gradient estimators: from a `GradientProblem` to an `Estimate`."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from circuitsim.blocks.kinks import Kinks
from circuitsim.blocks.propagation import Contrast
from circuitsim.blocks.protocol import Arrays, EnergyBlock, State
from circuitsim.learning.losses import Loss


class GradientProblem(NamedTuple):
    """A batch for a gradient estimate.

    Attributes
    ----------
    block : EnergyBlock
    x : (batch, inputs) float array
    target : (batch, outputs) float array or (batch,) int array
    loss : Loss
    free : State
        The relaxed, not nudged state at ``x``.
    weight : (batch,) float array
        Each sample's share in the gradient; 1/batch for a mean.
    """

    block: EnergyBlock
    x: np.ndarray
    target: np.ndarray
    loss: Loss
    free: State
    weight: np.ndarray


class Estimate(NamedTuple):
    """A gradient estimate, its residuals and bounds.

    Attributes
    ----------
    parameters : dict of str to ndarray
        Σ_b weight_b ∂loss_b/∂θ.
    inputs : (batch, inputs) float array or None
        ∂loss_b/∂x_b, not weighted; None where the method gives none.
    residual : (batch,) float array
        Worst residual of the states used.
    certified : (batch,) bool array
        All states used are certified.
    lower, upper : (batch,) float array or None
        L_β ≤ loss ≤ L_−β, where the method measures them (Scellier 2024, Theorem 3).
    kinks : Kinks or None
        Diodes and clamped units that change between the states used; None where the block does not tell.
    beta : float or None
        Strength of the nudge, where the method has chosen it.
    """

    parameters: Arrays
    inputs: np.ndarray | None
    residual: np.ndarray
    certified: np.ndarray
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None
    kinks: Kinks | None = None
    beta: float | None = None


@runtime_checkable
class Estimator(Protocol):
    """A gradient estimator; a frozen value."""

    def estimate(self, problem: GradientProblem) -> Estimate:
        """The estimate for one batch."""
        ...


def estimate_of(contrast: Contrast, weight: np.ndarray) -> Estimate:
    """The estimate from two states; samples with a state that is not certified are left out of the parameters."""
    certified = contrast.certified
    parameters = contrast.parameters(weight, certified)
    return Estimate(parameters, contrast.inputs(), contrast.residual, certified, kinks=contrast.kinks)
