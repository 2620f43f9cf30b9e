"""Agnostic equilibrium propagation (Scellier, Mishra, Bengio & Ollivier 2022): parameters that move by physics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from circuitsim.blocks.kinks import changed
from circuitsim.blocks.protocol import Arrays
from circuitsim.errors import ConvergenceError, RuleError, UsageError
from circuitsim.learning.estimate import Estimate, GradientProblem
from circuitsim.learning.nudges import RESISTOR, Nudging


@dataclass(frozen=True)
class AgnosticPropagation:
    """Parameters θ are springs at knobs u: E_tot = ‖u − θ‖²/(2ε) + E(θ, v) + β cost, minimal over v *and* θ.

    In the free phase the knobs are turned so that θ stays where it is; then they are held and the outputs nudged. θ
    moves to the minimum of the total energy:

        Δg = −(ε/2) [(Δv^β)² − (Δv⁰)²]        with Δv^β at the *new* g        = −ε β ∇loss + O(εβ (ε + β))

    so that physics itself takes the step. The estimate is −Δθ / (εβ); SGD with rate εβ makes exactly this move.

    Parameters
    ----------
    epsilon : float
        Compliance of the parameters; S/W for conductances.
    beta : float
        Strength of the nudge, positive.
    nudging : Nudging
    tolerance : float
        Largest error of the move, as a fraction of it.
    iterations : int
        Largest number of iterations for the move.
    """

    epsilon: float = 0.01
    beta: float = 0.01
    nudging: Nudging = RESISTOR
    tolerance: float = 1e-9
    iterations: int = 200

    def __post_init__(self) -> None:
        if not (0.0 < self.epsilon < np.inf and 0.0 < self.beta < np.inf):
            raise UsageError(f"epsilon and beta must be positive and finite, not {self.epsilon} and {self.beta}")

    def estimate(self, problem: GradientProblem) -> Estimate:
        """The move of the parameters as a gradient.

        Raises
        ------
        ConvergenceError
            No steady parameters were found: ε is too large for the energy to stay convex in θ and v together.
        RuleError
            A block without an energy, or one that cannot be relaxed at other parameters within bounds.
        """
        block: Any = problem.block
        if not getattr(block, "has_energy", True):
            raise RuleError(
                "agnostic propagation needs one energy of parameters and voltages, which a circuit "
                "with controlled sources has not: use equilibrium propagation or implicit differentiation"
            )
        if not hasattr(block, "bounds"):
            raise RuleError("agnostic propagation needs a block that relaxes at trial parameters: a circuit")
        here, state = dict(block.parameters), problem.free

        def distance(one: Arrays, other: Arrays) -> float:
            return max(float(np.abs(one[name] - other[name]).max()) for name in here)

        for _ in range(self.iterations):
            start = problem.free._replace(solution=state.solution)  # type: ignore[attr-defined]
            state = self.nudging.relax(problem._replace(block=block.at(here), free=start), self.beta)
            force = block.parameter_difference(state, problem.free, problem.x, problem.weight)
            # Where the knobs let the parameters go, within their bounds.
            there = {
                name: np.clip(theta - self.epsilon * force[name], *block.bounds[name])
                for name, theta in block.parameters.items()
            }
            change, here = distance(there, here), there
            if change <= self.tolerance * distance(here, block.parameters):
                break
        else:
            raise ConvergenceError(
                f"no convergence of the parameters in {self.iterations} iterations; use a smaller epsilon or beta"
            )
        scale = self.epsilon * self.beta
        gradient = {name: (theta - here[name]) / scale for name, theta in block.parameters.items()}
        residual = np.maximum(problem.free.residual, state.residual)
        certified = problem.free.certified & state.certified
        states = (problem.free, state)
        return Estimate(gradient, None, residual, certified, kinks=changed(states), states=states)
