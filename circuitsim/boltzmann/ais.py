"""log Z of a machine too large to enumerate: annealed importance sampling (Neal 2001; Salakhutdinov & Murray 2008)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import expit, logit

from circuitsim.boltzmann import kernels
from circuitsim.boltzmann.machine import RestrictedBoltzmannMachine, random_key, sample_layer
from circuitsim.errors import UsageError


@dataclass(frozen=True)
class PartitionEstimate:
    """log Z with its statistical error.

    Attributes
    ----------
    log_z : float
        Logarithm of the mean weight.
    low, high : float
        Logarithms of mean weight ∓ three standard errors; ``low`` is −inf where that is not positive.
    standard_error : float
        Relative standard error of Z, which is about the error of log Z where it is small.
    effective_chains : float
        (Σ w)² / Σ w²: how many of the chains carry the estimate. Far below their number, the error bars cannot be
        trusted: use more temperatures.
    """

    log_z: float
    low: float
    high: float
    standard_error: float
    effective_chains: float


def estimate_log_partition(
    machine: RestrictedBoltzmannMachine,
    rng: np.random.Generator,
    temperatures: int = 1000,
    chains: int = 100,
    data_mean: np.ndarray | None = None,
) -> PartitionEstimate:
    """Estimate log Z by annealing from independent units to the machine.

    Parameters
    ----------
    machine : RestrictedBoltzmannMachine
        Of any size.
    rng : numpy.random.Generator
        Drives the chains.
    temperatures : int
        Intermediate distributions; the error falls with their number.
    chains : int
        Independent chains, at least 2, from whose scatter the error is estimated.
    data_mean : (m,) ndarray, optional
        Mean of the data: the annealing then starts at independent visible units of that mean, which saves
        temperatures. Uniform units by default.

    Notes
    -----
    At inverse temperature β from 0 to 1, p_β(v) ∝ exp((1 − β) a·v + β b·v) Π_i (1 + exp(β (c_i + W_i·v))), where a is
    the start's bias. A chain's weight is the product of p_β'(v) / p_β(v) over the steps, v being moved by one Gibbs
    step of p_β' between them. Z is the mean weight times Z of the start, 2^n Π_j (1 + exp(a_j)), without bias.
    """
    if temperatures < 1 or chains < 2:
        raise UsageError(f"AIS needs at least 1 temperature and 2 chains, not {temperatures} and {chains}")
    exact = machine.astype(np.float64)
    mean = np.full(exact.visible, 0.5) if data_mean is None else np.clip(np.asarray(data_mean, np.float64), 0.01, 0.99)
    if mean.shape != (exact.visible,):
        raise UsageError(f"the data's mean must have shape ({exact.visible},), not {mean.shape}")
    # Log odds of the start's independent units; every state has positive probability.
    start = logit(mean)
    visible = (rng.random((chains, exact.visible)) < expit(start)).astype(np.float64)
    by_hidden = np.ascontiguousarray(exact.weights)
    log_weight = np.zeros(chains)
    betas = np.linspace(0, 1, temperatures + 1)
    for before, beta in pairwise(betas):
        activation = np.empty((chains, exact.hidden))
        kernels.affine(visible, exact.weights.T, exact.hidden_bias, activation)
        log_weight += (beta - before) * (visible @ (exact.visible_bias - start))
        log_weight += (np.logaddexp(0, beta * activation) - np.logaddexp(0, before * activation)).sum(axis=1)
        if beta < 1:
            hidden = beta * activation
            kernels.sample(hidden, random_key(rng))
            mixed = (1 - beta) * start + beta * exact.visible_bias
            visible = sample_layer(beta * hidden, by_hidden, mixed, rng)
    start_log_z = exact.hidden * math.log(2) + float(np.logaddexp(0, start).sum())
    return _summarise(log_weight, start_log_z)


def _summarise(log_weight: np.ndarray, start_log_z: float) -> PartitionEstimate:
    """Mean and standard error of the weights, scaled by the largest one against overflow."""
    top = float(log_weight.max())
    weight = np.exp(log_weight - top)
    mean, offset = float(weight.mean()), top + start_log_z
    error = float(weight.std(ddof=1)) / math.sqrt(len(weight))
    low, middle, high = (
        offset + math.log(z) if z > 0.0 else -math.inf for z in (mean - 3 * error, mean, mean + 3 * error)
    )
    return PartitionEstimate(middle, low, high, error / mean, float(weight.sum() ** 2 / (weight**2).sum()))
