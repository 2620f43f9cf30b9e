"""Columns of the history of a Boltzmann machine: likelihood, the bound on the bias during training, the bias itself.

And a picture of its filters.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from circuitsim.boltzmann import exact
from circuitsim.boltzmann.contrastive import ContrastiveDivergence
from circuitsim.boltzmann.machine import RestrictedBoltzmannMachine
from circuitsim.plotting.charts import stacked, write

# Measured on every row of the history: sums are limited to a fraction of a second.
LIVE_LAYER = 16
LIVE_JOINT_UNITS = 20
_PSEUDO_SAMPLES = 1000
_CHUNK = 4096
# Up to this number of units in all samples together, every unit is flipped: the pseudo-likelihood is exact.
_PSEUDO_EXACT = 5000
_ACROSS = 10


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
        self.learner, self.data = learner, data
        layers = learner.machine.visible, learner.machine.hidden
        self.exact_likelihood = binary and min(layers) <= LIVE_LAYER
        # The chains of persistent CD do not start at the data: the bias of CD-k is then another quantity, and the
        # distance in its bound that from anything (1).
        self.knows_start = self.exact_likelihood and not learner.state_arrays()
        self.exact_bias = self.knows_start and max(layers) <= LIVE_LAYER and sum(layers) <= LIVE_JOINT_UNITS
        if self.exact_likelihood:
            self._patterns, self._shares = exact.distinct(data)

    def __call__(self, rng: np.random.Generator) -> dict[str, float]:
        """The columns of one row; NaN where a quantity cannot be computed for this machine."""
        machine = self.learner.machine
        steps = self.learner.rule.steps(machine)
        likelihood = bias = math.nan
        distance = 1.0
        if self.exact_likelihood:
            # Some patterns at a time: as floats all of them could be many times the data.
            log_z, starts = exact.log_partition(machine), range(0, len(self._patterns), _CHUNK)
            parts = (machine.as_states(self._patterns[start : start + _CHUNK]) for start in starts)
            log_model = np.concatenate([exact.log_likelihood(machine, part, log_z) for part in parts])
            likelihood = float(self._shares @ log_model)
            if self.knows_start:
                distance = exact.distance_of(log_model, self._shares)
        if self.exact_bias:
            start = exact.empirical_distribution(machine.as_states(self._patterns), self._shares)
            bias = exact.largest(exact.bias(machine, start, steps))
        few = self.data.size <= _PSEUDO_EXACT
        some = self.data if few else self.data[rng.permutation(len(self.data))[:_PSEUDO_SAMPLES]]
        pseudo = machine.pseudo_log_likelihood(some, None if few else rng)
        bound = exact.bias_bound(machine, steps, distance)
        return {
            "log_likelihood": likelihood,
            "pseudo_likelihood": float(pseudo.mean()),
            "delta": exact.max_energy_change(machine),
            "distance": distance,
            "bound": bound,
            "vacuous": bool(bound > exact.VACUOUS),
            "exact_bias": bias,
        }


def draw_filters(machine: RestrictedBoltzmannMachine, shape: tuple[int, int], path: Path) -> None:
    """The weights of the first hundred hidden units as images of the visible layer; blue pulls a pixel down, red up."""
    weights = machine.weights[: _ACROSS**2].reshape(-1, *shape)
    limit = np.abs(weights).max() or 1.0
    tiles = np.pad(weights, ((0, -len(weights) % _ACROSS), (0, 1), (0, 1)), constant_values=np.nan)
    sheet = tiles.reshape(-1, _ACROSS, *tiles.shape[1:]).swapaxes(1, 2).reshape(-1, _ACROSS * tiles.shape[2])
    figure, (axes,) = stacked("weights of the hidden units", 6.0, [0.5 + 0.06 * len(tiles)])
    axes.imshow(sheet, interpolation="nearest", cmap="RdBu_r", vmin=-limit, vmax=limit)
    axes.set(xticks=[], yticks=[])
    write(figure, path)
