"""Equilibrium propagation (Scellier & Bengio 2017; for resistive networks Scellier 2024, App. B and F)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from circuitsim.blocks.protocol import State
from circuitsim.errors import UsageError
from circuitsim.learning.estimate import Estimate, GradientProblem, difference
from circuitsim.learning.nudges import CONSTANT, Nudging

SCHEMES = ("centred", "positive", "negative")


@dataclass(frozen=True)
class EquilibriumPropagation:
    """The gradient from the difference of two states: how ∂E/∂θ changes when the outputs are nudged.

        positive  (∂E^β − ∂E⁰)/β      negative  (∂E⁰ − ∂E^−β)/β      centred  (∂E^β − ∂E^−β)/(2β)

    With F(β) = E + β · cost and G(β) = min F, each is exactly the gradient of L_β = (G(β) − G(0))/β, of L_−β, or of
    their mean; G is concave, so L_β ≤ loss ≤ L_−β, and both are reported.

    Parameters
    ----------
    beta : float
        Strength of the nudge, positive; S for circuits with the squared error.
    scheme : {"centred", "positive", "negative"}
    nudging : Nudging
        How the outputs are pulled.
    """

    beta: float = 0.01
    scheme: str = "centred"
    nudging: Nudging = CONSTANT

    def __post_init__(self) -> None:
        if not 0.0 < self.beta < np.inf:
            raise UsageError(f"beta must be positive and finite, not {self.beta}")
        if self.scheme not in SCHEMES:
            raise UsageError(f"there is no estimator {self.scheme!r}; there are {', '.join(SCHEMES)}")

    def estimate(self, problem: GradientProblem) -> Estimate:
        """The estimate, from one nudged phase or two."""
        plus = minus = problem.free
        lower = upper = None
        if self.scheme != "negative":
            plus = self._nudged(problem, self.beta)
            lower = self._contrast(problem, plus, self.beta)
        if self.scheme != "positive":
            minus = self._nudged(problem, -self.beta)
            upper = self._contrast(problem, minus, -self.beta)
        scale = 2.0 * self.beta if self.scheme == "centred" else self.beta
        found = difference(problem, plus, minus, scale, (problem.free, plus, minus))
        return found._replace(lower=lower, upper=upper)

    def _nudged(self, problem: GradientProblem, beta: float) -> State:
        block, x, target, loss, free, _ = problem
        return self.nudging.relax(block, x, free, loss, target, beta)

    def _contrast(self, problem: GradientProblem, state: State, beta: float) -> np.ndarray:
        """(batch,) L_β = (G(β) − G(0))/β."""
        block, x, target, loss, free, _ = problem
        raised = block.energy(state, x) - block.energy(free, x)
        return raised / beta + self.nudging.cost(free, loss, target, state.output)
