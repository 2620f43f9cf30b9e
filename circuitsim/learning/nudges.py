"""Three nudges of outputs towards their targets with strength β. A nudging is a frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from circuitsim._arrays import namespace
from circuitsim.blocks.protocol import Nudge, State
from circuitsim.errors import ConvergenceError, RuleError
from circuitsim.learning.estimate import GradientProblem


@runtime_checkable
class Nudging(Protocol):
    """Relaxes a block whose energy is tilted by β times a cost of the outputs."""

    def relax(self, problem: GradientProblem, beta: float) -> State:
        """The minimum of E + β · cost, started at the free state.

        Parameters
        ----------
        problem : GradientProblem
            The block, its inputs and targets, the loss, and the free state, where the search starts.
        beta : float
            β, the strength of the nudge; may be negative. Times the cost it is a power, W.

        Returns
        -------
        State
            Of the block.

        Raises
        ------
        ConvergenceError
            No minimum was found: β is too large.
        """
        ...

    def cost(self, problem: GradientProblem, output: np.ndarray) -> np.ndarray:
        """The cost added to the energy; at the free output it is the loss.

        Parameters
        ----------
        problem : GradientProblem
            As for `relax`.
        output : (batch, outputs) ndarray
            Where the cost is wanted, V.

        Returns
        -------
        (batch,) ndarray
            In the unit of the loss.
        """
        ...


@dataclass(frozen=True)
class ResistorNudge:
    """A resistor of conductance β from each output to a source at its target: F = E + β ½ ‖o − y‖².

    A negative β is a negative conductance: allowed while the energy stays convex, |β| below the smallest eigenvalue of
    the output conductance matrix S in every state of the diodes (a larger one is refused).
    """

    def relax(self, problem: GradientProblem, beta: float) -> State:
        """The minimum of F; exact. The arguments are those of `Nudging.relax`.

        Raises
        ------
        RuleError
            The loss is not quadratic.
        """
        block, x, target, loss, free, _ = problem
        if not loss.quadratic:
            raise RuleError("a resistor nudges by the squared error only; use a current (--nudge current or constant)")
        # At output 0 the gradient of the loss is −y.
        toward = beta * loss.gradient(namespace(free.output).zeros_like(free.output), target)
        return block.relax(x, Nudge(toward, beta * loss.gradient_lipschitz), free)

    def cost(self, problem: GradientProblem, output: np.ndarray) -> np.ndarray:
        """The loss itself; the arguments are those of `Nudging.cost`."""
        return problem.loss.value(output, problem.target)


@dataclass(frozen=True)
class FollowingCurrent(ResistorNudge):
    """A current source −β ∂loss/∂o into each output, a function of the state: F = E + β loss, for any convex loss.

    For the squared error the steady state is that of `ResistorNudge`, found at once. Blocks that sweep work the
    current out at every sweep (Nest & Ernoult 2024, Algorithms 7 and 9). Of others F is lowered by majorants: for
    β > 0 the loss's tangent and a conductance β · gradient_lipschitz across the outputs, for β < 0 the tangent.

    Parameters
    ----------
    tolerance : float
        Largest change of an output in the last iteration, as a fraction of the largest output.
    iterations : int
        Largest number of iterations.
    """

    tolerance: float = 1e-11
    iterations: int = 2000

    def relax(self, problem: GradientProblem, beta: float) -> State:
        """The minimum of F; the arguments are those of `Nudging.relax`.

        Raises
        ------
        ConvergenceError
            The iterations did not converge: β is too large (a negative one leaves no minimum).
        """
        block, x, target, loss, free, _ = problem
        if loss.quadratic:
            return super().relax(problem, beta)
        if hasattr(block, "sweeps"):
            now = beta * loss.gradient(free.output, target)
            return block.relax(x, Nudge(now, follow=lambda output: beta * loss.gradient(output, target)), free)
        stiffness = max(beta, 0.0) * loss.gradient_lipschitz
        state = free
        for _ in range(self.iterations):
            before = state.output
            pull = beta * loss.gradient(before, target) - stiffness * before
            state = block.relax(x, Nudge(pull, stiffness), state)
            change = np.abs(state.output - before).max(initial=0.0)
            if change <= self.tolerance * np.abs(state.output).max(initial=0.0):
                return state
        raise ConvergenceError(
            f"no convergence of the nudged state in {self.iterations} iterations (change {change:.1e} V); "
            "use a smaller --beta"
        )


@dataclass(frozen=True)
class ConstantCurrent:
    """A constant current −β ∂loss/∂o, evaluated at the free state: F = E + β (loss⁰ + ∂loss/∂o⁰ · (o − o⁰)).

    No denominator changes, any sign of β is allowed, and centred estimates are exact at every finite β as long as the
    same diodes conduct at ±β.
    """

    def relax(self, problem: GradientProblem, beta: float) -> State:
        """The minimum of F; exact. The arguments are those of `Nudging.relax`."""
        block, x, target, loss, free, _ = problem
        return block.relax(x, Nudge(beta * loss.gradient(free.output, target)), free)

    def cost(self, problem: GradientProblem, output: np.ndarray) -> np.ndarray:
        """The loss's tangent at the free output; the arguments are those of `Nudging.cost`."""
        _, _, target, loss, free, _ = problem
        slope = loss.gradient(free.output, target)
        return loss.value(free.output, target) + (slope * (output - free.output)).sum(axis=1)


RESISTOR, CONSTANT = ResistorNudge(), ConstantCurrent()

NUDGES: dict[str, Nudging] = {"resistor": RESISTOR, "current": FollowingCurrent(), "constant": CONSTANT}
"""By their names on the command line."""
