"""log Z of a machine too large to enumerate: annealed importance sampling (Neal 2001; Salakhutdinov & Murray 2008)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from circuitsim.boltzmann.machine import RestrictedBoltzmannMachine, softplus
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

    def at(beta: float) -> RestrictedBoltzmannMachine:
        mixed = (1 - beta) * start + beta * exact.visible_bias
        return RestrictedBoltzmannMachine(beta * exact.weights, mixed, beta * exact.hidden_bias)

    visible = (rng.random((chains, exact.visible)) < mean).astype(np.float64)
    log_weight, machine = np.zeros(chains), at(0.0)
    for beta in np.linspace(0, 1, temperatures + 1)[1:]:
        before, machine = machine, at(beta)
        log_weight += before.free_energy(visible) - machine.free_energy(visible)
        visible = machine.gibbs(visible, rng)
    # Weights are scaled by the largest one against overflow.
    weight = np.exp(log_weight - log_weight.max())
    mean_weight, error = weight.mean(), weight.std(ddof=1) / math.sqrt(chains)
    offset = log_weight.max() + exact.hidden * math.log(2) + softplus(start).sum()
    with np.errstate(divide="ignore"):
        logs = offset + np.log(np.maximum(mean_weight + error * np.array([0, -3, 3]), 0))
    effective = weight.sum() ** 2 / (weight**2).sum()
    return PartitionEstimate(*(float(x) for x in (*logs, error / mean_weight, effective)))
