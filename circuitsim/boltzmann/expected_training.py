"""Training by *expected* CD-k: the update with the chance averaged out, for small machines, compiled.

The readable twin of the kernel is a plain loop over `exact.expected_contrastive_divergence`; a test holds them equal.
"""

from __future__ import annotations

import numpy as np

from circuitsim._jit import jit
from circuitsim.boltzmann.enumeration import states
from circuitsim.boltzmann.exact import check_enumerable
from circuitsim.boltzmann.machine import RestrictedBoltzmannMachine
from circuitsim.errors import ConvergenceError, UsageError


@jit(unroll=True, fastmath={"reassoc", "nsz"})
def ascend(parameters, distribution, states, rate, steps, updates):
    """Take ``updates`` steps of gradient ascent with expected CD-k, in place.

    Parameters
    ----------
    parameters : (n + 1, m + 1) ndarray
        The weights; before them a row of the visible biases and a column of the hidden biases, those of a unit of each
        layer that is always on. Changed in place.
    distribution : (2^m,) ndarray
        Empirical distribution of the patterns.
    states : (2^m, m + 1) ndarray
        Ones, and bit j of state s.
    rate : float
        Learning rate.
    steps : int
        k.
    updates : int
        How many.
    """
    (hidden, visible), count = parameters.shape, len(states)
    count_hidden = 1 << (hidden - 1)
    joint, on = np.empty((count, count_hidden)), np.ones((count, hidden))
    by_row, by_column = np.empty(count), np.empty(count_hidden)
    chain, over_hidden = np.empty(count), np.empty(count_hidden)
    for _ in range(updates):
        # p(v, h) up to a factor: each bit of h multiplies what the lower ones give by the odds of its unit.
        by_column[:] = 0.0
        for s in range(count):
            for i in range(hidden):
                total = 0.0
                for j in range(visible):
                    total += parameters[i, j] * states[s, j]
                odds, half = np.exp(total), 1 << i >> 1
                if i == 0:
                    joint[s, 0] = odds
                else:
                    on[s, i] = odds / (1.0 + odds)
                for t in range(half):
                    joint[s, half + t] = joint[s, t] * odds
            total = 0.0
            for t in range(count_hidden):
                total += joint[s, t]
                by_column[t] += joint[s, t]
            by_row[s] = total
            chain[s] = distribution[s]
        for _ in range(steps):
            over_hidden[:] = 0.0
            for s in range(count):
                share = chain[s] / by_row[s]
                for t in range(count_hidden):
                    over_hidden[t] += share * joint[s, t]
            for t in range(count_hidden):
                over_hidden[t] /= by_column[t]
            for s in range(count):
                total = 0.0
                for t in range(count_hidden):
                    total += over_hidden[t] * joint[s, t]
                chain[s] = total
        # Data minus chain, weighted by the states: what is left is the expected update.
        for s in range(count):
            push = rate * (distribution[s] - chain[s])
            for i in range(hidden):
                for j in range(visible):
                    parameters[i, j] += push * on[s, i] * states[s, j]


def train_expected(
    machine: RestrictedBoltzmannMachine, distribution: np.ndarray, rate: float, steps: int, updates: int
) -> RestrictedBoltzmannMachine:
    """The machine after ``updates`` steps of full-batch expected CD-k (Fischer & Igel 2011, §3).

    Parameters
    ----------
    machine : RestrictedBoltzmannMachine
        Start; not changed. At most 16 units in a layer and 24 in both.
    distribution : (2^m,) ndarray
        Empirical distribution of the patterns (`exact.empirical_distribution`).
    rate : float
        Learning rate on the gradient of the mean log-likelihood of a pattern.
    steps : int
        k.
    updates : int
        Number of updates.

    Raises
    ------
    ConvergenceError
        Parameters so large that their exponentials overflow.
    """
    check_enumerable(machine)
    if steps < 1 or updates < 0 or not rate >= 0:
        raise UsageError(f"expected CD-k needs k ≥ 1, updates ≥ 0 and rate ≥ 0, not {steps}, {updates} and {rate}")
    if distribution.shape != (2**machine.visible,):
        raise UsageError(f"the distribution must have {2**machine.visible} entries, not shape {distribution.shape}")
    parameters = np.zeros((machine.hidden + 1, machine.visible + 1))
    parameters[0, 1:], parameters[1:, 0] = machine.visible_bias, machine.hidden_bias
    parameters[1:, 1:] = machine.weights
    visible = np.insert(states(machine.visible), 0, 1.0, axis=1)
    ascend(parameters, distribution, visible, rate, steps, updates)
    if not np.isfinite(parameters).all():
        raise ConvergenceError("expected CD-k diverged: the weights are no longer finite; try a lower learning rate")
    return RestrictedBoltzmannMachine(parameters[1:, 1:], parameters[0, 1:], parameters[1:, 0])
