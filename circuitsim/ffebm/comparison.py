"""EP beside implicit differentiation, sweep by sweep and layer by layer (Nest & Ernoult 2024, Figures 3 and 4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from circuitsim._arrays import to_numpy
from circuitsim.blocks.layered import LayeredBlock
from circuitsim.blocks.propagation import unit
from circuitsim.blocks.protocol import Nudge
from circuitsim.errors import UsageError
from circuitsim.learning.chain import Chain
from circuitsim.learning.chaining import Step, backward, forward, is_block
from circuitsim.learning.rules import Chaining


class GradientCurves(NamedTuple):
    """One parameter's estimates while a block's nudged sweeps go on.

    Attributes
    ----------
    name : str
        ``number.name`` in the chain.
    ep, id : ndarray (sweeps, entries)
        A few entries after 1, 2, … nudged sweeps, and after as many sweeps of backpropagation.
    deviation : ndarray (sweeps,)
        Largest |EP − ID| of all entries, relative to the largest |ID|.
    """

    name: str
    ep: np.ndarray
    id: np.ndarray
    deviation: np.ndarray


def gradient_curves(chain: Chain, x: Any, targets: Any, entries: int = 5, seed: int = 0) -> list[GradientCurves]:
    """Both estimates for every parameter of every block, from the last block backward.

    The error at a block's output is that which EP has carried there; each sweep of both methods starts from it.
    """
    output, steps = forward(chain.elements, x, True)
    rule = Chaining(beta=chain.rule.beta)  # type: ignore[attr-defined]
    errors = backward(steps, output, targets, chain.loss, np.ones_like(output[:, 0]), rule).errors
    rng = np.random.default_rng(seed)
    found: list[GradientCurves] = []
    for number in reversed(range(len(steps))):
        if is_block(steps[number].element):
            found += _block_curves(chain, number, steps[number], errors[number], entries, rng)
    return found


def gradient_cosines(chain: Chain, x: Any, targets: Any) -> dict[str, float]:
    """Cosine between the gradients of EP and of implicit differentiation, for every parameter of the chain."""
    former = chain.rule
    try:
        gradients = []
        for rule in (former, Chaining("bp")):
            chain.rule = rule
            gradients.append(chain.gradient((x, targets), np.random.default_rng(0))[0])
    finally:
        chain.rule = former
    ep, reference = gradients
    if ep is None or reference is None:
        raise UsageError("the chain has not converged enough for implicit differentiation: give it more sweeps")
    return {name: _cosine(to_numpy(ep[name]), to_numpy(reference[name])) for name in ep}


def _block_curves(
    chain: Chain, number: int, step: Step, error: Any, entries: int, rng: np.random.Generator
) -> list[GradientCurves]:
    block, x, free, _ = step
    if not isinstance(block, LayeredBlock):
        raise UsageError(f"element {number} is solved without sweeps: there are none to compare")
    beta = chain.rule.beta * unit(step.element)  # type: ignore[attr-defined]
    scale = np.abs(error).max(axis=1)
    scale[scale == 0] = 1.0
    share = np.full(len(error), 1.0 / len(error), error.dtype)
    sweeps, former = block.sweeps.nudged, block.sweeps
    series: dict[str, tuple[list[np.ndarray], list[np.ndarray], list[float]]] = {
        n: ([], [], []) for n in block.parameters
    }
    places = {name: rng.integers(array.size, size=entries) for name, array in block.parameters.items()}
    plus = minus = free
    try:
        block.sweeps = replace(former, nudged=1)
        for sweep in range(1, sweeps + 1):
            plus, minus = (
                block.relax(x, Nudge(sign * beta * error / scale[:, None]), state)
                for sign, state in ((1.0, plus), (-1.0, minus))
            )
            ep = block.parameter_difference(plus, minus, x, share * scale * (0.5 / beta))
            reference, _ = block.truncated(free, x, error, share, sweep)
            for name, (ours, theirs, off) in series.items():
                ours.append(ep[name].ravel()[places[name]])
                theirs.append(reference[name].ravel()[places[name]])
                largest = np.abs(reference[name]).max()
                off.append(float(np.abs(ep[name] - reference[name]).max() / (largest or 1.0)))
    finally:
        block.sweeps = former
    return [
        GradientCurves(f"{number}.{name}", np.array(ours), np.array(theirs), np.array(off))
        for name, (ours, theirs, off) in series.items()
    ]


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norms if norms else float("nan")
