"""EP beside implicit differentiation, sweep by sweep and layer by layer (Nest & Ernoult 2024, Figures 3 and 4)."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from circuitsim._arrays import to_numpy
from circuitsim.blocks.layered import LayeredBlock
from circuitsim.errors import UsageError
from circuitsim.learning.chain import Chain
from circuitsim.learning.chaining import backward, forward, is_block, through_block
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

    The error at a block's output is that which EP has carried there; each number of sweeps of both methods starts from
    it.
    """
    output, steps = forward(chain.elements, x, True)
    rules = [Chaining(method, chain.rule.beta) for method in ("ep", "bp")]  # type: ignore[attr-defined]
    errors = backward(steps, output, targets, chain.loss, np.ones_like(output[:, 0]), rules[0]).errors
    rng, found = np.random.default_rng(seed), list[GradientCurves]()
    for number, step in reversed(list(enumerate(steps))):
        block = step.element
        if not is_block(block):
            continue
        if not isinstance(block, LayeredBlock):
            raise UsageError(f"element {number} is solved without sweeps: there are none to compare")
        estimates, shorter = [], copy(block)
        for sweeps in range(1, block.sweeps.nudged + 1):
            shorter.sweeps = replace(block.sweeps, nudged=sweeps)
            one = step._replace(element=shorter)
            estimates.append([through_block(one, errors[number], rule)[0].parameters for rule in rules])
        for name in block.parameters:
            ours, theirs = (np.array([pair[of][name].ravel() for pair in estimates]) for of in (0, 1))
            largest = np.abs(theirs).max(axis=1)
            off = np.abs(ours - theirs).max(axis=1) / np.where(largest > 0.0, largest, 1.0)
            some = rng.integers(ours.shape[1], size=entries)
            found.append(GradientCurves(f"{number}.{name}", ours[:, some], theirs[:, some], off))
    return found


def gradient_cosines(chain: Chain, x: Any, targets: Any) -> dict[str, float]:
    """Cosine between the gradients of EP and of implicit differentiation, for every parameter of the chain."""
    exact = copy(chain)
    exact.rule = Chaining("bp")
    ep, reference = (each.gradient((x, targets), np.random.default_rng(0))[0] for each in (chain, exact))
    if ep is None or reference is None:
        raise UsageError("the chain has not converged enough for implicit differentiation: give it more sweeps")
    cosines = {}
    for name in ep:
        a, b = (to_numpy(of[name]).astype(np.float64).ravel() for of in (ep, reference))
        norms = float(np.linalg.norm(a) * np.linalg.norm(b))
        cosines[name] = float(a @ b) / norms if norms else float("nan")
    return cosines
