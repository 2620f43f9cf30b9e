"""Deep Hopfield networks (Scellier 2024, App. E) as chains: pixels to [0, 1], a block, the squared error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from circuitsim.blocks.hopfield import DeepHopfieldBlock
from circuitsim.blocks.layered import Sweeps
from circuitsim.blocks.protocol import METHODS, VARIANTS, check_named
from circuitsim.errors import UsageError
from circuitsim.learning.chain import Chain
from circuitsim.learning.estimate import Rule
from circuitsim.learning.rules import rule_named
from circuitsim.learning.stages import Normalise


def HopfieldLearning(
    beta: float = 0.2, method: str | Rule = "ep", variant: str = "centred", allow_nonconvex: bool = False
) -> Rule:
    """The rule of the published networks: outputs are pulled elastically, by E + β · ½ Σ (o − y)².

    Parameters
    ----------
    beta : float
        Strength of the nudge.
    method : {"ep", "bp", "implicit"} or Rule
        Equilibrium propagation; backpropagation through the last K sweeps; the adjoint of the free state.
    variant : {"centred", "positive", "negative"}
        Which states EP contrasts.
    allow_nonconvex : bool
        Whether samples count whose energy is not convex at −β; otherwise they are left out. Both are not certified.

    Raises
    ------
    UsageError
        A nudge that leaves the outputs without a minimum.
    """
    check_named(variant=(variant, VARIANTS))
    rule = rule_named(
        method,
        METHODS,
        beta=beta,
        variant=variant,
        nudging="resistor",
        allow_nonconvex=allow_nonconvex,
        bracket=False,
    )
    if beta >= 1 and method == "ep" and variant != "positive":
        raise UsageError(f"a nudge of −{beta} leaves the linear output without a minimum; β must be below 1")
    return rule


def network(
    units: Sequence[int],
    sweeps: Sweeps,
    learning: Rule | None = None,
    batch: int = 16,
    rng: Any = 0,
    dtype: Any = np.float32,
    spread: float = 0.7,
    warm: bool = True,
) -> Chain:
    """A network with hidden units in [0, 1] and linear outputs.

    Parameters
    ----------
    units : sequence of int
        Inputs, hidden layers (at least one), outputs.
    sweeps : Sweeps
        Of the free and the nudged phase.
    learning, batch
        As for `DeepHopfieldNetwork`.
    rng : numpy.random.Generator or int
        Source of the weights, or its seed.
    dtype : dtype
        float32 or float64.
    spread : float
        Factor on the range of the initial weights.
    warm
        As for `DeepHopfieldNetwork`.

    Raises
    ------
    UsageError
        Fewer than three layers.
    """
    if len(units) < 3:
        raise UsageError(f"a network has inputs, at least one hidden layer and outputs, not layers {list(units)}")
    block = DeepHopfieldBlock(
        list(units[1:]), clamped=False, inputs=units[0], sweeps=sweeps, spread=spread, rng=rng, dtype=dtype
    )
    return DeepHopfieldNetwork(block, learning, batch, warm)


def DeepHopfieldNetwork(
    block: DeepHopfieldBlock, learning: Rule | None = None, batch: int = 16, warm: bool = True
) -> Chain:
    """The chain of a deep Hopfield network that learns classes from rows of bytes.

    A step, as in the authors' code: T free sweeps; K sweeps nudged by −β and K by +β, both from the free state; the
    difference is the gradient. The +β state is where the next batch starts.

    Parameters
    ----------
    block : DeepHopfieldBlock
        With input weights and a linear last layer.
    learning : Rule, optional
        `HopfieldLearning` with its defaults if not given.
    batch : int
        Samples in a step.
    warm : bool
        Whether a batch starts at the nudged states of the batch before it, slot by slot; otherwise at zero.

    Notes
    -----
    The energy may have several minima, so states are certified as stationary points, not as global minima. Residuals
    are the largest |s − argmin over that unit alone| / max(1, |s|).
    """
    entry, dtype = Normalise(), block.parameters["bias1"].dtype
    entry.initialise(None, dtype)
    rule = learning or HopfieldLearning()
    return Chain([entry, block], "mse", rule, None, dtype, warm=batch if warm else 0)
