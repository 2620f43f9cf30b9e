"""Implicit differentiation: the exact gradient, by the adjoint on the set of conducting diodes."""

from __future__ import annotations

from dataclasses import dataclass

from circuitsim.learning.estimate import Estimate, GradientProblem


@dataclass(frozen=True)
class ImplicitDifferentiation:
    """dℓ/dθ with H λ = −∂ℓ/∂v on the free coordinates, conducting diodes held merged: ∂ℓ/∂g = Δv Δλ.

    Exact wherever the loss is differentiable; what the other methods are compared with.
    """

    def estimate(self, problem: GradientProblem) -> Estimate:
        """The gradient, from one adjoint solve."""
        block, x, target, loss, free, weight = problem
        parameters, inputs = block.implicit(free, x, loss.gradient(free.output, target), weight)
        return Estimate(parameters, inputs, free.residual, free.certified)
