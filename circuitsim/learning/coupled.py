"""Coupled learning (Stern, Hexner, Rocks & Liu 2021): free state against a state whose outputs are held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from circuitsim.errors import RuleError, UsageError
from circuitsim.learning.estimate import Estimate, GradientProblem, contrasted


@dataclass(frozen=True)
class CoupledLearning:
    """Outputs are clamped a step η from where they are to where they should be: o^C = o^F + η (y − o^F).

        Δg = (α / 2η) [(Δv^F)² − (Δv^C)²]            the estimate is −Δg/α

    As η → 0 this is equilibrium propagation driven by S e instead of e, with e = o − y and S the conductance matrix of
    the outputs: the gradient of ½ eᵀ S e at fixed S. For one output it is parallel to the gradient of the squared
    error; for several it is not, though both vanish together.

    Parameters
    ----------
    eta : float
        Size of the step, in (0, 1].
    """

    eta: float = 0.01

    def __post_init__(self) -> None:
        if not 0.0 < self.eta <= 1.0:
            raise UsageError(f"the step of coupled learning must lie in (0, 1], not {self.eta}")

    def estimate(self, problem: GradientProblem) -> Estimate:
        """The estimate, from one clamped state.

        Raises
        ------
        RuleError
            A loss that is not the squared error, or a block whose outputs cannot be held.
        """
        block: Any = problem.block
        loss = problem.loss
        if not (loss.quadratic and loss.gradient_lipschitz) or not hasattr(block, "clamp"):
            raise RuleError("coupled learning holds the outputs of a circuit near target voltages: squared error only")
        free = problem.free
        output = free.output - self.eta * loss.gradient(free.output, problem.target)
        clamped = block.clamp(problem.x, output, free)
        return contrasted(problem, (free, clamped), clamped, free, self.eta)
