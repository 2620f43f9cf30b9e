"""Equilibrium propagation on any block: its variants and the strengths of their nudges.

    centred  (∂E^β − ∂E^−β)/(2β)      positive  (∂E^β − ∂E⁰)/β      negative  (∂E⁰ − ∂E^−β)/β

`circuitsim.learning.estimate` makes the difference, `circuitsim.learning.nudges` says how outputs are nudged. The
compiled steps of deep resistive networks make the same difference in their own memory; tests hold them to it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from circuitsim.errors import UsageError

METHODS = ("ep", "bp", "implicit")
"""Equilibrium propagation, truncated backpropagation, implicit differentiation."""

VARIANTS = ("centred", "positive", "negative")


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
    return float(block.stiffness()) if hasattr(block, "stiffness") else 1.0
