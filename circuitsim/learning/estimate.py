"""Common types of learning rules: from a `GradientProblem` to an `Estimate`.

Three nudges of outputs towards their targets with strength β. A nudging is a frozen value.

Losses of the outputs. A loss is a frozen value; targets are rows like the outputs, or classes (indices of outputs).

Arrays may be of any library of the array API.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import reduce
from operator import and_
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from circuitsim._arrays import Array, device, namespace, to_numpy
from circuitsim.blocks.protocol import Arrays, EnergyBlock, Kinks, Nudge, State, changed, check_named
from circuitsim.errors import ConvergenceError, RuleError, UsageError


@runtime_checkable
class Loss(Protocol):
    """A convex function of the outputs o (V) of each sample.

    Attributes
    ----------
    gradient_lipschitz : float
        Largest curvature of the loss in any direction, 1/V²  (the loss counts as a number).
    quadratic : bool
        Whether the curvature is gradient_lipschitz in every direction and at every output.
    """

    @property
    def gradient_lipschitz(self) -> float: ...

    @property
    def quadratic(self) -> bool: ...

    def value(self, output: Array, target: Array) -> Array:
        """The loss of each sample.

        Parameters
        ----------
        output : (batch, outputs) array
            Voltages, V.
        target : array
            (batch, outputs) voltages, V, or (batch,) classes (indices of outputs).

        Returns
        -------
        (batch,) array
        """
        ...

    def gradient(self, output: Array, target: Array) -> Array:
        """∂loss/∂output of each sample.

        Parameters
        ----------
        output : (batch, outputs) array
            Voltages, V.
        target : array
            (batch, outputs) voltages, V, or (batch,) classes (indices of outputs).

        Returns
        -------
        (batch, outputs) array
            Loss per volt; positive where a higher output raises the loss.
        """
        ...


def are_classes(target: Array) -> bool:
    """Whether targets are classes: whole numbers, one per sample."""
    return target.ndim == 1 and bool(namespace(target).isdtype(target.dtype, "integral"))


def target_rows(output: Array, target: Array, low: float = 0.0, high: float = 1.0) -> Array:
    """Targets as rows like the outputs.

    Parameters
    ----------
    output : (batch, outputs) array
        Gives shape and type.
    target : array
        Rows, one number a sample where there is one output, or classes.
    low, high : float
        Of the other outputs and the output of a class.

    Raises
    ------
    UsageError
        Rows of another shape, or classes that are no output's number.
    """
    xp, outputs = namespace(output), output.shape[1]
    if are_classes(target):
        if bool(xp.any((target < 0) | (target >= outputs))):
            raise UsageError(f"labels must be 0 to {outputs - 1}, the outputs of the chain")
        places = xp.arange(outputs, dtype=target.dtype, device=device(target))
        return xp.astype(target[:, None] == places[None, :], output.dtype) * (high - low) + low
    if target.ndim == 1:
        target = target[:, None]
    if tuple(target.shape) != tuple(output.shape):
        raise UsageError(f"targets of shape {tuple(target.shape)} for outputs of shape {tuple(output.shape)}")
    return xp.astype(target, output.dtype)


@dataclass(frozen=True)
class SquaredError:
    """½ Σ (o − y)² over the outputs (Scellier 2024); the targets of a class: ``high`` at its output, ``low`` elsewhere.

    Parameters
    ----------
    low, high : float
        Target voltages of classes, V.
    """

    low: float = 0.0
    high: float = 1.0
    gradient_lipschitz = 1.0
    quadratic = True

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise UsageError(f"the target of a class, {self.high} V, must lie above that of the others, {self.low} V")

    def value(self, output: Array, target: Array) -> Array:
        """(batch,) losses, V²; the arguments are those of `Loss.value`."""
        return 0.5 * namespace(output).sum(self.gradient(output, target) ** 2, axis=1)

    def gradient(self, output: Array, target: Array) -> Array:
        """(batch, outputs) o − y, V; the arguments are those of `Loss.gradient`."""
        return output - target_rows(output, target, self.low, self.high)


@dataclass(frozen=True)
class CrossEntropy:
    """−Σ y log softmax(o / temperature); y is one at the class of the sample, or a row of shares.

    Parameters
    ----------
    temperature : float
        Scale of the output voltages in the softmax, V.
    """

    temperature: float = 1.0
    quadratic = False

    def __post_init__(self) -> None:
        if not 0.0 < self.temperature < np.inf:
            raise UsageError(f"the temperature must be a positive voltage, not {self.temperature}")

    @property
    def gradient_lipschitz(self) -> float:
        """½ / temperature²: the largest eigenvalue of the softmax's covariance is at most ½."""
        return 0.5 / self.temperature**2

    def value(self, output: Array, target: Array) -> Array:
        """(batch,) losses, nats; the arguments are those of `Loss.value`."""
        shifted, powers = self._powers(output)
        xp = namespace(output)
        spread = xp.log(xp.sum(powers, axis=1, keepdims=True)) - shifted
        return xp.sum(self._shares(output, target) * spread, axis=1)

    def gradient(self, output: Array, target: Array) -> Array:
        """(batch, outputs) (softmax Σ y − y) / temperature, 1/V; the arguments are those of `Loss.gradient`."""
        xp, wanted = namespace(output), self._shares(output, target)
        _, powers = self._powers(output)
        share = xp.sum(wanted, axis=1, keepdims=True) / xp.sum(powers, axis=1, keepdims=True)
        return (powers * share - wanted) / self.temperature

    def _shares(self, output: Array, target: Array) -> Array:
        xp, rows = namespace(output), target_rows(output, target)
        if not are_classes(target) and bool(xp.any(rows < 0) | xp.any(xp.sum(rows, axis=1) == 0)):
            raise UsageError("cross-entropy needs a class for each sample, not target voltages; use the squared error")
        return rows

    def _powers(self, output: Array) -> tuple[Array, Array]:
        """Outputs over the temperature less their largest, and e to these."""
        xp, scaled = namespace(output), output / self.temperature
        shifted = scaled - xp.max(scaled, axis=1, keepdims=True)
        return shifted, xp.exp(shifted)


@dataclass(frozen=True)
class Pull:
    """cotangent · o: the loss that a block within a chain sees, whose error at the block's output is given.

    Parameters
    ----------
    cotangent : (batch, outputs) array
    """

    cotangent: Any
    gradient_lipschitz = 0.0
    quadratic = True

    def value(self, output: Array, target: Array) -> Array:
        """(batch,) cotangent · o."""
        return namespace(output).sum(self.cotangent * output, axis=1)

    def gradient(self, output: Array, target: Array) -> Array:
        """(batch, outputs) the cotangent."""
        return self.cotangent


def error(output: Array, target: Array) -> Array:
    """(batch,) 1 where the largest output is not that of the class; or the mean squared distance to the targets, V²."""
    xp = namespace(output)
    if are_classes(target):
        return xp.astype(xp.argmax(output, axis=1) != target, xp.float64)
    return xp.mean((output - target_rows(output, target)) ** 2, axis=1)


MANY_CLASSES = 20
"""Classes beyond which the five largest outputs are measured too."""


def measured(loss: Loss, output: Array, target: Array) -> dict[str, float]:
    """Means over samples: ``loss``, ``error``, and of many classes ``top5_error``."""
    found = {"loss": loss.value(output, target), "error": error(output, target)}
    means = {name: float(to_numpy(values).mean(dtype=np.float64)) for name, values in found.items()}
    if are_classes(target) and output.shape[1] > MANY_CLASSES:
        outputs = to_numpy(output)
        right = np.take_along_axis(outputs, to_numpy(target)[:, None], axis=1)
        means["top5_error"] = float(np.mean((outputs > right).sum(axis=1) >= 5))
    return means


LOSSES: dict[str, Loss] = {"cross-entropy": CrossEntropy(), "mse": SquaredError()}
"""By their names in descriptions and commands."""


def loss_named(loss: str | dict[str, Any] | Loss) -> Loss:
    """One of `LOSSES` by its name or as `describe_loss` writes it; a loss as it is.

    Raises
    ------
    UsageError
        There is none of that name.
    """
    table = {"name": loss} if isinstance(loss, str) else loss
    if not isinstance(table, dict):
        return table
    fields = dict(table)
    name = fields.pop("name")
    check_named(loss=(name, LOSSES))
    return type(LOSSES[name])(**fields)


def describe_loss(loss: Loss) -> str | dict[str, Any]:
    """A loss as plain values: its name, and its parameters where they are others than in `LOSSES`."""
    for name, known in LOSSES.items():
        if loss == known:
            return name
        if type(loss) is type(known):
            return {"name": name, **asdict(loss)}  # type: ignore[call-overload]
    return type(loss).__name__


class GradientProblem(NamedTuple):
    """A batch for a gradient estimate.

    Attributes
    ----------
    block : EnergyBlock
    x : (batch, inputs) float array
    target : (batch, outputs) float array or (batch,) int array
    loss : Loss
        Of the block's outputs; within a chain `Pull`, with the error that came back to them.
    free : State
        The relaxed, not nudged state at ``x``.
    weight : (batch,) float array
        Each sample's share in the gradient; 1/batch for a mean.
    """

    block: EnergyBlock
    x: np.ndarray
    target: np.ndarray
    loss: Loss
    free: State
    weight: np.ndarray


class Estimate(NamedTuple):
    """A gradient estimate, its residuals and bounds.

    Attributes
    ----------
    parameters : dict of str to ndarray
        Σ_b weight_b ∂loss_b/∂θ.
    inputs : (batch, inputs) float array or None
        ∂loss_b/∂x_b, not weighted; None where the rule gives none.
    residual : (batch,) float array
        Worst residual of the states used.
    certified : (batch,) bool array
        All states used are certified.
    lower, upper : (batch,) float array or None
        L_β ≤ loss ≤ L_−β, where the rule measures them (Scellier 2024, Theorem 3).
    kinks : Kinks or None
        Diodes and clamped units that change between the states used; None where the block does not tell.
    beta : float or None
        Strength of the nudge, where the rule has chosen it.
    states : tuple of State
        The free state and the nudged ones, where the rule has any.
    apart : list of (float, array) or None
        ``inputs`` as a sum of terms, sign and array (Nest & Ernoult 2024, Algorithm 2).
    counted : (batch,) bool array or None
        Samples that enter ``parameters`` where these are from two states.
    """

    parameters: Arrays
    inputs: np.ndarray | None
    residual: np.ndarray
    certified: np.ndarray
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None
    kinks: Kinks | None = None
    beta: float | None = None
    states: tuple[Any, ...] = ()
    apart: list[tuple[float, np.ndarray]] | None = None
    counted: np.ndarray | None = None

    @property
    def nudged(self) -> list[Any]:
        """The nudged states."""
        return [state for state in self.states if state is not self.states[0]]


@runtime_checkable
class Rule(Protocol):
    """A learning rule; a frozen value.

    A chain also reads, where a rule has them: ``nudging``; ``scale_errors``, whether the error at a block's output is
    divided by its largest entry first; ``allow_nonconvex``, whether samples count that are not certified.
    """

    def estimate(self, problem: GradientProblem) -> Estimate:
        """The estimate for one batch.

        Raises
        ------
        RuleError
            A block or a loss that the rule does not fit.
        """
        ...


class DivergedError(ConvergenceError):
    """No sample of a batch has finite nudged states, although unproven states are allowed."""


def contrasted(
    problem: GradientProblem,
    states: tuple[Any, ...],
    plus: Any,
    minus: Any,
    width: float,
    allow_nonconvex: bool = False,
    apart: bool = False,
    **more: Any,
) -> Estimate:
    """The estimate (∂E at plus − ∂E at minus) / width.

    Parameters
    ----------
    problem : GradientProblem
    states : tuple of State
        All that were relaxed: the free state first.
    plus, minus : State
        The two that are compared.
    width : float
        Distance of their strengths: 2β, β, or that of another rule.
    allow_nonconvex : bool
        Whether all samples with finite states enter the gradients, not only certified ones.
    apart : bool
        Whether ``Estimate.apart`` is wanted: each state against the free one, whose share cancels.
    **more
        Further fields.

    Raises
    ------
    DivergedError
        States without proof are allowed, and none is finite.
    """
    block, x, _, _, free, weight = problem
    xp, certified = namespace(weight), reduce(and_, [state.certified for state in states])
    counted = certified
    if allow_nonconvex:
        counted = _finite(plus) & _finite(minus)
        if not bool(counted.any()):
            raise DivergedError(
                f"no sample of the batch has finite states under its nudges (their strengths are {width:g} "
                "apart): the nudged energy has no minimum; choose a smaller beta, a nudge that does not follow the "
                "outputs, or, for chains, scaled errors"
            )
    counted = xp.asarray(counted, device=device(weight))

    def by_inputs(one: Any, other: Any) -> Array:
        found = block.input_difference(one, other, x) / width
        return xp.where(counted[:, None], found, xp.zeros_like(found))

    share = weight * xp.astype(counted, weight.dtype) / width
    residuals = [state.residual for state in states]
    terms = [(1.0, by_inputs(plus, free)), (-1.0, by_inputs(minus, free))] if apart else None
    return Estimate(
        dict(block.parameter_difference(plus, minus, x, share)),
        by_inputs(plus, minus),
        reduce(namespace(residuals[0]).maximum, residuals),
        certified,
        **{"kinks": changed(states), "states": states, "apart": terms, "counted": counted, **more},
    )


def _finite(state: State) -> Array:
    """(batch,) bool: a state has finite squares, certified or not."""
    xp, own = namespace(state.output), getattr(state, "finite", None)
    return xp.all(xp.isfinite(state.output), axis=1) if own is None else own


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
