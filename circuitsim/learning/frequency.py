"""Frequency propagation (Anisetti, Kandala, Scellier & Schwarz 2024): the error as an oscillating current."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from circuitsim.blocks.kinks import changed
from circuitsim.errors import RuleError, UsageError
from circuitsim.learning.estimate import Estimate, GradientProblem, contrasted
from circuitsim.learning.nudges import CONSTANT, Nudging


@dataclass(frozen=True)
class FrequencyPropagation:
    """The outputs receive the current −γ sin(ωt) ∂loss/∂o; each branch has its own voltage a + b sin(ωt).

        a = mean of v(t)        b = (2/T) ∫ v(t) sin(ωt) dt        Δg = −η a b / γ        the estimate is a b / γ

    Activation and error are components of one signal, at frequencies 0 and ω, without storage. The period is simulated
    at equally spaced times, quasi-statically (the circuit has no memory). Exact at every γ while the same diodes
    conduct throughout and the error is held at its free value; off by O(γ²) where the error follows the state.

    Parameters
    ----------
    gamma : float
        Amplitude; S for circuits with the squared error.
    times : int
        Times in a period, at least 3 (a and b are not determined by fewer).
    nudging : Nudging
        `ConstantCurrent`, or `FollowingCurrent` for an error that follows the state.
    """

    gamma: float = 0.01
    times: int = 8
    nudging: Nudging = CONSTANT

    def __post_init__(self) -> None:
        if not 0.0 < self.gamma < np.inf:
            raise UsageError(f"the amplitude must be positive and finite, not {self.gamma}")
        if self.times < 3:
            raise UsageError(f"a period needs at least 3 times, not {self.times}")

    def estimate(self, problem: GradientProblem) -> Estimate:
        """The estimate, from one period.

        Raises
        ------
        RuleError
            A block that is not a circuit.
        """
        # Circuits are slow to import; chains without them need none.
        from circuitsim.blocks.circuit import CircuitState, combined

        free = problem.free
        if not isinstance(free, CircuitState):
            raise RuleError("frequency propagation needs a circuit: the branch voltages of a block over a period")
        sines = np.sin(2.0 * np.pi * np.arange(self.times) / self.times)
        states, here = [], free
        for sine in sines.tolist():
            # Each time starts at the state of the previous one; the error is that of the free state throughout, as the
            # pull is evaluated at its output.
            begin = free._replace(solution=here.solution)
            here = self.nudging.relax(problem._replace(free=begin), self.gamma * sine)  # type: ignore[assignment]
            states.append(here)
        mean = combined(states, [1.0 / self.times] * self.times)
        swing = combined(states, (2.0 / self.times * sines).tolist())
        # ½ (a + b/2)² − ½ (a − b/2)² = a b, and what is linear in the state gives b.
        above, below = combined([mean, swing], [1.0, 0.5]), combined([mean, swing], [1.0, -0.5])
        return contrasted(problem, (free, mean), above, below, self.gamma, kinks=changed([free, *states]))
