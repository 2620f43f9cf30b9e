"""The interface of a block for learning rules and chains: energy minima, nudges, derivatives of the energy.

A block holds parameters θ and an energy E(s; θ, x). `relax` finds the state of least energy for every row of a batch of
inputs. A `Nudge` tilts that energy at the outputs. Every contrastive learning rule is
built on the difference of ∂E/∂θ between two relaxed states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

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
