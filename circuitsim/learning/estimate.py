"""Common types of learning rules: from a `GradientProblem` to an `Estimate`."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from circuitsim._arrays import Array, device, namespace
from circuitsim.blocks.kinks import Kinks, changed
from circuitsim.blocks.protocol import Arrays, EnergyBlock, State
from circuitsim.errors import ConvergenceError
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


class DivergedError(ConvergenceError):
    """No sample of a batch has finite nudged states, although unproven states are allowed."""


def contrasted(
    problem: GradientProblem,
    states: tuple[Any, ...],
    plus: Any,
    minus: Any,
    width: float,
    allow_nonconvex: bool = False,
    apart: bool = False,
    **more: Any,
) -> Estimate:
    """The estimate (∂E at plus − ∂E at minus) / width.

    Parameters
    ----------
    problem : GradientProblem
    states : tuple of State
        All that were relaxed: the free state first.
    plus, minus : State
        The two that are compared.
    width : float
        Distance of their strengths: 2β, β, or that of another rule.
    allow_nonconvex : bool
        Whether all samples with finite states enter the gradients, not only certified ones.
    apart : bool
        Whether ``Estimate.apart`` is wanted: each state against the free one, whose share cancels.
    **more
        Further fields.

    Raises
    ------
    DivergedError
        States without proof are allowed, and none is finite.
    """
    block, x, _, _, free, weight = problem
    xp, certified = namespace(weight), reduce(and_, [state.certified for state in states])
    counted = certified
    if allow_nonconvex:
        counted = _finite(plus) & _finite(minus)
        if not bool(counted.any()):
            raise DivergedError(
                f"no sample of the batch has finite states under its nudges (their strengths are {width:g} "
                "apart): the nudged energy has no minimum; choose a smaller beta, a nudge that does not follow the "
                "outputs, or, for chains, scaled errors"
            )
    counted = xp.asarray(counted, device=device(weight))

    def by_inputs(one: Any, other: Any) -> Array:
        found = block.input_difference(one, other, x) / width
        return xp.where(counted[:, None], found, xp.zeros_like(found))

    share = weight * xp.astype(counted, weight.dtype) / width
    residuals = [state.residual for state in states]
    terms = [(1.0, by_inputs(plus, free)), (-1.0, by_inputs(minus, free))] if apart else None
    return Estimate(
        dict(block.parameter_difference(plus, minus, x, share)),
        by_inputs(plus, minus),
        reduce(namespace(residuals[0]).maximum, residuals),
        certified,
        **{"kinks": changed(states), "states": states, "apart": terms, "counted": counted, **more},
    )


def _finite(state: State) -> Array:
    """(batch,) bool: a state has finite squares, certified or not."""
    xp, own = namespace(state.output), getattr(state, "finite", None)
    return xp.all(xp.isfinite(state.output), axis=1) if own is None else own
