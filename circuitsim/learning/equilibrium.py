"""Equilibrium propagation (Scellier & Bengio 2017; for resistive networks Scellier 2024, App. B and F)."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Literal

import numpy as np

from circuitsim.blocks.propagation import VARIANTS, check_named, strengths, unit
from circuitsim.blocks.protocol import State
from circuitsim.errors import RuleError, UsageError
from circuitsim.learning.estimate import Estimate, GradientProblem, contrasted
from circuitsim.learning.nudges import CONSTANT, Nudging

REDUCTION, REDUCTIONS = 0.25, 12
"""Factor on an automatic β per attempt, and the maximum number of attempts: down to 2e-7 of the first."""


@dataclass(frozen=True)
class EquilibriumPropagation:
    """The gradient from the difference of two states: how ∂E/∂θ changes when the outputs are nudged.

        positive  (∂E^β − ∂E⁰)/β      negative  (∂E⁰ − ∂E^−β)/β      centred  (∂E^β − ∂E^−β)/(2β)

    With F(β) = E + β · cost and G(β) = min F, each is exactly the gradient of L_β = (G(β) − G(0))/β, of L_−β, or of
    their mean; G is concave, so L_β ≤ loss ≤ L_−β, and both are reported (Scellier 2024, Theorem 3).

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
        With ``beta="auto"``: largest fraction of diodes and clamped units, over the batch, that may change.
    form : {"explicit", "implicit"}
        What is passed to the stages before a block of a chain: the difference of its two states (Nest & Ernoult 2024,
        Algorithm 4), or each state in turn (Algorithm 2).
    relative : bool
        β counts in units of the block's own stiffness (`circuitsim.blocks.propagation.unit`), and may be negative.
    scale_errors : bool
        See `circuitsim.learning.estimate.Rule`.
    allow_nonconvex : bool
        Samples count too whose states are finite, but not certified.
    bracket : bool
        Whether L_β and L_−β are measured.

    Notes
    -----
    Where a diode or a clamp changes between the phases the energy has another curvature in each, and the estimate at a
    finite β is off by what lies between; ``Estimate.kinks`` counts them.
    """

    beta: float | Literal["auto"] = 0.01
    variant: str = "centred"
    nudging: Nudging = CONSTANT
    kink_share: float = 0.001
    form: str = "explicit"
    relative: bool = False
    scale_errors: bool = False
    allow_nonconvex: bool = False
    bracket: bool = True

    def __post_init__(self) -> None:
        if self.relative and not (isinstance(self.beta, Real) and 0.0 < abs(self.beta) < np.inf):
            raise UsageError(
                f"beta must be a finite number other than zero, not {self.beta!r}: chains have no automatic strength; "
                "lower it where kink_share in the history is large"
            )
        positive = isinstance(self.beta, Real) and 0.0 < self.beta < np.inf
        if not (self.relative or self.beta == "auto" or positive):
            raise UsageError(f"beta must be positive and finite, not {self.beta}")
        if not 0.0 <= self.kink_share <= 1.0:
            raise UsageError(f"the fraction of diodes must lie in [0, 1], not {self.kink_share}")
        check_named(variant=(self.variant, VARIANTS), form=(self.form, ("explicit", "implicit")))

    @property
    def sides(self) -> tuple[str, ...]:
        """Sides of the bracket that are measured: fields of `Estimate`."""
        upper, lower = strengths(self.variant, float(self.bracket))
        return tuple(side for side, strength in (("lower", lower), ("upper", upper)) if strength)

    def estimate(self, problem: GradientProblem) -> Estimate:
        """The estimate, from one nudged phase or two; with ``beta="auto"`` at most `REDUCTIONS` more.

        Raises
        ------
        RuleError
            ``beta="auto"`` for a block that does not tell which of its diodes conduct.
        """
        if self.beta != "auto":
            return self._at(problem, float(self.beta) * (unit(problem.block) if self.relative else 1.0))
        limit = float(getattr(problem.block, "stiffness_limit", lambda: 1.0)())
        beta = 0.1 * (limit if 0.0 < limit < np.inf else 1.0) / (problem.loss.gradient_lipschitz or 1.0)
        for _ in range(REDUCTIONS):
            found = self._at(problem, beta)
            if found.kinks is None:
                raise RuleError("the block's states do not tell which units are at bounds ('active'): give a beta")
            if found.kinks.share <= self.kink_share:
                break
            beta *= REDUCTION
        return found._replace(beta=beta)

    def _at(self, problem: GradientProblem, beta: float) -> Estimate:
        """The estimate at a strength."""
        free, (low, high) = problem.free, strengths(self.variant, beta)
        minus, plus = (self.nudging.relax(problem, each) if each else free for each in (low, high))
        bounds = {}
        if getattr(problem.block, "has_energy", True):
            ends = {"lower": (plus, beta), "upper": (minus, -beta)}
            bounds = {side: self._bound(problem, *ends[side]) for side in self.sides}
        apart, states = self.form == "implicit", (free, plus, minus)
        return contrasted(problem, states, plus, minus, high - low, self.allow_nonconvex, apart, **bounds)

    def _bound(self, problem: GradientProblem, state: State, beta: float) -> np.ndarray:
        """(batch,) L_β = (G(β) − G(0))/β."""
        block, x, _, _, free, _ = problem
        raised = block.energy(state, x) - block.energy(free, x)
        return raised / beta + self.nudging.cost(problem, state.output)
