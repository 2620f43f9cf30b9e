"""A block as a differentiable function of its inputs and parameters: what layers of other frameworks call.

Forward: the steady states of a batch, certified. Backward: one adjoint solve a sample (`EnergyBlock.implicit`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from circuitsim.arguments import NAMES, QUANTITIES, checked
from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.blocks.protocol import Arrays, EnergyBlock, State
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.source import CIRCUIT
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.netlist import load
from circuitsim.netlist.deck import Deck
from circuitsim.netlist.roles import Roles, make_roles, read_roles

LISTED = 5
"""Maximum number of samples that an error names."""


class DifferentiableBlock(EnergyBlock, Protocol):
    """A block that can be had at other parameters."""

    def at(self, parameters: Mapping[str, np.ndarray]) -> DifferentiableBlock:
        """The same block with parameters of its own, copies of those given."""
        ...


class Evaluation(NamedTuple):
    """Steady states of a batch, and what their derivatives need.

    Attributes
    ----------
    block : DifferentiableBlock
        At the projected parameters.
    given : dict of str to ndarray
        The parameters before projection.
    x : (batch, inputs) float array
    state : State
    """

    block: DifferentiableBlock
    given: Mapping[str, np.ndarray]
    x: np.ndarray
    state: State

    @property
    def output(self) -> np.ndarray:
        """(batch, outputs)."""
        return self.state.output

    def pullback(self, cotangent: np.ndarray) -> tuple[Arrays, np.ndarray]:
        """Derivatives of Σ_b cotangent_b · output_b.

        Parameters
        ----------
        cotangent : (batch, outputs) float array

        Returns
        -------
        parameters : dict of str to ndarray
            With respect to the parameters as given. Beyond a bound the derivative is that at the bound where a
            descent step leads back, and zero where it leads further away.
        inputs : (batch, inputs) float array
        """
        weight = np.ones(len(self.x))
        found, inputs = self.block.implicit(self.state, self.x, cotangent, weight)
        parameters = {}
        for name, gradient in found.items():
            beyond = self.given[name] - self.block.parameters[name]
            parameters[name] = np.where((beyond == 0.0) | (beyond * gradient > 0.0), gradient, 0.0)
        return parameters, inputs


def evaluate(block: DifferentiableBlock, x: np.ndarray, parameters: Mapping[str, np.ndarray]) -> Evaluation:
    """Certified steady states.

    Parameters
    ----------
    block : DifferentiableBlock
        It is not changed.
    x : (batch, inputs) float array
        V or A, for circuits.
    parameters : dict of str to ndarray
        Of the shapes of the block's own; values beyond bounds count as the bound.

    Raises
    ------
    UsageError
        An array of another shape, a value that is not finite, a block without a method ``at``.
    ConvergenceError
        Samples without a certified steady state; the error names them.
    """
    if x.ndim != 2 or x.shape[1] != block.n_inputs:
        raise UsageError(f"rows of {block.n_inputs} inputs are needed, not an array of shape {x.shape}")
    if not np.isfinite(x).all():
        raise UsageError("an input is not finite")
    for name, own in block.parameters.items():
        values = parameters[name]
        if values.shape != own.shape or not np.isfinite(values).all():
            raise UsageError(f"{name} must be finite values of shape {own.shape}, not {values}")
    if not hasattr(block, "at"):
        raise UsageError(
            f"{type(block).__name__} has no method at(parameters), which returns the block at other parameters: a "
            "layer needs it (docs/frameworks.md)"
        )
    here = block.at(parameters)
    here.project()
    state = here.relax(x)
    wrong = np.flatnonzero(~np.asarray(state.certified))
    if wrong.size:
        listed = np.array2string(wrong, threshold=LISTED, edgeitems=LISTED // 2, separator=", ")[1:-1]
        raise ConvergenceError(
            f"{wrong.size} of {len(x)} samples have no certified steady state (rows {listed}); their largest relative "
            f"violation is {np.asarray(state.residual)[wrong].max():.1e}"
        )
    given = {name: np.array(parameters[name]) for name in block.parameters}  # the caller's arrays may change
    return Evaluation(here, given, np.array(x), state)


@checked(inputs=QUANTITIES, outputs=QUANTITIES, trainable=NAMES)
def circuit_block(
    deck: str | os.PathLike[str] | Deck | Circuit,
    inputs: str | Sequence[str] | None = None,
    outputs: str | Sequence[str] | None = None,
    trainable: str | Sequence[str] | None = None,
    tolerance: float = TOLERANCE,
) -> CircuitBlock:
    """A circuit with roles as a block.

    Parameters
    ----------
    deck : path, Deck or Circuit
        A file of a netlist, a deck that was read, or a circuit.
    inputs, outputs, trainable : str or sequence of str, optional
        In the syntax of `circuitsim.netlist.roles.make_roles`; roles that are left out are the deck's own.
    tolerance : float
        Of certificates, relative to local scales.

    Raises
    ------
    NetlistError, UsageError
        A deck that cannot be read; roles that are missing or wrong.
    """
    read = load(deck) if isinstance(deck, str | os.PathLike) else CIRCUIT("deck", deck)
    circuit, own = read, Roles()
    if isinstance(read, Deck):
        circuit, own = read.where_change(None)[0], read_roles(read)[0]
    return CircuitBlock(circuit, make_roles(circuit, inputs, outputs, trainable, own), tolerance)
