"""Implicit differentiation: the exact gradient, by the adjoint on the set of conducting diodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from circuitsim.blocks.kinks import Kinks
from circuitsim.learning.estimate import Estimate, GradientProblem


@dataclass(frozen=True)
class ImplicitDifferentiation:
    """dℓ/dθ with H λ = −∂ℓ/∂v on the free coordinates, conducting diodes held merged: ∂ℓ/∂g = Δv Δλ.

    Exact wherever the loss is differentiable; what the other methods are compared with. At a kink (a diode without
    current and voltage, a unit at its bound without force) it is the derivative on one side: ``Estimate.kinks`` counts.
    """

    def estimate(self, problem: GradientProblem) -> Estimate:
        """The gradient, from one adjoint solve."""
        return differentiated(problem, problem.block.implicit)


def differentiated(problem: GradientProblem, differentiate: Callable[..., Any]) -> Estimate:
    """The estimate by a derivative of the free state (`EnergyBlock.implicit` or one with its arguments)."""
    block, x, target, loss, free, weight = problem
    parameters, inputs = differentiate(free, x, loss.gradient(free.output, target), weight)
    at_kink = getattr(block, "kinks", None)
    kinks = None if at_kink is None else Kinks(*at_kink(free))
    return Estimate(dict(parameters), inputs, free.residual, free.certified, kinks=kinks)
