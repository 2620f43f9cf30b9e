"""Equilibrium propagation (Scellier & Bengio 2017; for resistive networks Scellier 2024, App. B and F)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from circuitsim.blocks.propagation import VARIANTS, check_named, check_strength, contrast
from circuitsim.blocks.protocol import State
from circuitsim.errors import UsageError
from circuitsim.learning.estimate import Estimate, GradientProblem, estimate_of
from circuitsim.learning.nudges import CONSTANT, Nudging

REDUCTION, REDUCTIONS = 0.25, 12
"""Factor on an automatic β for each attempt, and the most attempts: down to 2e-7 of the first."""


@dataclass(frozen=True)
class EquilibriumPropagation:
    """The gradient from the difference of two states: how ∂E/∂θ changes when the outputs are nudged.

        positive  (∂E^β − ∂E⁰)/β      negative  (∂E⁰ − ∂E^−β)/β      centred  (∂E^β − ∂E^−β)/(2β)

    With F(β) = E + β · cost and G(β) = min F, each is exactly the gradient of L_β = (G(β) − G(0))/β, of L_−β, or of
    their mean; G is concave, so L_β ≤ loss ≤ L_−β, and both are reported.

    Parameters
    ----------
    beta : float or "auto"
        Strength of the nudge, positive; S for circuits with the squared error. ``"auto"``: at each estimate a tenth of
        the strength that leaves a circuit's energy convex (of other blocks 0.1), and a quarter of it as long as more
        diodes and clamped units change between the phases than ``kink_share`` allows.
    variant : {"centred", "positive", "negative"}
    nudging : Nudging
        How the outputs are pulled.
    kink_share : float
        With ``beta="auto"``: largest share of diodes and clamped units, over the batch, that may change.

    Notes
    -----
    Where a diode or a clamp changes between the phases the energy has another curvature in each, and the estimate at a
    finite β is off by what lies between; ``Estimate.kinks`` counts them.
    """

    beta: float | Literal["auto"] = 0.01
    variant: str = "centred"
    nudging: Nudging = CONSTANT
    kink_share: float = 0.001

    def __post_init__(self) -> None:
        if self.beta != "auto":
            check_strength(self.beta)
        if not 0.0 <= self.kink_share <= 1.0:
            raise UsageError(f"a share of diodes lies in [0, 1], not {self.kink_share}")
        check_named(variant=(self.variant, VARIANTS))

    def estimate(self, problem: GradientProblem) -> Estimate:
        """The estimate, from one nudged phase or two; with ``beta="auto"`` at most `REDUCTIONS` more.

        Raises
        ------
        UsageError
            ``beta="auto"`` for a block that does not tell which of its diodes conduct.
        """
        if self.beta != "auto":
            return self._at(problem, float(self.beta))
        beta = _first_beta(problem)
        for _ in range(REDUCTIONS):
            found = self._at(problem, beta)
            if found.kinks is None:
                raise UsageError("the block's states do not tell which units are at bounds ('active'): give a beta")
            if found.kinks.share <= self.kink_share:
                break
            beta *= REDUCTION
        return found._replace(beta=beta)

    def _at(self, problem: GradientProblem, beta: float) -> Estimate:
        """The estimate at a strength."""
        block, x, target, loss, free, _ = problem

        def relax(betas: tuple[float, ...]) -> list[State]:
            return [self.nudging.relax(block, x, free, loss, target, each) for each in betas]

        found = contrast(block, x, free, self.variant, beta, relax)
        lower = None if self.variant == "negative" else self._bound(problem, found.plus, beta)
        upper = None if self.variant == "positive" else self._bound(problem, found.minus, -beta)
        return estimate_of(found, problem.weight)._replace(lower=lower, upper=upper)

    def _bound(self, problem: GradientProblem, state: State, beta: float) -> np.ndarray | None:
        """(batch,) L_β = (G(β) − G(0))/β; None for a block whose sections have energies, but not the whole."""
        block, x, target, loss, free, _ = problem
        if not getattr(block, "has_energy", True):
            return None
        raised = block.energy(state, x) - block.energy(free, x)
        return raised / beta + self.nudging.cost(free, loss, target, state.output)


def _first_beta(problem: GradientProblem) -> float:
    """The strength at which the search for an automatic β begins."""
    limit = float(getattr(problem.block, "stiffness_limit", lambda: 1.0)())
    return 0.1 * (limit if 0.0 < limit < np.inf else 1.0) / problem.loss.gradient_lipschitz
