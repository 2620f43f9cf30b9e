"""Contrastive divergence as something the trainer can train: CD-k, persistent CD, fixed or adaptive k."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from circuitsim.boltzmann import kernels
from circuitsim.boltzmann.exact import max_energy_change
from circuitsim.boltzmann.machine import RestrictedBoltzmannMachine, random_key, sample_layer
from circuitsim.errors import UsageError
from circuitsim.training.checkpoint import Arrays, Batch, copy_into


class StepRule(Protocol):
    """A number of Gibbs steps for the machine as it now is."""

    def steps(self, machine: RestrictedBoltzmannMachine) -> int:
        """k, at least 1."""
        ...


@dataclass(frozen=True)
class AdaptiveSteps:
    """One Gibbs step for every ``nats`` nats of Δ: k(Δ) = ⌈Δ / nats⌉, at least ``k`` and at most ``k_max``.

    Δ, the largest change of the energy by one unit, makes the chain slow: the bound on the bias leaves the
    share (1 − exp(−(m + n) Δ))^k of the initial distance after k steps. To hold that worst case down k would have to
    grow like exp((m + n) Δ), which is k_max from the first update on. Real chains are far faster than their worst case,
    so the rule grows in proportion instead: few steps while the weights are small and a step forgets nearly all, more
    as they grow. ``benchmarks/results/rbm/adaptive_k.md`` has what this gains over a fixed k at equal Gibbs steps.

    Parameters
    ----------
    k, k_max : int
        Minimum and maximum number of steps.
    nats : float
        How much of Δ one more step answers, in nats (energies are in units of the temperature). Layers of hundreds of
        units add weights that never act together and have a much larger Δ: give a fraction of its value there.
    """

    k: int = 1
    k_max: int = 20
    nats: float = 0.5

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UsageError(f"k, the number of Gibbs steps, must be at least 1, not {self.k}")
        if self.k_max < self.k:
            raise UsageError(f"k_max must be at least k = {self.k}, not {self.k_max}")
        if not self.nats > 0:
            raise UsageError(f"the nats of one adaptive Gibbs step must be positive, not {self.nats}")

    def steps(self, machine: RestrictedBoltzmannMachine) -> int:
        """k for the machine's present Δ."""
        return self.k if self.k == self.k_max else self.at(max_energy_change(machine))

    def at(self, delta: float) -> int:
        """k for a given Δ."""
        return int(np.clip(np.ceil(delta / self.nats), self.k, self.k_max))


def FixedSteps(k: int = 1) -> StepRule:
    """The same k throughout."""
    return AdaptiveSteps(k, k)


class ContrastiveDivergence:
    """A machine with CD-k as its gradient estimator; satisfies `circuitsim.training.Trainable`.

    Parameters
    ----------
    machine : RestrictedBoltzmannMachine
        Trained in place.
    rule : StepRule
        k for each update.
    chains : int
        0 starts each chain at the data (CD-k). A positive number is that of chains continued from update to update
        (persistent CD, Tieleman 2008), which start with all hidden units at 0.

    Notes
    -----
    The hidden units take their probabilities in both statistics, and samples only to drive the chain; the visible units
    of the chain are samples. Its mean is then the expected CD-k of `exact.expected_contrastive_divergence`.
    """

    def __init__(self, machine: RestrictedBoltzmannMachine, rule: StepRule | None = None, chains: int = 0) -> None:
        if chains < 0:
            raise UsageError(f"the number of persistent chains must not be negative, not {chains}")
        self.machine = machine
        self.rule = rule or FixedSteps(1)
        self._chains = np.zeros((chains, machine.hidden), machine.dtype) if chains else None
        self._gradient = np.empty((machine.visible, machine.hidden), machine.dtype)

    @property
    def parameters(self) -> Arrays:
        """Weights and biases: the machine's own memory."""
        return self.machine.parameters

    def gradient(self, batch: Batch, rng: np.random.Generator) -> tuple[Arrays, dict[str, float]]:
        """CD-k estimate of the gradient of the mean negative log-likelihood of a batch.

        Parameters
        ----------
        batch : tuple with one (B, m) ndarray
            Visible states; values in [0, 1] stand for their own probability. Bytes (uint8) are divided by 255.
        rng : numpy.random.Generator
            Drives the chain.

        Returns
        -------
        gradients : dict
            Keyed like the parameters; the arrays are reused by the next call.
        metrics : dict
            ``k``, and ``reconstruction``: mean squared difference of the data and the chain's visible probabilities
            after its first step (absent for persistent chains, which have no reconstruction).
        """
        machine = self.machine
        data = machine.as_states(batch[0])
        steps = self.rule.steps(machine)
        metrics: dict[str, float] = {"k": steps}
        positive = machine.hidden_probability(data)
        hidden = _draw(positive, rng) if self._chains is None else self._chains
        by_hidden = kernels.transposed(machine.weights.T)
        for step in range(steps):
            activation = np.empty((len(hidden), machine.visible), machine.dtype)
            kernels.affine(hidden, by_hidden, machine.visible_bias, activation)
            visible = activation.copy()
            kernels.sample(visible, random_key(rng))
            if step == 0 and self._chains is None:
                kernels.logistic(activation)
                metrics["reconstruction"] = float(np.mean((activation - data) ** 2))
            if step < steps - 1:
                hidden = sample_layer(visible, machine.weights.T, machine.hidden_bias, rng)
        negative = machine.hidden_probability(visible)
        if self._chains is not None:
            self._chains = _draw(negative, rng)
        # Chain minus data, each averaged over its own samples.
        states = kernels.transposed(np.concatenate([visible, data]))
        shares = np.concatenate([negative / len(visible), positive / -len(data)])
        kernels.affine(states, shares, np.zeros(machine.hidden, machine.dtype), self._gradient)
        gradients = {
            "weights": self._gradient.T,
            "visible_bias": visible.mean(axis=0) - data.mean(axis=0),
            "hidden_bias": negative.mean(axis=0) - positive.mean(axis=0),
        }
        return gradients, metrics

    def project(self) -> None:
        """All real parameters are allowed."""

    def state_arrays(self) -> Arrays:
        """The persistent chains, if there are any."""
        return {} if self._chains is None else {"chains": self._chains}

    def load_state_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take back the persistent chains."""
        copy_into(self.state_arrays(), arrays, "persistent chains")


def _draw(probability: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Zeros and ones with these probabilities."""
    kind: Any = probability.dtype
    return (rng.random(probability.shape, kind) < probability).astype(kind)
