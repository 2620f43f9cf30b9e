"""Columns of the history of a Boltzmann machine: likelihood, the bound on the bias during training, the bias itself."""

from __future__ import annotations

import math

import numpy as np

from circuitsim.boltzmann import exact
from circuitsim.boltzmann.bounds import VACUOUS, distance_of, distinct, max_energy_change, mixing_factor
from circuitsim.boltzmann.contrastive import ContrastiveDivergence, as_states
from circuitsim.boltzmann.enumeration import log_likelihood, log_partition

# Measured on every row of the history: sums are limited to a fraction of a second.
LIVE_LAYER = 16
LIVE_JOINT_UNITS = 20
_PSEUDO_SAMPLES = 1000
_CHUNK = 4096
# Up to so many units in all samples together every unit is flipped, and no chance is left in the pseudo-likelihood.
_PSEUDO_EXACT = 5000


class Monitor:
    """Measures a machine as it learns.

    Parameters
    ----------
    learner : ContrastiveDivergence
        Whose machine is measured.
    data : (S, m) ndarray
        The training data.
    binary : bool
        Whether the data are zeros and ones only. Otherwise they have no distribution over states, and neither the
        distance to it nor the exact bias is defined.
    """

    def __init__(self, learner: ContrastiveDivergence, data: np.ndarray, binary: bool) -> None:
        machine = learner.machine
        self.learner = learner
        self.data = data
        self.exact_likelihood = binary and min(machine.visible, machine.hidden) <= LIVE_LAYER
        joint = machine.visible + machine.hidden
        persistent = bool(learner.state_arrays())
        # The chains of persistent CD do not start at the data, so there the bias of CD-k is another quantity.
        self.exact_bias = binary and not persistent and joint <= LIVE_JOINT_UNITS and exact.can_analyse(machine)
        # The bound's distance is from the chain's start: the data, or for persistent chains anything (1).
        self.knows_start = self.exact_likelihood and not persistent
        if self.exact_likelihood:
            self._patterns, self._shares = distinct(data)

    def __call__(self, rng: np.random.Generator) -> dict[str, float]:
        """The columns of one row; NaN where a quantity cannot be computed for this machine."""
        machine = self.learner.machine
        steps = self.learner.rule.steps(machine)
        delta = max_energy_change(machine)
        log_model = self._log_model() if self.exact_likelihood else None
        # ½‖p_e − p‖₁ is 1 at most: an unknown value is replaced by that.
        distance = 1.0 if log_model is None or not self.knows_start else distance_of(log_model, self._shares)
        bound = distance * mixing_factor(delta, machine.visible + machine.hidden, steps)
        return {
            "log_likelihood": math.nan if log_model is None else float(self._shares @ log_model),
            "pseudo_likelihood": self._pseudo_likelihood(rng),
            "delta": delta,
            "distance": distance,
            "bound": bound,
            "vacuous": bool(bound > VACUOUS),
            "exact_bias": self._exact_bias(steps),
        }

    def _states(self, data: np.ndarray) -> np.ndarray:
        return as_states(data, self.learner.machine.visible, np.dtype(np.float64))

    def _log_model(self) -> np.ndarray:
        """log p of each distinct pattern, some at a time: as floats all of them could be many times the data."""
        log_z = log_partition(self.learner.machine)
        starts = range(0, len(self._patterns), _CHUNK)
        parts = (self._states(self._patterns[start : start + _CHUNK]) for start in starts)
        return np.concatenate([log_likelihood(self.learner.machine, part, log_z) for part in parts])

    def _pseudo_likelihood(self, rng: np.random.Generator) -> float:
        machine = self.learner.machine
        if self.data.size <= _PSEUDO_EXACT:
            return float(machine.pseudo_log_likelihood(self._states(self.data)).mean())
        rows = rng.permutation(len(self.data))[:_PSEUDO_SAMPLES]
        return float(machine.pseudo_log_likelihood(self._states(self.data[rows]), rng).mean())

    def _exact_bias(self, steps: int) -> float:
        if not self.exact_bias:
            return math.nan
        start = exact.empirical_distribution(self._states(self._patterns), self._shares)
        return exact.largest(exact.bias(self.learner.machine, start, steps))
