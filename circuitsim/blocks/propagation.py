"""Equilibrium propagation on any block: its variants, the samples that count, the difference of ∂E between two states.

    centred  (∂E^β − ∂E^−β)/(2β)      positive  (∂E^β − ∂E⁰)/β      negative  (∂E⁰ − ∂E^−β)/β

The only place of this rule; `circuitsim.learning.nudges` says how outputs are nudged. The compiled steps of deep
resistive networks make the same difference in their own memory; tests hold them to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from functools import reduce
from operator import and_
from typing import Any, NamedTuple

from circuitsim._arrays import Array, device, namespace
from circuitsim.blocks.kinks import Kinks, changed
from circuitsim.blocks.protocol import Arrays, State
from circuitsim.errors import ConvergenceError, UsageError

METHODS = ("ep", "bp", "implicit")
"""Equilibrium propagation, truncated backpropagation, implicit differentiation."""

VARIANTS = ("centred", "positive", "negative")

Relax = Callable[[float], State]
"""From the strength of the nudge to the nudged state."""


def check_named(**choices: tuple[str, Collection[str]]) -> None:
    """Refuse a choice that is not among the known ones.

    Parameters
    ----------
    **choices : (str, collection of str)
        By name: what was given, and what there is.

    Raises
    ------
    UsageError
    """
    for name, (given, known) in choices.items():
        if given not in known:
            raise UsageError(f"there is no {name} '{given}'; there are {', '.join(known)}")


def strengths(variant: str, beta: float) -> tuple[float, float]:
    """Strengths of the two phases of a variant, the smaller first; zero is the free phase."""
    return {"centred": (-beta, beta), "positive": (0.0, beta), "negative": (-beta, 0.0)}[variant]


def unit(block: Any) -> float:
    """What a nudge of strength 1 is for a block: the conductance, S, that holds an output, so that β is in volts.

    1 for Hopfield networks, whose units have no unit.
    """
    if hasattr(block, "stiffness"):
        return float(block.stiffness())
    limit = float(block.stiffness_limit()) if hasattr(block, "stiffness_limit") else 1.0
    if 0 < limit < math.inf:
        return limit
    # Outputs that float while all diodes block: the scale of what is there.
    conductance = block.parameters.get("conductance")
    return 1.0 if conductance is None else float(conductance.mean())


class DivergedError(ConvergenceError):
    """No sample of a batch has finite nudged states, although unproven states are allowed."""


class Contrast(NamedTuple):
    """Two states of a block whose ∂E are compared.

    Attributes
    ----------
    block : EnergyBlock
    x : (batch, inputs) array
        Inputs of all states.
    states : tuple of State
        All that were relaxed: the free state first.
    plus, minus : State
        The two that are compared.
    width : float
        Distance of their strengths: 2β, β, or that of another rule.
    """

    block: Any
    x: Array
    states: tuple[State, ...]
    plus: Any
    minus: Any
    width: float

    @property
    def certified(self) -> Array:
        """(batch,) bool: all states are certified."""
        return reduce(and_, [state.certified for state in self.states])

    @property
    def residual(self) -> Array:
        """(batch,) worst residual of the states."""
        residuals = [state.residual for state in self.states]
        return reduce(namespace(residuals[0]).maximum, residuals)

    def counted(self, allow_nonconvex: bool) -> Array:
        """Samples that enter gradients: certified ones; where states without proof are allowed, all finite ones.

        Parameters
        ----------
        allow_nonconvex : bool

        Returns
        -------
        (batch,) bool array

        Raises
        ------
        DivergedError
            Such states are allowed, and none is finite.
        """
        if not allow_nonconvex:
            return self.certified
        found = _finite(self.plus) & _finite(self.minus)
        if not bool(found.any()):
            raise DivergedError(
                f"no sample of the batch has finite states under its nudges (their strengths are {self.width:g} "
                "apart): the nudged energy has no minimum; choose a smaller beta, a nudge that does not follow the "
                "outputs, or, for chains, scaled errors"
            )
        return found

    @property
    def kinks(self) -> Kinks | None:
        """Diodes and clamped units that change between the states; None where the block does not show them."""
        return changed(self.states)

    def parameters(self, weight: Array, counted: Array) -> Arrays:
        """Σ_b weight_b (∂E/∂θ at plus − ∂E/∂θ at minus) / width over the samples that count.

        Parameters
        ----------
        weight : (batch,) float array
        counted : (batch,) bool array

        Returns
        -------
        dict of array
            By parameter.
        """
        xp = namespace(weight)
        held = xp.astype(xp.asarray(counted, device=device(weight)), weight.dtype)
        share = weight * held / self.width
        return dict(self.block.parameter_difference(self.plus, self.minus, self.x, share))

    def inputs(self) -> Array:
        """(batch, inputs) (∂E/∂x at plus − ∂E/∂x at minus) / width."""
        return self.block.input_difference(self.plus, self.minus, self.x) / self.width

    def inputs_apart(self) -> list[tuple[float, Array]]:
        """`inputs` as a sum of terms, sign and array: each state against the free one, whose share cancels."""
        free = self.states[0]
        ends = ((1.0, self.plus), (-1.0, self.minus))
        return [(sign, self.block.input_difference(end, free, self.x) / self.width) for sign, end in ends]


def contrast(block: Any, x: Array, free: State, variant: str, beta: float, relax: Relax) -> Contrast:
    """The nudged phases of a variant.

    Parameters
    ----------
    block : EnergyBlock
    x : (batch, inputs) array
    free : State
        Without nudge; compared in the one-sided variants.
    variant : {"centred", "positive", "negative"}
    beta : float
        Strength of the nudge.
    relax : callable
        Relaxes the phase of a given strength.

    Returns
    -------
    Contrast
    """
    low, high = strengths(variant, beta)
    minus, plus = (relax(each) if each else free for each in (low, high))
    return Contrast(block, x, (free, plus, minus), plus, minus, high - low)


def _finite(state: State) -> Array:
    """(batch,) bool: a state has finite squares, certified or not."""
    xp, own = namespace(state.output), getattr(state, "finite", None)
    return xp.all(xp.isfinite(state.output), axis=1) if own is None else own
