"""Machines for the tests, and the plainest way to know everything about a small one."""

import numpy as np

from circuitsim.boltzmann import RestrictedBoltzmannMachine
from circuitsim.boltzmann.exact import states


def random_machine(visible, hidden, seed=0, scale=1.0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    draw = [scale * rng.standard_normal(shape) for shape in ((hidden, visible), visible, hidden)]
    return RestrictedBoltzmannMachine(*(array.astype(dtype) for array in draw))


def joint_table(machine):
    """p(v, h) for all states by the definition, (2^m, 2^n), and log Z."""
    v, h = states(machine.visible), states(machine.hidden)
    couplings = np.einsum("vm,nm,hn->vh", v, machine.weights, h)
    log_weight = couplings + (v @ machine.visible_bias)[:, None] + h @ machine.hidden_bias
    top = log_weight.max()
    log_z = top + np.log(np.exp(log_weight - top).sum())
    return np.exp(log_weight - log_z), log_z
