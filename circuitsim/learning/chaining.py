"""Errors backwards through a chain: backpropagation in stages, a learning rule in each block.

All errors belong to the sum of the samples' losses; what is returned is the mean gradient of a batch. The energy of a
block is E(s; θ, x), x = F(s of the block before): Nest & Ernoult (2024), Theorem 3.1. `forward` is their inference
(Algorithms 1 and 8), `backward` their chaining of gradients (Algorithm 2 in the implicit form, 4 in the explicit one),
`through_block` their BlockGradient (Algorithm 10).

A block of one layer has no coupling (U = 0): its state is σ(x), and a chain of such blocks is a feedforward network
(Lemma A.2). Nudged it is σ(x ∓ β δs), so that Algorithms 2 and 4 become Algorithms 3 and 5; the code is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from circuitsim._arrays import Array, namespace
from circuitsim.blocks.protocol import Kinks, State
from circuitsim.errors import RuleError, UsageError
from circuitsim.learning.estimate import ConstantCurrent, Estimate, GradientProblem, Loss, Pull, Rule
from circuitsim.learning.stages import BatchNorm, Stage

Element = Any
Gradients = dict[str, Array]


class Step(NamedTuple):
    """One element of a forward pass.

    Attributes
    ----------
    element : Stage or EnergyBlock
    x : array
        What came in; rows, for a block.
    memory : object
        A stage's pullback, or a block's free state.
    shape : tuple of int
        Of the output.
    """

    element: Element
    x: Array
    memory: Any
    shape: tuple[int, ...]


class Passed(NamedTuple):
    """A backward pass.

    Attributes
    ----------
    gradients : list of dict
        Of the mean loss, in the order of the elements.
    certified : (batch,) bool array
        Samples of which every state is certified; the blocks before a state that is not leave that sample out.
    kinks : Kinks
        Units of all blocks whose bounds (or diodes whose states) change between the free and the nudged states.
    estimate : Estimate or None
        Of the last block.
    errors : dict of int to array
        ∂(sum of losses)/∂(a block's output) by the block's place, where the rule was given it.
    """

    gradients: list[Gradients]
    certified: Array
    kinks: Kinks
    estimate: Estimate | None
    errors: dict[int, Array]


def is_block(element: Element) -> bool:
    """Whether an element of a chain is a block, not a stage."""
    return not isinstance(element, Stage)


def forward(
    elements: Sequence[Element], x: Array, training: bool, begin: State | None = None
) -> tuple[Array, list[Step]]:
    """Forward pass of a batch (Algorithms 1 and 8); returns the output and the steps.

    ``begin`` is where the relaxation of blocks starts.
    """
    steps = []
    for element in elements:
        if is_block(element):
            xp = namespace(x)
            x = xp.reshape(x, (x.shape[0], -1))
            memory = element.relax(x, None, begin)
            # Circuits are solved in double precision for every precision of the chain.
            y = xp.astype(memory.output, x.dtype)
        else:
            y, memory = element.forward(x, training)
        steps.append(Step(element, x, memory, tuple(y.shape)))
        x = _shaped(element, y)
    return x, steps


def backward(steps: Sequence[Step], output: Array, targets: Array, loss: Loss, weight: Array, rule: Rule) -> Passed:
    """Mean gradient of the loss with respect to each element's parameters.

    Parameters
    ----------
    steps : sequence of Step
        Of `forward`.
    output : array (batch, outputs)
        Of `forward`.
    targets : array
        As the loss takes them.
    loss : Loss
    weight : array (batch,)
        Factor on each sample's loss; zero leaves it out.
    rule : Rule
        Of the blocks. The last one is nudged by the loss itself where the nudge follows the state, or where no stage
        comes after it (unless the rule scales errors); others by the error that comes back to them.
    """
    xp, batch = namespace(output), output.shape[0]
    last, of_output = _seen(steps, loss, rule)
    first = min(next((i for i, step in enumerate(steps) if step.element.parameters), len(steps)), last)
    gradients: list[Gradients] = [{} for _ in steps]
    found, given = dict[int, Estimate](), dict[int, Array]()
    # (coefficient, cotangent): one in the explicit form, one for each state in the implicit form.
    errors: list[tuple[float, Any]] = [(1.0, loss.gradient(output, targets) * weight[:, None])]
    for index in range(min(last, len(steps) - 1), first - 1, -1):
        step = steps[index]
        if not is_block(step.element):
            pulled = [(c, step.memory(xp.reshape(e, step.shape))) for c, e in errors]
            names = pulled[0][1][0]
            gradients[index] = {name: sum(c / batch * own[name] for c, (own, _) in pulled) for name in names}
            errors = [(c, back) for c, (_, back) in pulled]
            continue
        if index == last:
            factor = weight
            problem = GradientProblem(step.element, step.x, targets, of_output, step.memory, weight / batch)
            estimate = rule.estimate(problem)
        else:
            given[index] = xp.reshape(sum(c * e for c, e in errors), step.shape)
            estimate, factor = through_block(step, given[index], rule)
        found[index], gradients[index] = estimate, dict(estimate.parameters)
        if index == first:
            break
        if estimate.inputs is None:
            raise RuleError(
                f"{type(rule).__name__} gives no derivative by a block's inputs: nothing before it can learn"
            )
        terms = estimate.apart or [(1.0, estimate.inputs)]
        errors = [(c, xp.astype(term, factor.dtype) * factor[:, None]) for c, term in terms]
    if isinstance(of_output, Behind):
        gradients[last + 1 :] = of_output.gradients(found[last], targets, weight / batch)
    trusted, kinks = xp.ones_like(weight) > 0, [e.kinks for e in found.values() if e.kinks is not None]
    for estimate in found.values():
        trusted = trusted & xp.asarray(estimate.certified)
    total = Kinks(sum((k.changes for k in kinks), np.zeros(batch, np.int64)), sum(k.switches for k in kinks))
    return Passed(gradients, trusted, total, found[max(found)] if found else None, given)


def through_block(step: Step, error: Array, rule: Rule) -> tuple[Estimate, Array]:
    """A block's estimate from the error at its output (Algorithm 10), and the factor on its derivatives by the inputs.

    A sample whose free state is not certified is left out.
    """
    xp = namespace(error)
    block, x, free, _ = step
    factor = xp.astype(xp.asarray(free.certified), error.dtype)
    if getattr(rule, "scale_errors", False):
        scale = xp.max(xp.abs(error), axis=1)
        scale = xp.where(scale > 0, scale, xp.ones_like(scale))
        error, factor = error / scale[:, None], factor * scale
    problem = GradientProblem(block, x, error, Pull(error), free, factor / error.shape[0])
    return rule.estimate(problem), factor


class Behind:
    """The loss as a function of a block's output, through the stages behind it."""

    quadratic = False

    def __init__(self, block: Element, tail: Sequence[Element], loss: Loss) -> None:
        if any(isinstance(stage, BatchNorm) for stage in tail):
            raise UsageError("an elastic nudge looks at one sample at a time; batch normalisation after it does not")
        self.block, self.tail, self.loss = block, tail, loss

    @property
    def gradient_lipschitz(self) -> float:
        """Not known."""
        raise RuleError("a block without sweeps cannot follow a loss behind stages; nudge it by a constant current")

    def value(self, output: Array, target: Array) -> Array:
        """(batch,) losses."""
        return self.loss.value(forward(self.tail, _shaped(self.block, output), True)[0], target)

    def gradient(self, output: Array, target: Array) -> Array:
        """(batch, outputs) ∂loss/∂output."""
        return self._pulled(output, target, None)[1]

    def gradients(self, estimate: Estimate, targets: Array, weight: Array) -> list[Gradients]:
        """Those of the stages: the mean over the nudged states of the samples that count in the block's."""
        xp, count = namespace(weight), len(estimate.nudged)
        counted, free = xp.asarray(estimate.counted), estimate.states[0].output
        held = xp.concat([xp.where(counted[:, None], state.output, free) for state in estimate.nudged])
        share = weight * xp.astype(counted, weight.dtype) / count
        return self._pulled(held, xp.concat([targets] * count), xp.concat([share] * count))[0]

    def _pulled(self, output: Array, target: Array, weight: Array | None) -> tuple[list[Gradients], Array]:
        """Gradients of the stages, and by the output."""
        predictions, steps = forward(self.tail, _shaped(self.block, output), True)
        error = self.loss.gradient(predictions, target)
        error = error if weight is None else error * weight[:, None]
        found: list[Gradients] = []
        for step in reversed(steps):
            own, error = step.memory(error)
            found.insert(0, own)
        return found, namespace(error).reshape(error, output.shape)


def _seen(steps: Sequence[Step], loss: Loss, rule: Rule) -> tuple[int, Loss]:
    """The place of the block that sees the loss itself (beyond all steps: none does), and the loss as it sees it."""
    last = max((i for i, step in enumerate(steps) if is_block(step.element)), default=-1)
    follows = not isinstance(getattr(rule, "nudging", ConstantCurrent()), ConstantCurrent)
    if follows and last < 0:
        raise UsageError("an elastic nudge needs a block in the chain")
    tail = [step.element for step in steps[last + 1 :]]
    if follows and tail:
        return last, Behind(steps[last].element, tail, loss)
    alone = last >= 0 and not tail and (follows or not getattr(rule, "scale_errors", False))
    return last if alone else len(steps), loss


def _shaped(block: Element, output: Array) -> Array:
    """A block's output as input of the next stage: images where the last layer is one."""
    shape = getattr(block, "output_shape", None)
    return output if shape is None else namespace(output).reshape(output, (-1, *shape))
