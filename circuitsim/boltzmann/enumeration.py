"""Sums over every state of the smaller layer: partition function, exact likelihood, exact gradient.

The larger layer is summed in closed form, so 2^24 terms suffice for a machine with 24 hidden units and any number of
visible ones. States are taken in blocks; memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import logsumexp

from circuitsim.boltzmann.machine import RestrictedBoltzmannMachine
from circuitsim.errors import CircuitError

MAX_SMALLER_LAYER = 24
_BLOCK_UNITS = 8


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


def model_expectation(machine: RestrictedBoltzmannMachine) -> dict[str, np.ndarray]:
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


def data_expectation(
    machine: RestrictedBoltzmannMachine, visible: np.ndarray, probability: np.ndarray
) -> dict[str, np.ndarray]:
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


def likelihood_gradient(
    machine: RestrictedBoltzmannMachine, visible: np.ndarray, probability: np.ndarray
) -> dict[str, np.ndarray]:
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
