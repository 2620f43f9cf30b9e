"""Training by *expected* CD-k: the update with the chance averaged out, for small machines, compiled.

The readable twin of the kernel is a plain loop over `exact.expected_contrastive_divergence`; a test holds them equal.
"""

from __future__ import annotations

import numpy as np

from circuitsim._jit import jit
from circuitsim.boltzmann.exact import check_enumerable
from circuitsim.boltzmann.machine import RestrictedBoltzmannMachine
from circuitsim.errors import ConvergenceError, UsageError

# Sums may be regrouped here so that they use vector instructions: the twins agree to round-off, not to the bit.
_FAST = {"reassoc", "nsz"}


@jit(unroll=True, fastmath=_FAST)
def on_probabilities(weights, bias, on):
    """p(unit = 1 | s) for every state s of the other layer.

    Parameters
    ----------
    weights : (n, m) ndarray
        Rows are the units, columns the other layer's.
    bias : (n,) ndarray
    on : (n, 2^m) ndarray
        Overwritten. The odds of a state are products of the odds of its bits, so that n (m + 1) exponentials suffice.
    """
    units, others = weights.shape
    for i in range(units):
        odds = on[i]
        odds[0] = np.exp(bias[i])
        for j in range(others):
            factor = np.exp(weights[i, j])
            half = 1 << j
            for s in range(half):
                odds[half + s] = odds[s] * factor
        for s in range(odds.size):
            # Written so that odds of 0 and of infinity give 0 and 1.
            odds[s] = 1.0 / (1.0 + 1.0 / odds[s])


@jit(unroll=True, fastmath=_FAST)
def push(source, on, table, target):
    """``target[t] = Σ_s source[s] Π_i (on[i, s] if bit i of t else 1 − on[i, s])``: one half of a Gibbs step.

    Parameters
    ----------
    source : (S,) ndarray
        Distribution over the states of one layer.
    on : (n, S) ndarray
        From `on_probabilities` for the other layer's units.
    table : (2^n, S) ndarray
        Workspace.
    target : (2^n,) ndarray
        Overwritten.
    """
    units, count = on.shape
    table[0, :] = source
    for i in range(units):
        half = 1 << i
        for t in range(half):
            for s in range(count):
                table[half + t, s] = table[t, s] * on[i, s]
                table[t, s] -= table[half + t, s]
    for t in range(target.size):
        total = 0.0
        for s in range(count):
            total += table[t, s]
        target[t] = total


@jit(unroll=True, fastmath=_FAST)
def ascend(weights, visible_bias, hidden_bias, distribution, states, rate, steps, updates):
    """Take ``updates`` steps of gradient ascent with expected CD-k, in place.

    Parameters
    ----------
    weights : (n, m) ndarray
        C order, changed in place, as are the biases (m,) and (n,).
    distribution : (2^m,) ndarray
        Empirical distribution of the patterns.
    states : (m, 2^m) ndarray
        Bit j of state s.
    rate : float
        Learning rate.
    steps : int
        k.
    updates : int
        How many.
    """
    hidden, visible = weights.shape
    count, count_hidden = 1 << visible, 1 << hidden
    hidden_on, visible_on = np.empty((hidden, count)), np.empty((visible, count_hidden))
    table_hidden, table_visible = np.empty((count_hidden, count)), np.empty((count, count_hidden))
    over_hidden, over_visible = np.empty(count_hidden), np.empty(count)
    by_visible = np.empty((visible, hidden))
    for _ in range(updates):
        by_visible[:, :] = weights.T
        on_probabilities(weights, hidden_bias, hidden_on)
        on_probabilities(by_visible, visible_bias, visible_on)
        over_visible[:] = distribution
        for _ in range(steps):
            push(over_visible, hidden_on, table_hidden, over_hidden)
            push(over_hidden, visible_on, table_visible, over_visible)
        # Data minus chain, weighted by the states: what is left is the expected update.
        for s in range(count):
            over_visible[s] = rate * (distribution[s] - over_visible[s])
        for j in range(visible):
            for s in range(count):
                visible_bias[j] += over_visible[s] * states[j, s]
        for i in range(hidden):
            for s in range(count):
                hidden_on[i, s] *= over_visible[s]
            total = 0.0
            for s in range(count):
                total += hidden_on[i, s]
            hidden_bias[i] += total
            for j in range(visible):
                total = 0.0
                for s in range(count):
                    total += hidden_on[i, s] * states[j, s]
                weights[i, j] += total


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
    weights = np.array(machine.weights, np.float64, order="C")
    visible_bias, hidden_bias = machine.visible_bias.astype(np.float64), machine.hidden_bias.astype(np.float64)
    bits = np.arange(2**machine.visible) >> np.arange(machine.visible)[:, None] & 1
    ascend(weights, visible_bias, hidden_bias, distribution, bits.astype(np.float64), rate, steps, updates)
    if not np.isfinite(weights).all():
        raise ConvergenceError("expected CD-k diverged: the weights are no longer finite; try a lower learning rate")
    return RestrictedBoltzmannMachine(weights, visible_bias, hidden_bias)
