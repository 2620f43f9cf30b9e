"""How many Gibbs steps contrastive divergence takes: fixed, or raised as the weights grow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from circuitsim.boltzmann.bounds import max_energy_change
from circuitsim.boltzmann.machine import RestrictedBoltzmannMachine
from circuitsim.errors import UsageError


class StepRule(Protocol):
    """A number of Gibbs steps for the machine as it now is."""

    def steps(self, machine: RestrictedBoltzmannMachine) -> int:
        """k, at least 1."""
        ...


@dataclass(frozen=True)
class AdaptiveSteps:
    """One Gibbs step for every ``nats`` nats of Δ: k(Δ) = ⌈Δ / nats⌉, at least ``k`` and at most ``k_max``.

    Δ, the most that the energy can change with one unit, is what makes the chain slow: the bound on the bias leaves the
    share (1 − exp(−(m + n) Δ))^k of the initial distance after k steps. To hold that worst case down k would have to
    grow like exp((m + n) Δ), which is k_max from the first update on. Real chains are far faster than their worst case,
    so the rule grows in proportion instead: few steps while the weights are small and a step forgets nearly all, more
    as they grow. ``benchmarks/results/rbm/adaptive_k.md`` has what this gains over a fixed k at equal Gibbs steps.

    Parameters
    ----------
    k, k_max : int
        Least and most steps.
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
        return self.at(max_energy_change(machine))

    def at(self, delta: float) -> int:
        """k for a given Δ."""
        return min(self.k_max, max(self.k, math.ceil(min(delta / self.nats, self.k_max))))


def FixedSteps(k: int = 1) -> StepRule:
    """The same k throughout."""
    return AdaptiveSteps(k, k)
