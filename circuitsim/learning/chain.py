"""`Chain`: stages and blocks, one after the other, with a loss at the end, trained as one by a learning rule.

The only model of this package that is trained by gradients: a circuit is a chain of one block (`Learner`), a deep
Hopfield network one of a stage and a block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from circuitsim._arrays import Array, namespace, to_numpy
from circuitsim.blocks.protocol import Arrays, EnergyBlock, State
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.learning.chaining import Passed, Step, backward, forward, is_block
from circuitsim.learning.estimate import (
    CrossEntropy,
    DivergedError,
    Estimate,
    Loss,
    Rule,
    are_classes,
    describe_loss,
    error,
    loss_named,
    measured,
)
from circuitsim.learning.rules import Chaining
from circuitsim.learning.stages import Stage, build, describe_chain
from circuitsim.training.checkpoint import (
    CheckpointError,
    checked,
    copy_into,
    load_checkpoint,
    pack,
    save_checkpoint,
    unpack,
)
from circuitsim.training.history import Callback

#: Samples that pass through a chain at a time outside of training.
SLICE = 512

UNCERTIFIED = ("omit", "skip", "stop")


class Chain:
    """Digital stages and energy-based blocks, one after the other; a single block is a chain of one.

    A `circuitsim.training.Trainable`: batches are ``(x, targets)``.

    Parameters
    ----------
    elements : sequence of Stage or EnergyBlock
        In the order of the data.
    loss : {"cross-entropy", "mse"} or Loss
        Of the last element's outputs; whole-number targets are labels.
    rule : Rule, optional
        How blocks compute gradients (`circuitsim.learning.rules`); `Chaining` with its defaults if not given.
    seed : int or None
        Source of new random parameters of all elements; None leaves them unchanged.
    dtype : dtype
        Precision of stages and layered blocks (circuits are solved in double precision).
    augment : callable, optional
        ``augment(x, rng) -> x`` on training batches.
    uncertified : {"omit", "skip", "stop"}
        Treatment of a batch with an uncertified state: leave its sample out of the gradient, skip the step (the trainer
        counts it), or raise `ConvergenceError`. Such a state never enters a gradient; with ``skip`` and ``stop`` none
        is an output either.
    warm : int
        Number of samples of a batch that start at the nudged states of the previous batch, in order; layered blocks
        only.
    fingerprint : bytes
        Stored with checkpoints; a run resumes only with the same (of circuit and data).

    Attributes
    ----------
    parameters : dict of array
        ``number.name`` of every element's parameters (``name`` where only one element has any); the elements' own
        memory.

    Notes
    -----
    Metrics of a batch, where samples are not omitted over those whose free states are certified: ``loss``; ``error``
    (fraction of wrong classes, or mean squared distance); with blocks ``residual`` (the worst of the free states),
    ``kink_share`` (of all clamped units and diodes those that change between the phases; of derivatives of the free
    state those at a kink) and ``uncertified_fraction`` (of the samples). Where the only block is the last element also
    the bracket ``lower`` ≤ loss ≤ ``upper`` if the rule measures it, ``beta`` if the rule chooses it, ``clamped``
    (parameters of a circuit on a bound); of a block with sweeps ``nudged_residual`` (the worst of the nudged states)
    and ``sweeps`` (of the free phase), of others, in place of residuals, ``certificate`` (the worst of all states) and
    ``kinks`` (a sample).
    """

    def __init__(
        self,
        elements: Sequence[Any],
        loss: str | Loss = "cross-entropy",
        rule: Rule | None = None,
        seed: int | None = 0,
        dtype: Any = np.float32,
        augment: Callable[[Array, np.random.Generator], Array] | None = None,
        uncertified: str = "omit",
        warm: int = 0,
        fingerprint: bytes = b"",
    ) -> None:
        for number, element in enumerate(elements):
            if not isinstance(element, Stage | EnergyBlock):
                raise UsageError(
                    f"element {number} of the chain is neither a stage nor an energy-based block: {element!r}"
                )
        if not elements:
            raise UsageError("a chain needs at least one element")
        if uncertified not in UNCERTIFIED:
            raise UsageError(f"uncertified states are handled by omit, skip or stop, not {uncertified!r}")
        self.elements = tuple(elements)
        self.loss = loss_named(loss)
        self.rule = rule or Chaining()
        self.dtype = np.dtype(dtype)
        self.augment, self.uncertified = augment, uncertified
        self.fingerprint = fingerprint
        if seed is not None:
            # One stream each, so that an element's draw does not depend on those before it.
            for number, element in enumerate(self.elements):
                if hasattr(element, "initialise"):
                    element.initialise(np.random.default_rng((seed, number)), self.dtype)
        self._last = self.block.resting(warm).layers if warm else ()

    def __repr__(self) -> str:
        lines = [f"  {number}: {element!r}" for number, element in enumerate(self.elements)]
        return "\n".join([f"Chain of {len(lines)}, {describe_loss(self.loss)}, {self.dtype}:", *lines])

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters by name."""
        return self._named([element.parameters for element in self.elements])

    @property
    def block(self) -> Any:
        """The last block."""
        blocks = [element for element in self.elements if is_block(element)]
        if not blocks:
            raise UsageError("this chain has no block")
        return blocks[-1]

    def gradient(self, batch: tuple[Array, ...], rng: np.random.Generator) -> tuple[Arrays | None, dict[str, float]]:
        """The mean gradient of a batch by the rule, and its metrics.

        Parameters
        ----------
        batch : (array, array) or (array, array, array)
            Samples (batch, …), and labels (batch,) or targets like the outputs; weights of the samples (batch,).
        rng : numpy.random.Generator
            Source of the augmentation.

        Returns
        -------
        gradients : dict of array, or None
            None where no sample (or, unless samples are omitted, not every sample) is certified to its tolerance, or
            where samples are omitted and the adjoint of a block does not exist because its state is no strict minimum.
        metrics : dict of str to float
            See the notes of the class.

        Raises
        ------
        ConvergenceError
            A state is not certified and ``uncertified`` is stop; a rule that does not converge, unless samples are
            omitted; `DivergedError` where uncertified samples count and none has finite nudged states.
        RuleError
            A block or a loss that the rule does not fit.
        """
        x, targets, *weights = (self._of_one_library(part) for part in batch)
        if self.augment is not None:
            x = self.augment(x, rng)
        begin = self.block.begun([layer[: x.shape[0]] for layer in self._last]) if self._last else None
        output, steps = forward(self.elements, self._enter(x), True, begin)
        xp, omits = namespace(output), self.uncertified == "omit"
        weight = xp.ones_like(output[:, 0]) if not weights else xp.astype(xp.asarray(weights[0]), output.dtype)
        good = trusted = self._trusted(output, steps)
        passed = None
        if omits or bool(xp.all(trusted)):
            try:
                counted = weight * xp.astype(trusted, weight.dtype)
                passed = backward(steps, output, targets, self.loss, counted, self.rule)
                good = trusted & passed.certified
            except ConvergenceError as problem:
                # A block without an adjoint leaves the step out, and the caller counts it.
                if not omits or isinstance(problem, DivergedError):
                    raise
        shown = xp.ones_like(trusted) if omits else trusted
        arrays = map(to_numpy, (output, targets, weight, shown, good))
        metrics = self._metrics(steps, passed, *arrays)
        if not omits and not bool(xp.all(good)):
            passed = None
            if self.uncertified == "stop":
                raise ConvergenceError(
                    f"{int(np.sum(~to_numpy(good)))} of {output.shape[0]} samples have no state certified to the "
                    "tolerance; use a larger --tolerance, or skip such steps with --uncertified skip"
                )
        if not bool(xp.any(good)) and not getattr(self.rule, "allow_nonconvex", False):
            passed = None
        if self._last:
            self._remember(steps[-1].memory, passed and passed.estimate, good)
        return (passed and self._named(passed.gradients)), metrics

    def _metrics(
        self,
        steps: Sequence[Step],
        passed: Passed | None,
        output: np.ndarray,
        targets: np.ndarray,
        weight: np.ndarray,
        shown: np.ndarray,
        good: np.ndarray,
    ) -> dict[str, float]:
        """See the notes of the class; zero without any certified sample."""
        share = (weight * shown).astype(np.float64)

        def mean(values: np.ndarray) -> float:
            return float(np.where(shown, values, 0.0) @ share) / (share.sum() or 1.0)

        def worst(states: Sequence[Any], among: np.ndarray) -> float:
            return max((float(to_numpy(s.residual)[among].max(initial=0.0)) for s in states), default=0.0)

        output = np.where(shown[:, None], output, 0.0)
        values = self.loss.value(output, targets)
        loss, wrong = {"loss": mean(values)}, {"error": mean(error(output, targets))}
        relaxed = [step for step in steps if is_block(step.element)]
        if not relaxed:
            return loss | wrong
        states = {"residual": worst([step.memory for step in relaxed], shown)}
        changes = {"kink_share": 0.0 if passed is None else passed.kinks.share}
        rest = {"uncertified_fraction": 1.0 - float(good.mean())}
        if len(relaxed) == 1 and relaxed[0] is steps[-1]:
            block, _, free, _ = steps[-1]
            estimate = (passed and passed.estimate) or Estimate({}, None, free.residual, good)
            states["nudged_residual"] = worst(estimate.nudged, good)
            if hasattr(free, "sweeps"):
                rest["sweeps"] = float(free.sweeps)
            else:
                kinks = 0.0 if estimate.kinks is None else float(estimate.kinks.changes.mean())
                states = {"certificate": max(states.values()), "kinks": kinks}
            # The columns must be the same on every call.
            for side in getattr(self.rule, "sides", ()) if getattr(block, "has_energy", True) else ():
                bound = getattr(estimate, side)
                loss[side] = loss["loss"] if bound is None else mean(np.where(good, bound, values))
            if getattr(self.rule, "beta", None) == "auto":
                changes["beta"] = estimate.beta or 0.0
            if hasattr(block, "at_bound"):
                changes["clamped"] = float(block.at_bound())
        return loss | wrong | states | changes | rest

    def _trusted(self, output: Array, steps: Sequence[Step]) -> Array:
        """(batch,) bool: the free states of all blocks are certified."""
        trusted = output[:, 0] == output[:, 0]
        for step in steps:
            if is_block(step.element):
                trusted = trusted & namespace(output).asarray(step.memory.certified)
        return trusted

    def _remember(self, free: State, estimate: Estimate | None, good: Array) -> None:
        """Where the next batch starts: the last nudged states, the free one where a sample has none that counts."""
        end: Any = estimate.nudged[0] if estimate is not None and estimate.nudged else free
        used = end.finite if getattr(self.rule, "allow_nonconvex", False) else good
        for memory, after, before in zip(self._last, end.layers, free.layers):  # type: ignore[attr-defined]
            memory[: len(before)] = np.where(used[:, None], after, before)

    def project(self) -> None:
        """Move every block's parameters to where they are allowed."""
        for element in self.elements:
            if is_block(element):
                element.project()

    def state_arrays(self) -> Arrays:
        """Running averages of the stages, the states at which the next batch starts, the fingerprint."""
        found = _held(self.elements, "averages")
        found |= {f"last{layer}": memory for layer, memory in enumerate(self._last, start=1)}
        if self.fingerprint:
            found["fingerprint"] = np.frombuffer(self.fingerprint, dtype=np.uint8).copy()
        return found

    def load_state_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take back what `state_arrays` gave.

        Raises
        ------
        CheckpointError
            They are those of another chain, circuit or data.
        """
        if arrays.get("fingerprint", np.zeros(0)).tobytes() != self.fingerprint:
            raise CheckpointError("the deck or the data have changed since the run to resume was begun")
        copy_into(self.state_arrays(), arrays, "states")

    def relax(self, x: Array) -> Any:
        """The free state of the last block at samples (samples, …), with the stages' running averages."""
        steps = forward(self.elements, self._enter(self._of_one_library(x)), False)[1]
        return [step.memory for step in steps if is_block(step.element)][-1]

    def output(self, x: Array) -> Array:
        """(samples, outputs) of the last element, with the stages' running averages.

        Raises
        ------
        ConvergenceError
            A sample has no certified state, unless samples are omitted.
        """
        return self._whole(x)[0]

    def _whole(self, x: Array) -> tuple[Array, float | None]:
        """`output`, and the worst residual of all blocks; None without blocks."""
        x = self._of_one_library(x)
        parts, residuals = [], []
        for start in range(0, max(1, x.shape[0]), SLICE):
            output, steps = forward(self.elements, self._enter(x[start : start + SLICE]), False)
            wrong = 0 if self.uncertified == "omit" else int(np.sum(~to_numpy(self._trusted(output, steps))))
            if wrong:
                raise ConvergenceError(f"{wrong} samples have no operating point certified to the tolerance")
            parts.append(output)
            residuals += [to_numpy(step.memory.residual) for step in steps if is_block(step.element)]
        worst = float(np.concatenate(residuals).max(initial=0.0)) if residuals else None
        return namespace(x).concat(parts, axis=0), worst

    def predict(self, x: Array) -> Array:
        """Labels under cross-entropy, outputs otherwise."""
        output = self.output(x)
        return _labels(output) if isinstance(self.loss, CrossEntropy) else output

    def evaluate(self, x: Array, targets: Array) -> dict[str, float]:
        """Means over a data set.

        Parameters
        ----------
        x : (samples, …) array
            Inputs of the first element.
        targets : array
            Labels (samples,), or values of the shape of the outputs.

        Returns
        -------
        dict of str to float
            ``loss``; ``error``, the fraction of wrong labels or the mean squared distance; of more than 20 classes
            ``top5_error``; with blocks ``residual``, the worst of their states.

        Raises
        ------
        ConvergenceError
            See `output`.
        """
        output, residual = self._whole(x)
        found = measured(self.loss, output, self._of_one_library(targets))
        return found if residual is None else {**found, "residual": residual}

    def score(self, x: Array, targets: Array) -> float:
        """Fraction of right labels; for other targets the coefficient of determination R².

        Parameters
        ----------
        x : (samples, …) array
            Inputs of the first element.
        targets : array
            Whole-number labels (samples,), or values of the shape of the outputs.

        Returns
        -------
        float
            In [0, 1] for labels; R² is at most 1.
        """
        output, targets = self.output(x), to_numpy(targets)
        if are_classes(targets):
            return float(np.mean(_labels(output) == targets))
        output, wanted = to_numpy(output), np.reshape(targets, output.shape)
        return 1.0 - float(np.mean((output - wanted) ** 2) / np.mean(wanted.var(axis=0)))

    def fit(
        self,
        x: Array,
        targets: Array,
        epochs: int = 10,
        batch: int = 32,
        rate: float = 1e-3,
        seed: int = 0,
        callbacks: Sequence[Callback] = (),
        sample_weight: Array | None = None,
        **plan: Any,
    ) -> Chain:
        """Train with Adam (or ``optimizer=``) and a cosine from `rate` to zero (or ``schedule=``).

        Parameters
        ----------
        x : array (samples, …)
            Of any array library; training runs in numpy, on copies of tensors.
        targets : array
            Labels, or rows like the outputs.
        epochs, batch : int
            Passes over the samples, and samples in a step.
        rate : float
            Of Adam in the first step (see `rates`).
        seed : int
            Source of the order of the samples and of the augmentation.
        callbacks : sequence of callable
            Called with the history after each of its rows; one that returns True ends the training.
        sample_weight : array (samples,), optional
            Factor on each sample's loss.
        **plan
            Further arguments of `circuitsim.training.TrainingPlan`.

        Raises
        ------
        UsageError
            The chain's parameters are no numpy arrays (see `convert`); inputs or targets that are no finite numbers.
        ConvergenceError
            No step was taken: all states are uncertified.
        """
        from circuitsim.training import Adam, Cosine, Trainer, TrainingPlan

        if not self._is_numpy:
            raise UsageError("fit trains numpy arrays; take the parameters back with chain.convert(to_numpy) before it")
        x, targets = to_numpy(x), to_numpy(targets)
        for name, array in (("inputs", x), ("targets", targets)):
            if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
                raise UsageError(f"{name} must be finite numbers; labels are 0, 1, … (ChainClassifier takes any names)")
        settings = {"optimizer": Adam(self.rates(rate)), "schedule": Cosine(max(1, epochs)), **plan}
        made = TrainingPlan(epochs, batch, seed, **settings)
        data = (x, targets) if sample_weight is None else (x, targets, to_numpy(sample_weight))
        outcome = Trainer(self, data, made, callbacks=callbacks).train()
        self.history = outcome.history
        outcome.require_steps()
        return self

    def rates(self, rate: float) -> dict[str, float]:
        """A learning rate for each parameter: `rate`, times their mean size for the parameters of circuits.

        Adam's steps have the size of the rate, and a conductance in siemens is not of order 1.
        """

        def scaled(element: Any, array: Array) -> float:
            size = float(np.mean(np.abs(array))) if hasattr(element, "circuit") else 1.0
            return rate * (size or 1.0)

        return self._named([{n: scaled(e, a) for n, a in e.parameters.items()} for e in self.elements])

    def convert(self, convert: Callable[[Any], Any]) -> Chain:
        """Replace every array the stages and blocks hold, for example by ``torch.asarray``, in place; returns self."""
        for element in self.elements:
            for name in ("parameters", "averages"):
                arrays = getattr(element, name, {})
                for key in list(arrays):
                    arrays[key] = convert(arrays[key])
        return self

    def save(self, path: Path | str) -> None:
        """Write description, parameters and averages as one file, read back by `load`; no pickle.

        A stage or block of your own needs a name ``kind`` in its class and ``options``, the arguments of its
        constructor as JSON values. A rule of your own is not in the file.
        """
        save_checkpoint(path, chain_arrays(self), {"kind": "chain", "chain": describe_chain(self)})

    @classmethod
    def load(cls, path: Path | str, elements: Sequence[type] = ()) -> Chain:
        """Read what `save` wrote.

        Parameters
        ----------
        path : path
            The file.
        elements : sequence of type
            Classes of stages and blocks of your own in it.

        Raises
        ------
        CheckpointError
            The file is missing, damaged, or holds something else.
        """
        arrays, facts = load_checkpoint(path, kind="chain")
        with checked(path):
            return restored_chain(arrays, facts["chain"], elements)

    def _named(self, groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Values by parameter, one mapping an element, as one mapping."""
        alone = sum(bool(element.parameters) for element in self.elements) == 1
        return {name: value for group in groups for name, value in group.items()} if alone else _numbered(groups)

    @property
    def _is_numpy(self) -> bool:
        return all(isinstance(array, np.ndarray) for array in self.parameters.values())

    def _of_one_library(self, array: Array) -> Array:
        """Tensors of other libraries and tables as numpy arrays where the parameters are numpy arrays."""
        return to_numpy(array) if self._is_numpy else array

    def _enter(self, x: Array) -> Array:
        """Samples in the chain's precision, unless the first stage takes them as they are stored."""
        if getattr(self.elements[0], "takes_stored", False):
            return x
        xp = namespace(x)
        return xp.astype(x, getattr(xp, self.dtype.name), copy=False)


def Learner(block: Any, rule: Rule, loss: Loss, uncertified: str = "skip", fingerprint: bytes = b"") -> Chain:
    """A chain of one block, in double precision, in which no uncertified state is used.

    Parameters
    ----------
    block : EnergyBlock
    rule : Rule
    loss : Loss
    uncertified : {"skip", "stop"}
        See `Chain`.
    fingerprint : bytes
        See `Chain`.
    """
    return Chain([block], loss, rule, None, np.float64, uncertified=uncertified, fingerprint=fingerprint)


def build_chain(
    elements: Sequence[Mapping[str, Any]],
    loss: Any = "cross-entropy",
    chaining: Mapping[str, Any] | None = None,
    dtype: str = "float32",
    seed: int | None = 0,
    own: Sequence[type] = (),
) -> Chain:
    """The chain that tables describe, its parameters drawn from a seed.

    Parameters
    ----------
    elements : sequence of mapping
        One table an element (`build`), in the order of the data.
    loss : {"cross-entropy", "mse"} or mapping
        Of the last element's outputs.
    chaining : mapping, optional
        Arguments of `Chaining` by name.
    dtype : {"float32", "float64"}
        Precision of stages and layered blocks.
    seed : int or None
        Source of the parameters; None leaves them as the constructors made them.
    own : sequence of type
        Classes of your own, as in `build`.

    Raises
    ------
    UsageError
        A table, a loss, a rule or a type that does not exist; the message names the element.
    """
    if dtype not in ("float32", "float64"):
        raise UsageError(f"dtype must be float32 or float64, not {dtype}")
    made = []
    for number, table in enumerate(elements):
        try:
            made.append(build(table, own))
        except UsageError as problem:
            raise UsageError(f"element {number}: {problem}") from problem
    return Chain(made, loss, Chaining(**(chaining or {})), seed, np.dtype(dtype))


def chain_arrays(chain: Chain) -> Arrays:
    """Parameters and averages of a chain."""
    return pack(
        **{
            group: {name: to_numpy(array) for name, array in _held(chain.elements, group).items()}
            for group in ("parameters", "averages")
        }
    )


def restored_chain(
    arrays: Mapping[str, np.ndarray], description: Mapping[str, Any], elements: Sequence[type] = ()
) -> Chain:
    """The chain of `describe_chain` with the arrays of `chain_arrays`."""
    chain = build_chain(**description, own=elements)
    for name in ("parameters", "averages"):
        copy_into(_held(chain.elements, name), unpack(arrays, name), name)
    return chain


def _numbered(groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {f"{number}.{name}": value for number, group in enumerate(groups) for name, value in group.items()}


def _held(elements: Sequence[Any], name: str) -> dict[str, Any]:
    return _numbered([getattr(element, name, {}) for element in elements])


def _labels(output: Array) -> np.ndarray:
    return np.argmax(to_numpy(output), axis=1)
