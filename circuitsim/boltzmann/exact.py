"""Exact analysis of small machines: the Gibbs chain as a matrix, expected CD-k, and its bias, without sampling."""

from __future__ import annotations

import numpy as np

from circuitsim.boltzmann.enumeration import EnumerationError, data_expectation, log_likelihood, states
from circuitsim.boltzmann.machine import RestrictedBoltzmannMachine, softplus
from circuitsim.errors import UsageError

MAX_LAYER = 16
MAX_JOINT_UNITS = 24


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
) -> dict[str, np.ndarray]:
    """Expected CD-k estimate of the likelihood gradient when patterns come from ``distribution``.

    Parameters
    ----------
    machine : RestrictedBoltzmannMachine
        At most 16 units in a layer and 24 in both.
    distribution : (2^m,) ndarray
        Of the patterns at which the chain starts (`empirical_distribution`).
    steps : int
        k, at least 1.

    Returns
    -------
    dict of str to ndarray
        Keyed like the parameters; positive where the likelihood grows with the parameter.
    """
    if steps < 1:
        raise UsageError(f"contrastive divergence needs at least one Gibbs step, not {steps}")
    return data_expectation(machine, states(machine.visible), distribution - after_gibbs(machine, distribution, steps))


def bias(machine: RestrictedBoltzmannMachine, distribution: np.ndarray, steps: int) -> dict[str, np.ndarray]:
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
    if steps < 0:
        raise UsageError(f"the number of Gibbs steps must not be negative, not {steps}")
    missing = model_distribution(machine) - after_gibbs(machine, distribution, steps)
    return data_expectation(machine, states(machine.visible), missing)


def largest(values: dict[str, np.ndarray]) -> float:
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
