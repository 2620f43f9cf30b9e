"""Exact sums over states, without sampling: partition function, likelihood, gradient; expected CD-k, its bias, bounds.

log Z of larger machines is estimated by annealed importance sampling (Neal 2001; Salakhutdinov & Murray 2008).

Sums over the smaller layer take the larger one in closed form, so 2^24 terms suffice for a machine with 24 hidden units
and any number of visible ones; states are taken in blocks, and memory does not grow with their number. The Gibbs chain
as a matrix goes through all joint states of small machines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import logit, logsumexp

from circuitsim.boltzmann.machine import RestrictedBoltzmannMachine, softplus
from circuitsim.errors import CircuitError, UsageError
from circuitsim.training.checkpoint import Arrays

MAX_SMALLER_LAYER = 24
MAX_LAYER = 16
MAX_JOINT_UNITS = 24
_BLOCK_UNITS = 8
# A gradient of a binary machine never exceeds 1, so that a bound near 1 is vacuous.
VACUOUS = 0.99


class EnumerationError(CircuitError, ValueError):
    """A machine with too many units to go through all its states."""


def states(units: int) -> np.ndarray:
    """All states of a layer, (2^units, units) zeros and ones; unit j of state s is bit j of s."""
    return (np.arange(2**units)[:, None] >> np.arange(units) & 1).astype(np.float64)


def _smaller(machine: RestrictedBoltzmannMachine) -> RestrictedBoltzmannMachine:
    """The machine in double precision, its layers exchanged where necessary so that the visible one is the smaller."""
    if min(machine.visible, machine.hidden) > MAX_SMALLER_LAYER:
        raise EnumerationError(
            f"a machine with {machine.visible} visible and {machine.hidden} hidden units has no layer of at most "
            f"{MAX_SMALLER_LAYER} units, so its states cannot be enumerated; estimate log Z with AIS instead"
        )
    exact = machine.astype(np.float64)
    return exact.swapped() if machine.visible > machine.hidden else exact


def _blocks(machine: RestrictedBoltzmannMachine) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All visible states in blocks of at most 2^8, and log(Z p) of each."""
    varying = min(machine.visible, _BLOCK_UNITS)
    pattern = states(varying)
    for upper in states(machine.visible - varying):
        block = np.hstack([pattern, np.tile(upper, (len(pattern), 1))])
        yield block, -machine.free_energy(block)


def log_partition(machine: RestrictedBoltzmannMachine) -> float:
    """log Z, exact to round-off.

    Raises
    ------
    EnumerationError
        Both layers have more than 24 units.
    """
    return float(logsumexp([logsumexp(log_weight) for _, log_weight in _blocks(_smaller(machine))]))


def log_likelihood(machine: RestrictedBoltzmannMachine, visible: np.ndarray, log_z: float | None = None) -> np.ndarray:
    """log p(v) of each row, exact to round-off.

    Parameters
    ----------
    machine : RestrictedBoltzmannMachine
        m visible units.
    visible : (B, m) array
        States, zeros and ones.
    log_z : float, optional
        Natural logarithm of the partition function; saves the enumeration.

    Returns
    -------
    (B,) ndarray
        Natural logarithms, not above 0.

    Raises
    ------
    EnumerationError
        Without ``log_z``: both layers have more than 24 units.
    """
    exact = machine.astype(np.float64)
    return -exact.free_energy(np.asarray(visible, np.float64)) - (log_partition(exact) if log_z is None else log_z)


def model_expectation(machine: RestrictedBoltzmannMachine) -> Arrays:
    """E[h vᵀ], E[v], E[h] under the model, exact, keyed like the parameters."""
    smaller = _smaller(machine)
    log_z = log_partition(smaller)
    total = dict.fromkeys(machine.parameters, np.zeros(()))
    for block, log_weight in _blocks(smaller):
        for name, part in data_expectation(smaller, block, np.exp(log_weight - log_z)).items():
            total[name] = total[name] + part
    if machine.visible > machine.hidden:
        weights, visible, hidden = total.values()
        return {"weights": weights.T, "visible_bias": hidden, "hidden_bias": visible}
    return total


def data_expectation(machine: RestrictedBoltzmannMachine, visible: np.ndarray, probability: np.ndarray) -> Arrays:
    """E[h vᵀ], E[v], E[h] with v drawn from given states and h from p(h | v), keyed like the parameters.

    Parameters
    ----------
    visible : (S, m) ndarray
        States of the visible layer.
    probability : (S,) ndarray
        How probable each is; need not be normalised (a difference of two distributions is allowed).
    """
    hidden = machine.astype(np.float64).hidden_probability(visible)
    weighted = probability[:, None] * visible
    return {
        "weights": hidden.T @ weighted,
        "visible_bias": weighted.sum(axis=0),
        "hidden_bias": probability @ hidden,
    }


def likelihood_gradient(machine: RestrictedBoltzmannMachine, visible: np.ndarray, probability: np.ndarray) -> Arrays:
    """Exact gradient of Σ_s probability_s log p(v_s), keyed like the parameters (Fischer & Igel 2011, Eq. 1.1).

    Parameters
    ----------
    machine : RestrictedBoltzmannMachine
        n hidden and m visible units.
    visible : (S, m) ndarray
        States, zeros and ones.
    probability : (S,) ndarray
        Weight of each; their sum need not be 1.

    Returns
    -------
    dict of str to ndarray
        ``weights`` (n, m), ``visible_bias`` (m,), ``hidden_bias`` (n,); positive where the likelihood grows with the
        parameter.

    Raises
    ------
    EnumerationError
        Both layers have more than 24 units.
    """
    data, model = data_expectation(machine, visible, probability), model_expectation(machine)
    return {name: data[name] - probability.sum() * model[name] for name in data}


# ---------------------------------------------------------------------- the Gibbs chain
def check_enumerable(machine: RestrictedBoltzmannMachine) -> None:
    """Refuse machines whose joint states are too many.

    Raises
    ------
    EnumerationError
        More than 16 units in a layer, or more than 24 in both.
    """
    if max(machine.visible, machine.hidden) > MAX_LAYER or machine.visible + machine.hidden > MAX_JOINT_UNITS:
        raise EnumerationError(
            f"exact analysis goes through all joint states: at most {MAX_LAYER} units in a layer and "
            f"{MAX_JOINT_UNITS} in both, not {machine.visible} and {machine.hidden}"
        )


def model_distribution(machine: RestrictedBoltzmannMachine) -> np.ndarray:
    """p(v) of every visible state, (2^m,), in the order of `states`."""
    check_enumerable(machine)
    return np.exp(log_likelihood(machine, states(machine.visible)))


def empirical_distribution(visible: np.ndarray, probability: np.ndarray | None = None) -> np.ndarray:
    """The distribution of given patterns over all states; (S, m) zeros and ones → (2^m,).

    Parameters
    ----------
    visible : (S, m) ndarray
        Binary patterns; repeated ones add up.
    probability : (S,) ndarray, optional
        Weight of each; equal by default.
    """
    visible = np.asarray(visible)
    if visible.ndim != 2 or not np.isin(visible, (0, 1)).all():
        raise UsageError("patterns must be rows of zeros and ones to have a distribution over binary states")
    units = visible.shape[1]
    if units > MAX_LAYER:
        raise EnumerationError(
            f"patterns of {units} units have too many states; at most {MAX_LAYER} units are possible"
        )
    index = visible.astype(np.int64) @ (1 << np.arange(units))
    weight = np.full(len(visible), 1 / len(visible)) if probability is None else np.asarray(probability, np.float64)
    return np.bincount(index, weights=weight, minlength=2**units)


def _half_steps(machine: RestrictedBoltzmannMachine) -> list[np.ndarray]:
    """p(h | v) of all states, (2^m, 2^n), and p(v | h), (2^n, 2^m): the two halves of a Gibbs step."""
    check_enumerable(machine)
    halves = []
    for exact in (machine.astype(np.float64), machine.astype(np.float64).swapped()):
        activation = states(exact.visible) @ exact.weights.T + exact.hidden_bias
        halves.append(np.exp(activation @ states(exact.hidden).T - softplus(activation).sum(axis=1)[:, None]))
    return halves


def after_gibbs(machine: RestrictedBoltzmannMachine, visible: np.ndarray, steps: int) -> np.ndarray:
    """The distribution of v after ``steps`` Gibbs steps: p_e Tᵏ; (2^m,) → (2^m,)."""
    if steps < 0:
        raise UsageError(f"the number of Gibbs steps must not be negative, not {steps}")
    forth, back = _half_steps(machine)
    for _ in range(steps):
        visible = visible @ forth @ back
    return visible


def transition_matrix(machine: RestrictedBoltzmannMachine) -> np.ndarray:
    """T(v → v') = Σ_h p(h | v) p(v' | h); (2^m, 2^m), rows sum to one."""
    if machine.visible > 12:
        raise EnumerationError(f"the transition matrix of {machine.visible} visible units is too large; at most 12")
    forth, back = _half_steps(machine)
    return forth @ back


def expected_contrastive_divergence(
    machine: RestrictedBoltzmannMachine, distribution: np.ndarray, steps: int
) -> Arrays:
    """Expected CD-k estimate of the likelihood gradient when patterns come from ``distribution``.

    Parameters
    ----------
    machine : RestrictedBoltzmannMachine
        At most 16 units in a layer and 24 in both.
    distribution : (2^m,) ndarray
        Of the patterns at which the chain starts (`empirical_distribution`).
    steps : int
        k, at least 0.

    Returns
    -------
    dict of str to ndarray
        Keyed like the parameters; positive where the likelihood grows with the parameter.
    """
    return data_expectation(machine, states(machine.visible), distribution - after_gibbs(machine, distribution, steps))


def bias(machine: RestrictedBoltzmannMachine, distribution: np.ndarray, steps: int) -> Arrays:
    """Bias of CD-k for every parameter: expected estimate minus exact gradient, keyed like the parameters.

    Both have the same term from the data; what remains is the difference of two model terms, E_p − E_{p_k}.

    Parameters
    ----------
    machine : RestrictedBoltzmannMachine
        At most 16 units in a layer and 24 in both.
    distribution : (2^m,) ndarray
        Of the patterns at which the chain starts (`empirical_distribution`).
    steps : int
        k, at least 0.

    Returns
    -------
    dict of str to ndarray
        Positive where CD-k exceeds the exact gradient.

    Raises
    ------
    UsageError
        A negative number of steps.
    EnumerationError
        The machine is too large.
    """
    missing = model_distribution(machine) - after_gibbs(machine, distribution, steps)
    return data_expectation(machine, states(machine.visible), missing)


def largest(values: Arrays) -> float:
    """The largest absolute value over all parameters."""
    return max(float(np.abs(array).max()) for array in values.values())


def total_variation(first: np.ndarray, second: np.ndarray) -> float:
    """Half the sum of absolute differences of two distributions, in [0, 1].

    Parameters
    ----------
    first, second : (S,) ndarray
        Probabilities of the same states in the same order.

    Returns
    -------
    float
        0 where they are equal, 1 where no state has a share in both.
    """
    return 0.5 * float(np.abs(first - second).sum())


# ---------------------------------------------------------------------- bounds on the bias
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


# ---------------------------------------------------------------------- larger machines
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
