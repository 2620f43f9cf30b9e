"""Bounds on the bias of CD-k: that of Fischer & Igel (2011) and the older one of Bengio & Delalleau (2009)."""

from __future__ import annotations

import numpy as np

from circuitsim.boltzmann.exact import log_likelihood
from circuitsim.boltzmann.machine import RestrictedBoltzmannMachine
from circuitsim.errors import UsageError

# A gradient of a binary machine never exceeds 1, so that a bound near 1 is vacuous.
VACUOUS = 0.99


def max_energy_change(machine: RestrictedBoltzmannMachine) -> float:
    """Δ: the largest change of the energy by one unit (Fischer & Igel 2011, Theorem 3).

    For visible unit l the other layer adds the positive or the negative weights alone at worst:
    ϑ_l = max(|Σ_i max(w_il, 0) + b_l|, |Σ_i min(w_il, 0) + b_l|); hidden units likewise; Δ is the largest of all.
    """
    above, below = np.maximum(machine.weights, 0), np.minimum(machine.weights, 0)
    changes = [
        np.abs(part.sum(axis=axis) + bias)
        for axis, bias in ((0, machine.visible_bias), (1, machine.hidden_bias))
        for part in (above, below)
    ]
    return float(max(change.max() for change in changes))


def mixing_factor(delta: float, units: int, steps: int) -> float:
    """(1 − exp(−(m + n) Δ))^k: the fraction of the initial distance that k Gibbs steps may leave, in [0, 1].

    Parameters
    ----------
    delta : float
        `max_energy_change`.
    units : int
        m + n, both layers together.
    steps : int
        k.
    """
    if steps < 0 or units < 1 or delta < 0:
        raise UsageError(f"no bound for {steps} steps of {units} units with Δ = {delta}")
    return _left(-units * delta, steps)


def _left(log_leak: float, steps: int) -> float:
    """(1 − exp(log_leak))^steps; log1p is accurate where 1 − exp(…) would round to 1."""
    leak = np.exp(log_leak)
    return float(steps == 0) if leak >= 1 else float(np.exp(steps * np.log1p(-leak)))


def bias_bound(machine: RestrictedBoltzmannMachine, steps: int, distance: float = 1.0) -> float:
    """Upper bound on the bias of any component of expected CD-k (Fischer & Igel 2011, Theorems 3 and 4).

    Parameters
    ----------
    machine : RestrictedBoltzmannMachine
        Of any size.
    steps : int
        k.
    distance : float
        Total variation between the chain's start and the model, ½‖p_e − p‖₁ on visible states: `data_distance`;
        1 − p(v) for a single pattern v. 1, its largest value, where it is unknown.
    """
    return distance * mixing_factor(max_energy_change(machine), machine.visible + machine.hidden, steps)


def older_bound(machine: RestrictedBoltzmannMachine, steps: int) -> float:
    """2^m (1 − 2^m 2^n σ(−α)^m σ(−β)^n)^k of Bengio & Delalleau (2009).

    α = max_j (Σ_i |w_ij| + |b_j|) and β = max_i (Σ_j |w_ij| + |c_i|). Exceeds 1 for all but tiny parameters.

    Parameters
    ----------
    machine : RestrictedBoltzmannMachine
        Of any size.
    steps : int
        k, at least 0.

    Returns
    -------
    float
        Not below 0; infinite from 1,024 visible units on.
    """
    size = np.abs(machine.weights)
    alpha = float((size.sum(axis=0) + np.abs(machine.visible_bias)).max())
    beta = float((size.sum(axis=1) + np.abs(machine.hidden_bias)).max())
    m, n = machine.visible, machine.hidden
    # 2 σ(−x) = 1 + tanh(−x / 2); its logarithm by logaddexp is accurate for large x.
    leak = m * (np.log(2) - np.logaddexp(0, alpha)) + n * (np.log(2) - np.logaddexp(0, beta))
    return 2.0**m * _left(leak, steps) if m < 1024 else float("inf")


def data_distance(
    machine: RestrictedBoltzmannMachine, patterns: np.ndarray, probability: np.ndarray, log_z: float | None = None
) -> float:
    """½‖p_e − p‖₁ from the patterns alone: Σ over patterns of max(p_e(v) − p(v), 0); of a single one 1 − p(v).

    The patterns must be distinct rows of zeros and ones. All other states together hold the same amount with the
    opposite sign, so that only log Z has to be enumerated, which needs one layer of at most 24 units.

    Parameters
    ----------
    machine : RestrictedBoltzmannMachine
        m visible units.
    patterns : (D, m) ndarray
        Distinct rows of zeros and ones (`distinct`).
    probability : (D,) ndarray
        Their shares, of sum 1.
    log_z : float, optional
        Natural logarithm of the partition function, if known.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    EnumerationError
        Without ``log_z``: both layers have more than 24 units.
    """
    return distance_of(log_likelihood(machine, patterns, log_z), probability)


def distance_of(log_model: np.ndarray, probability: np.ndarray) -> float:
    """The same, from the model's log-likelihood of each pattern."""
    # Round-off of the shares can lead past 1.
    return min(1.0, float(np.maximum(probability - np.exp(log_model), 0).sum()))


def distinct(patterns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows and their shares: (S, m) → (D, m), (D,)."""
    rows, counts = np.unique(patterns, axis=0, return_counts=True)
    return rows, counts / counts.sum()
