"""Random deviations in blocks: the samples of a block depend on the seed and the block's number alone."""

from __future__ import annotations

import numpy as np

from circuitsim.netlist.deviations import SIGMAS, Distribution
from circuitsim.tolerance.spread import Spread

BLOCK = 1024
"""Samples of a block."""


def deviations(spread: Spread, seed: int, block: int, count: int, latin: bool) -> np.ndarray:
    """Deviations (count, v) of block ``block``.

    Parameters
    ----------
    spread : Spread
    seed, block : int
        What the random numbers depend on.
    count : int
        Samples: `BLOCK`, but for the last block.
    latin : bool
        Latin hypercube: within the block each variable takes each of ``count`` equally probable strata once (McKay,
        Beckman & Conover 1979).
    """
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, block])))
    variables = len(spread.variables)
    result = rng.random((count, variables))
    if latin:
        strata = np.broadcast_to(np.arange(count)[:, None], (count, variables))
        result += rng.permuted(strata, axis=0)
        result /= count
    for rule in Distribution:
        at = np.flatnonzero([one is rule for one in spread.distribution])
        if at.size == variables:
            return _shaped(result, rule) * spread.amount
        if at.size:
            result[:, at] = _shaped(result[:, at], rule)
    return result * spread.amount


def _shaped(u: np.ndarray, rule: Distribution) -> np.ndarray:
    """Uniform numbers in [0, 1) to deviations as shares of the tolerance."""
    if rule is Distribution.UNIFORM:
        return 2.0 * u - 1.0
    if rule is Distribution.ENDS:
        return np.where(u < 0.5, -1.0, 1.0)
    from scipy.special import ndtr, ndtri

    if rule is Distribution.TRUNCATED:
        low = float(ndtr(-SIGMAS))
        return ndtri(low + (1.0 - 2.0 * low) * u) / SIGMAS
    return ndtri(np.maximum(u, 2.0**-54)) / SIGMAS


__all__ = ["BLOCK", "deviations"]
