"""Truncated backpropagation: through the last sweeps of a free phase (Nest & Ernoult 2024, Algorithm 12)."""

from __future__ import annotations

from dataclasses import dataclass

from circuitsim.learning.estimate import Estimate, GradientProblem
from circuitsim.learning.implicit import differentiated


@dataclass(frozen=True)
class TruncatedBackpropagation:
    """Σ_k (1 − A)^k of the adjoint's Neumann series, as many terms as a nudged phase makes sweeps.

    A sweep of `EquilibriumPropagation` with β → 0 is a term of this series (Nest & Ernoult 2024, App. A.5). A block
    without sweeps gives its exact limit, that of `ImplicitDifferentiation`.
    """

    def estimate(self, problem: GradientProblem) -> Estimate:
        """The gradient, from as many sweeps as a nudged phase makes."""
        return differentiated(problem, getattr(problem.block, "truncated", problem.block.implicit))
