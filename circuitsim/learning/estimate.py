"""Common types of learning rules: from a `GradientProblem` to an `Estimate`."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from circuitsim._arrays import Array, namespace
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
        Of the block's outputs; within a chain `circuitsim.learning.losses.Pull`, with the error that came back to them.
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
        ∂loss_b/∂x_b, not weighted; None where the rule gives none.
    residual : (batch,) float array
        Worst residual of the states used.
    certified : (batch,) bool array
        All states used are certified.
    lower, upper : (batch,) float array or None
        L_β ≤ loss ≤ L_−β, where the rule measures them (Scellier 2024, Theorem 3).
    kinks : Kinks or None
        Diodes and clamped units that change between the states used; None where the block does not tell.
    beta : float or None
        Strength of the nudge, where the rule has chosen it.
    states : tuple of State
        The free state and the nudged ones, where the rule has any.
    apart : list of (float, array) or None
        ``inputs`` as a sum of terms, sign and array (Nest & Ernoult 2024, Algorithm 2).
    counted : (batch,) bool array or None
        Samples that enter ``parameters`` where these are from two states.
    """

    parameters: Arrays
    inputs: np.ndarray | None
    residual: np.ndarray
    certified: np.ndarray
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None
    kinks: Kinks | None = None
    beta: float | None = None
    states: tuple[Any, ...] = ()
    apart: list[tuple[float, np.ndarray]] | None = None
    counted: np.ndarray | None = None

    @property
    def nudged(self) -> list[Any]:
        """The nudged states."""
        return [state for state in self.states if state is not self.states[0]]


@runtime_checkable
class Rule(Protocol):
    """A learning rule; a frozen value.

    A chain also reads, where a rule has them: ``nudging``; ``scale_errors``, whether the error at a block's output is
    divided by its largest entry first; ``allow_nonconvex``, whether samples count that are not certified.
    """

    def estimate(self, problem: GradientProblem) -> Estimate:
        """The estimate for one batch.

        Raises
        ------
        RuleError
            A block or a loss that the rule does not fit.
        """
        ...


def estimate_of(
    contrast: Contrast, weight: Array, counted: Array | None = None, apart: bool = False, **more: Any
) -> Estimate:
    """The estimate from two states.

    Parameters
    ----------
    contrast : Contrast
    weight : (batch,) array
        Fractions of the samples.
    counted : (batch,) bool array, optional
        Samples that enter the gradients; those of which all states are certified if not given.
    apart : bool
        Whether ``Estimate.apart`` is wanted.
    **more
        Further fields.
    """
    certified, like = contrast.certified, namespace(weight)
    counted = like.asarray(certified if counted is None else counted)

    def held(values: Array) -> Array:
        return like.where(counted[:, None], values, like.zeros_like(values))

    terms = [(sign, held(term)) for sign, term in contrast.inputs_apart()] if apart else None
    return Estimate(
        contrast.parameters(weight, counted),
        held(contrast.inputs()),
        contrast.residual,
        certified,
        **{"kinks": contrast.kinks, "states": contrast.states, "apart": terms, "counted": counted, **more},
    )
