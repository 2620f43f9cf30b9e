"""Implicit differentiation: the exact gradient, by the adjoint on the set of conducting diodes."""

from __future__ import annotations

from dataclasses import dataclass

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
        block, x, target, loss, free, weight = problem
        parameters, inputs = block.implicit(free, x, loss.gradient(free.output, target), weight)
        at_kink = getattr(block, "kinks", None)
        kinks = None if at_kink is None else Kinks(*at_kink(free))
        return Estimate(parameters, inputs, free.residual, free.certified, kinks=kinks)
