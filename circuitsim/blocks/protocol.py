"""The interface of a block for learning rules and chains: energy minima, nudges, derivatives of the energy.

A block holds parameters θ and an energy E(s; θ, x). `relax` finds the state of least energy for every row of a batch of
inputs. A `Nudge` tilts that energy at the outputs. Every contrastive learning rule is
built on the difference of ∂E/∂θ between two relaxed states.

Kinks: diodes and clamped units whose state changes between the states that an estimate compares.

Equilibrium propagation on any block: its variants and the strengths of their nudges.

    centred  (∂E^β − ∂E^−β)/(2β)      positive  (∂E^β − ∂E⁰)/β      negative  (∂E⁰ − ∂E^−β)/β

`circuitsim.learning.estimate` makes the difference and says how outputs are nudged. The compiled steps of deep
resistive networks make the same difference in their own memory; tests hold them to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from circuitsim.errors import UsageError

Arrays = dict[str, np.ndarray]


class Nudge(NamedTuple):
    """A tilt of the energy at the outputs o: adds linear · o + ½ stiffness ‖o‖² for each sample.

    The elastic nudge β ½‖o − y‖² is ``Nudge(-beta * y, beta)`` up to a constant; the constant-current nudge
    β (o⁰ − y) · o is ``Nudge(beta * (free.output - y))``.

    Attributes
    ----------
    linear : ndarray (batch, outputs)
        Current drawn from each output, A, for circuits.
    stiffness : float
        Conductance to add at each output, S for circuits; may be negative while the energy stays convex.
    follow : callable or None
        ``follow(output) -> linear``, evaluated again at every sweep instead of `linear` by blocks that sweep (P2's
        elastic last block with a general loss).
    """

    linear: np.ndarray
    stiffness: float = 0.0
    follow: Callable[[np.ndarray], np.ndarray] | None = None


class State(Protocol):
    """A relaxed batch. Blocks return immutable types of their own with these attributes."""

    @property
    def output(self) -> np.ndarray:
        """(batch, outputs)."""
        ...

    @property
    def residual(self) -> np.ndarray:
        """(batch,) worst violation of the equilibrium equations, relative to local scales: 0 is exact."""
        ...

    @property
    def certified(self) -> np.ndarray:
        """(batch,) bool: the state is certified to the block's tolerance (always true for a fixed number of sweeps)."""
        ...


@runtime_checkable
class EnergyBlock(Protocol):
    """An energy E(s; θ, x) that can be relaxed in batches."""

    @property
    def n_inputs(self) -> int:
        """Length of one row of x (the product of its shape for images)."""
        ...

    @property
    def n_outputs(self) -> int:
        """Length of one row of the output."""
        ...

    @property
    def parameters(self) -> Mapping[str, np.ndarray]:
        """θ by name: the block's own arrays; optimisers change them in place."""
        ...

    def relax(self, x: np.ndarray, nudge: Nudge | None = None, start: State | None = None) -> State:
        """The minimum of the (tilted) energy for every row of x.

        Parameters
        ----------
        x : (batch, inputs) ndarray
            For circuits in V or A.
        nudge : Nudge, optional
            The tilt; none for a free phase.
        start : State, optional
            Where the search starts; of a nudged phase the free state.

        Returns
        -------
        State
            One row per sample; those without a certificate are marked.
        """
        ...

    def energy(self, state: State, x: np.ndarray) -> np.ndarray:
        """The untilted energy E at a state.

        Parameters
        ----------
        state : State
            Of this block.
        x : (batch, inputs) ndarray
            The inputs it was relaxed with.

        Returns
        -------
        (batch,) ndarray
            For circuits in W.
        """
        ...

    def parameter_difference(self, plus: State, minus: State, x: np.ndarray, weight: np.ndarray) -> Arrays:
        """Σ_b weight_b (∂E/∂θ at plus − ∂E/∂θ at minus), for each parameter, computed without cancellation.

        Parameters
        ----------
        plus, minus : State
            Two states of this block.
        x : (batch, inputs) ndarray
            The inputs of both.
        weight : (batch,) ndarray
            Zeros leave a sample out.

        Returns
        -------
        dict of ndarray
            By parameter, energy per unit of the parameter.
        """
        ...

    def input_difference(self, plus: State, minus: State, x: np.ndarray) -> np.ndarray:
        """∂E/∂x at plus − ∂E/∂x at minus, for each sample.

        Parameters
        ----------
        plus, minus : State
            Two states of this block.
        x : (batch, inputs) ndarray
            The inputs of both.

        Returns
        -------
        (batch, inputs) ndarray
            Energy per unit of the input; of a voltage source in A.
        """
        ...

    def implicit(
        self, state: State, x: np.ndarray, cotangent: np.ndarray, weight: np.ndarray
    ) -> tuple[Arrays, np.ndarray]:
        """Exact derivatives of cotangent · output at a free state, by the adjoint (implicit differentiation).

        Parameters
        ----------
        state : State
            Of this block, without nudge.
        x : (batch, inputs) ndarray
            The inputs it was relaxed with.
        cotangent : ndarray (batch, outputs)
            ∂ℓ/∂output of each sample.
        weight : ndarray (batch,)
            Each sample's share in the sum over the batch.

        Returns
        -------
        parameters : dict of ndarray
            Σ_b weight_b ∂ℓ_b/∂θ.
        inputs : ndarray (batch, inputs)
            ∂ℓ_b/∂x_b, not weighted.
        """
        ...

    def project(self) -> None:
        """Project the parameters onto their admissible set."""
        ...


class Kinks(NamedTuple):
    """Kinks of an estimate.

    Attributes
    ----------
    changes : (batch,) int array
        Diodes and clamped units that change between the states used; of one free state (implicit differentiation) those
        at a kink, where either state is correct.
    switches : int
        Diodes and units with bounds of the block.
    """

    changes: np.ndarray
    switches: int

    @property
    def share(self) -> float:
        """Fraction of all diodes and units with bounds, over the batch."""
        return float(self.changes.sum()) / max(1, self.changes.size * self.switches)


def changed(states: Sequence[State]) -> Kinks | None:
    """Kinks between states; None where a block does not tell which of its diodes conduct (``active``)."""
    first, *others = (getattr(state, "active", None) for state in states)
    if first is None or any(other is None for other in others):
        return None
    differs = np.any([other != first for other in others], axis=0)
    return Kinks(differs.sum(axis=1), first.shape[1])


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
