"""Default strengths of learning rules in the scale of a circuit; scattered initial values."""

from __future__ import annotations

import math

import numpy as np

from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.circuit import Circuit
from circuitsim.errors import UsageError
from circuitsim.learning.estimate import Loss

SHARE = 0.01
"""Fraction of the least output conductance: a nudge moves outputs by about a hundredth of their error at most."""

PROBED = 64
"""Samples for the statistics of the first outputs."""


def scattered(block: CircuitBlock, spread: float, rng: np.random.Generator) -> Circuit:
    """The block's circuit with each adjustable resistance multiplied by exp(spread · N(0, 1)), within its bounds."""
    if not 0.0 <= spread <= 10.0:
        raise UsageError(f"the scatter must lie between 0 and 10, not {spread}")
    parameters = dict(block.parameters)
    if "conductance" in parameters:
        g = parameters["conductance"]
        parameters["conductance"] = g * np.exp(spread * rng.standard_normal(g.size))
    return block.at(parameters).trained()


def default_beta(block: CircuitBlock, loss: Loss) -> float:
    """A strength β that leaves the energy convex with either sign: a hundredth of the smallest output conductance over
    the loss's largest curvature, S for the squared error.

    Raises
    ------
    UsageError
        An output connected to the rest by diodes only.
    """
    limit = block.stiffness_limit()
    if not 0.0 < limit < math.inf:
        raise UsageError("some output has no conductance to the rest of the circuit; give a nudging strength, --beta")
    return SHARE * limit / loss.gradient_lipschitz


def default_epsilon(block: CircuitBlock, x: np.ndarray) -> float:
    """An ε that moves a parameter by about 1 % of the median conductance under typical branch voltages."""
    x = x[:PROBED]
    state = block.relax(x)
    still = state._replace(voltages=0.0 * state.voltages)
    push = block.parameter_difference(state, still, x, np.full(len(x), 1.0 / len(x)))
    size = max(float(np.abs(p).max()) for p in push.values())
    return 0.01 * scale_of(block) / (size or 1.0)


def scale_of(block: CircuitBlock) -> float:
    """The median adjustable conductance, S; without one the median size of the adjustable currents, A; 1 if zero, and
    where only parameters of devices are adjustable.
    """
    values = block.parameters.get("conductance")
    if values is None:
        values = np.abs(block.parameters.get("current", np.ones(1)))
    return float(np.median(values)) or 1.0


def output_spread(block: CircuitBlock, x: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Root mean square of the first outputs about their mean over the outputs, V; 1 if there is none.

    ``weight`` is (samples,), each sample's share in the mean.
    """
    square = block.relax(x[:PROBED]).output.var(axis=1)
    return float(np.sqrt(np.average(square, weights=None if weight is None else weight[:PROBED]))) or 1.0


def learning_rates(
    block: CircuitBlock,
    x: np.ndarray,
    optimizer: str = "adam",
    lr: float | None = None,
    current: float | None = None,
    device: float | None = None,
) -> dict[str, float]:
    """Learning rates of a block's conductances, currents and coordinates of devices' parameters; those given stay.

    Adam moves by 2 % of the median conductance; others by a tenth of it for an error that is a tenth of the inputs'
    root mean square (g²/V² has the unit of a rate for the squared error). Adam moves a coordinate by 0.02 (2 % of a
    value), others by 0.02 for an error and a derivative as large as the inputs' root mean square.
    """
    g, square = scale_of(block), float((x[:PROBED] ** 2).mean()) or 1.0
    usual, relative = (0.02 * g, 0.02) if optimizer == "adam" else (g * g / square, 0.02 / square)
    rate = usual if lr is None else lr
    rates = {
        "conductance": rate,
        "current": rate if current is None else current,
        "law": relative if device is None else device,
    }
    return {kind: rates[kind] for kind in block.parameters}
