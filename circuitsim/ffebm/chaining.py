"""Errors backwards through a chain: backpropagation in stages, differences of relaxed states in blocks.

All errors belong to the sum of the samples' losses; what is returned is the mean gradient of a batch. The energy of a
block is E(s; θ, x), x = F(s of the block before): Nest & Ernoult (2024), Theorem 3.1 and Algorithms 2, 4 and 12.

A block of one layer has no coupling (U = 0): its state is σ(x), and a chain of such blocks is a feedforward network
(Lemma A.2). Nudged it is σ(x ∓ β δs), so that Algorithms 2 and 4 become Algorithms 3 and 5; the code is the same.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from circuitsim._arrays import Array, namespace
from circuitsim.blocks.kinks import Kinks
from circuitsim.blocks.propagation import METHODS, Contrast, check_named, contrast
from circuitsim.blocks.protocol import EnergyBlock, Nudge
from circuitsim.errors import UsageError
from circuitsim.ffebm.images import BatchNorm
from circuitsim.ffebm.losses import ChainLoss
from circuitsim.ffebm.stages import Stage

Element = Any
Gradients = dict[str, Array]


@dataclass(frozen=True)
class Chaining:
    """How gradients are computed.

    Parameters
    ----------
    method : {"ep", "bp", "implicit"}
        ``ep``: blocks are relaxed with the error as nudge of either sign at their outputs (equilibrium propagation).
        ``bp``: backpropagation through as many free sweeps of relaxed blocks as a nudged phase makes (Algorithm 12);
        a block without sweeps gives its exact limit. ``implicit``: that limit for all blocks.
    beta : float
        Strength of the nudge, of either sign, relative to the block's own stiffness (`unit`): about how far the output
        moves that moves furthest.
    form : {"explicit", "implicit"}
        Whether the stages before a block receive the difference of its two states (Algorithm 4), or each state in turn
        (Algorithm 2). The results agree at every β.
    last : {"stationary", "elastic"}
        Whether the error at the last block stays as it was at the free state or follows the state.
    scale_errors : bool
        Divide each sample's error by its largest entry before a block is relaxed, and multiply after: β is then the
        largest pull on any output, for every loss, and round-off is the same from block to block.
    allow_nonconvex : bool
        Compute with samples too whose nudged energy is not convex (an elastic nudge too strong for the last block).
        Otherwise they are left out; either way they count as uncertified.
    """

    method: str = "ep"
    beta: float = 0.02
    form: str = "explicit"
    last: str = "stationary"
    scale_errors: bool = True
    allow_nonconvex: bool = False

    def __post_init__(self) -> None:
        forms, ends = ("explicit", "implicit"), ("stationary", "elastic")
        check_named(method=(self.method, METHODS), form=(self.form, forms), last=(self.last, ends))
        if not isinstance(self.beta, numbers.Real) or not math.isfinite(self.beta) or self.beta == 0:
            raise UsageError(
                f"beta must be a finite number other than zero, not {self.beta!r}: chains have no automatic strength; "
                "lower it where kink_share in the history is large"
            )


class Step(NamedTuple):
    """One element of a forward pass.

    Attributes
    ----------
    element : Stage or EnergyBlock
    x : array
        What came in; rows, for a block.
    memory : object
        What a stage remembers, or a block's free state.
    shape : tuple of int
        Of the output.
    """

    element: Element
    x: Array
    memory: Any
    shape: tuple[int, ...]


def is_block(element: Element) -> bool:
    """Whether an element of a chain is a block, not a stage."""
    return not isinstance(element, Stage)


def forward(elements: Sequence[Element], x: Array, training: bool) -> tuple[Array, list[Step]]:
    """Forward pass of a batch; returns the output and the steps."""
    steps = []
    for element in elements:
        if is_block(element):
            xp = namespace(x)
            x = xp.reshape(x, (x.shape[0], -1))
            state = element.relax(x)
            steps.append(Step(element, x, state, tuple(state.output.shape)))
            # Circuits are solved in double precision for every precision of the chain.
            x = _shaped(element, xp.astype(state.output, x.dtype))
        else:
            y, memory = element.forward(x, training)
            steps.append(Step(element, x, memory, tuple(y.shape)))
            x = y
    return x, steps


def backward(
    steps: Sequence[Step], error: Array, targets: Array, loss: ChainLoss, rule: Chaining
) -> tuple[list[Gradients], Array, Kinks]:
    """Mean gradient of the loss with respect to each element's parameters.

    Parameters
    ----------
    steps : sequence of Step
        Of `forward`.
    error : array (batch, outputs)
        ∂ℓ_b/∂prediction_b of each sample at the free states.
    targets : array
        Needed where the last block's nudge follows its state.

    Returns
    -------
    gradients : list of dict
        In the order of the elements.
    certified : array (batch,) of bool
        Samples of which every state is within its block's tolerance; the blocks before a state that is not leave that
        sample out.
    kinks : Kinks
        Units of all blocks whose bounds (or diodes whose states) change between the free and the nudged states.
    """
    batch = error.shape[0]
    gradients: list[Gradients] = [{} for _ in steps]
    certified = error[:, 0] == error[:, 0]
    first = next((i for i, step in enumerate(steps) if step.element.parameters), len(steps))
    place = len(steps) - 1
    # (coefficient, cotangent): one in the explicit form, one for each state in the implicit form.
    errors, kinks = [(1.0, error)], list[Kinks]()
    if rule.method == "ep" and rule.last == "elastic":
        place, passed = _elastic_end(steps, gradients, targets, loss, rule)
        gradients[place + 1], errors, certified, _ = passed
        kinks += [] if passed.kinks is None else [passed.kinks]
    for index in range(place, first - 1, -1):
        step, with_input = steps[index], index > first
        errors = [(c, namespace(e).reshape(e, step.shape)) for c, e in errors]
        if is_block(step.element):
            passed = through_block(step, sum(c * e for c, e in errors), rule, batch)
            gradients[index], errors, certified = passed.gradients, passed.errors, certified & passed.certified
            kinks += [] if passed.kinks is None else [passed.kinks]
        else:
            pulled = [(c, step.element.vjp(step.memory, e, with_input)) for c, e in errors]
            gradients[index] = _combined([(c / batch, found) for c, (found, _) in pulled])
            errors = [(c, back) for c, (_, back) in pulled]
    total = Kinks(sum((k.changes for k in kinks), np.zeros(batch, np.int64)), sum(k.switches for k in kinks))
    return gradients, certified, total


def unit(block: EnergyBlock) -> float:
    """What a nudge of strength 1 is for a block: the conductance, S, that holds an output, so that β is in volts.

    1 for Hopfield networks, whose units have no unit.
    """
    if hasattr(block, "stiffness"):
        return float(block.stiffness())
    limit = float(block.stiffness_limit()) if hasattr(block, "stiffness_limit") else 1.0
    if 0 < limit < math.inf:
        return limit
    # Outputs that float while all diodes block: the scale of what is there.
    conductance = block.parameters.get("conductance")
    return 1.0 if conductance is None else float(conductance.mean())


class Passed(NamedTuple):
    """What a block gives: gradients, errors at its input, which samples are certified, kinks (None: not known)."""

    gradients: Gradients
    errors: list[tuple[float, Array]]
    certified: Array
    kinks: Kinks | None


def through_block(step: Step, error: Array, rule: Chaining, batch: int) -> Passed:
    """A block's gradients, the errors at its input, and which samples are certified."""
    xp = namespace(error)
    block, x, free, _ = step
    certified = xp.asarray(free.certified)
    trust = xp.astype(certified, error.dtype)
    if rule.method != "ep":
        differentiate = getattr(block, "truncated", block.implicit) if rule.method == "bp" else block.implicit
        found, back = differentiate(free, x, error, trust / batch)
        kinks = Kinks(*block.kinks(free)) if hasattr(block, "kinks") else None
        return Passed(dict(found), [(1.0, xp.astype(back, error.dtype) * trust[:, None])], certified, kinks)
    scale = xp.max(xp.abs(error), axis=1) if rule.scale_errors else xp.ones_like(error[:, 0])
    scale = xp.where(scale > 0, scale, xp.ones_like(scale))
    pull = error / scale[:, None]

    def relax(betas: tuple[float, ...]) -> list[Any]:
        return [block.relax(x, Nudge(beta * pull), free) for beta in betas]

    return _passed(contrast(block, x, free, "centred", rule.beta * unit(block), relax), scale, rule, batch)


def _passed(found: Contrast, scale: Array, rule: Chaining, batch: int) -> Passed:
    """What a contrast gives; samples with an uncertified state are left out.

    `scale` is what each sample's error was divided by.
    """
    xp = namespace(scale)
    counted = _counted(found, rule, scale)
    gradients = found.parameters(scale / batch, counted)
    terms = [(1.0, found.inputs())] if rule.form == "explicit" else found.inputs_apart()
    errors = [(sign, _held(counted, xp.astype(term, scale.dtype) * scale[:, None])) for sign, term in terms]
    return Passed(gradients, errors, xp.asarray(found.certified), found.kinks)


def _counted(found: Contrast, rule: Chaining, like: Array) -> Array:
    """(batch,) bool: the samples that enter gradients, as an array of the library of another."""
    return namespace(like).asarray(found.counted(rule.allow_nonconvex))


def _held(counted: Array, values: Array, otherwise: Array | None = None) -> Array:
    """(batch, n) values of the samples that count; zero, or others, for the rest."""
    xp = namespace(values)
    return xp.where(counted[:, None], values, xp.zeros_like(values) if otherwise is None else otherwise)


def _elastic_end(
    steps: Sequence[Step], gradients: list[Gradients], targets: Array, loss: ChainLoss, rule: Chaining
) -> tuple[int, Passed]:
    """The last block and the stages after it, with a nudge that follows (Algorithms 7 and 9).

    Returns the place before that block, and what it gives.
    """
    last = max((i for i, step in enumerate(steps) if is_block(step.element)), default=-1)
    if last < 0:
        raise UsageError("an elastic nudge needs a block in the chain")
    tail = [step.element for step in steps[last + 1 :]]
    if any(isinstance(stage, BatchNorm) for stage in tail):
        raise UsageError("an elastic nudge looks at one sample at a time; batch normalisation after it does not")
    block, x, free, _ = steps[last]
    batch = free.output.shape[0]

    def slopes(output: Array, counted: Array | None = None) -> tuple[list[Gradients], Array]:
        predictions, tail_steps = forward(tail, _shaped(block, output), True)
        _, error = loss.evaluate(predictions, targets)
        error = error if counted is None else _held(counted, error)
        found: list[Gradients] = []
        for step in reversed(tail_steps):
            own, error = step.element.vjp(step.memory, error)
            found.insert(0, own)
        return found, namespace(error).reshape(error, output.shape)

    def relax(betas: tuple[float, ...]) -> list[Any]:
        laws = [_scaled_law(lambda output: slopes(output)[1], beta) for beta in betas]
        return [block.relax(x, Nudge(law(free.output), follow=law), free) for law in laws]

    found = contrast(block, x, free, "centred", rule.beta * unit(block), relax)
    counted = _counted(found, rule, free.output)
    ends = [slopes(_held(counted, end.output, free.output), counted)[0] for end in (found.plus, found.minus)]
    for offset, pair in enumerate(zip(*ends, strict=True), start=last + 1):
        gradients[offset] = _combined([(0.5 / batch, own) for own in pair])
    ones = namespace(free.output).ones_like(free.output[:, 0])
    return last - 1, _passed(found, ones, rule, batch)


def _scaled_law(law: Callable[[Array], Array], factor: float) -> Callable[[Array], Array]:
    return lambda output: factor * law(output)


def _combined(parts: Sequence[tuple[float, Gradients]]) -> Gradients:
    """Σ coefficient · gradients."""
    return {name: sum(c * found[name] for c, found in parts) for name in parts[0][1]}


def _shaped(block: Element, output: Array) -> Array:
    """A block's output as input of the next stage: images where the last layer is one."""
    shape = getattr(block, "output_shape", None)
    return output if shape is None else namespace(output).reshape(output, (-1, *shape))
