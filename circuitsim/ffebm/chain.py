"""`Chain`: stages and blocks, one after the other, with a loss at the end, trained as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from circuitsim._arrays import Array, device, namespace, to_numpy
from circuitsim.blocks.propagation import DivergedError
from circuitsim.blocks.protocol import EnergyBlock
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.ffebm.chaining import Chaining, backward, forward, is_block
from circuitsim.ffebm.losses import loss_named
from circuitsim.ffebm.stages import Stage
from circuitsim.training.callbacks import Callback
from circuitsim.training.trainable import Arrays

#: Samples that pass through a chain at a time outside of training.
SLICE = 512


class Chain:
    """A feedforward-tied energy-based model: digital stages and energy-based blocks.

    A `circuitsim.training.Trainable`: batches are ``(x, targets)``.

    Parameters
    ----------
    elements : sequence of Stage or EnergyBlock
        In the order of the data.
    loss : {"cross-entropy", "mse"}
        Of the last element's outputs; whole-number targets are labels.
    chaining : Chaining, optional
        How gradients are computed.
    seed : int or None
        Source of new random parameters of all elements; None leaves them unchanged.
    dtype : dtype
        Precision of stages and layered blocks (circuits are solved in double precision).
    augment : callable, optional
        ``augment(x, rng) -> x`` on training batches.

    Attributes
    ----------
    parameters : dict of array
        ``number.name`` of every element's parameters; the elements' own memory.
    """

    def __init__(
        self,
        elements: Sequence[Any],
        loss: str = "cross-entropy",
        chaining: Chaining | None = None,
        seed: int | None = 0,
        dtype: Any = np.float32,
        augment: Callable[[Array, np.random.Generator], Array] | None = None,
    ) -> None:
        for number, element in enumerate(elements):
            if not isinstance(element, Stage | EnergyBlock):
                raise UsageError(
                    f"element {number} of the chain is neither a stage nor an energy-based block: {element!r}"
                )
        if not elements:
            raise UsageError("a chain needs at least one element")
        self.elements = tuple(elements)
        self.loss = loss_named(loss)
        self.chaining = chaining or Chaining()
        self.dtype = np.dtype(dtype)
        self.augment = augment
        if seed is not None:
            # One stream each, so that an element's draw does not depend on those before it.
            for number, element in enumerate(self.elements):
                if hasattr(element, "initialise"):
                    element.initialise(np.random.default_rng((seed, number)), self.dtype)

    def __repr__(self) -> str:
        lines = [f"  {number}: {element!r}" for number, element in enumerate(self.elements)]
        return "\n".join([f"Chain of {len(lines)}, {self.loss.name}, {self.dtype}:", *lines])

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters by ``number.name``."""
        return self._collected("parameters")

    def gradient(self, batch: tuple[Array, ...], rng: np.random.Generator) -> tuple[Arrays | None, dict[str, float]]:
        """The mean gradient of a batch ``(x, targets)``, by `chaining`.

        Parameters
        ----------
        batch : (array, array) or (array, array, array)
            Samples (batch, …), and labels (batch,) or targets like the outputs; weights of the samples (batch,).
        rng : numpy.random.Generator
            Source of the augmentation.

        Returns
        -------
        gradients : dict of array, or None
            None where no sample is certified to its tolerance, or the adjoint of a block does not exist because its
            state is no strict minimum.
        metrics : dict
            ``loss``; ``error``, the fraction of wrong labels (for labels); ``residual``, the worst of the free states;
            ``kink_share``, of all clamped units and diodes those that change between the phases;
            ``uncertified_fraction``, the share of samples left out because a block's
            state is not certified to its tolerance.

        Raises
        ------
        DivergedError
            ``allow_nonconvex``, and no sample has finite nudged states.
        """
        x, targets, *weights = (self._of_one_library(part) for part in batch)
        if weights and self.chaining.last == "elastic":
            raise UsageError("an elastic nudge takes no weights of samples; use last='stationary'")
        if self.augment is not None:
            x = self.augment(x, rng)
        output, steps = forward(self.elements, self._enter(x), training=True)
        for step in steps:
            if isinstance(step.element, Stage):
                step.element.observe(step.memory)
        xp = namespace(output)
        values, error = self.loss.evaluate(output, targets)
        if weights:
            weight = xp.astype(xp.asarray(weights[0]), error.dtype)
            values, error = values * weight, error * weight[:, None]
        relaxed = [step.memory for step in steps if is_block(step.element)]
        trusted = xp.ones(output.shape[0], dtype=xp.bool, device=device(output))
        for state in relaxed:
            trusted = trusted & xp.asarray(state.certified)
        error = error * xp.astype(trusted, error.dtype)[:, None]
        gradients, share = None, 0.0
        try:
            found, certified, kinks = backward(steps, error, targets, self.loss, self.chaining)
            trusted, share = trusted & certified, kinks.share
            if bool(xp.any(trusted)) or self.chaining.allow_nonconvex:
                gradients = {f"{number}.{name}": g for number, own in enumerate(found) for name, g in own.items()}
        except ConvergenceError as problem:
            # A block without an adjoint leaves the step out, and the caller counts it.
            if isinstance(problem, DivergedError):
                raise
        metrics = {"loss": float(xp.mean(values))}
        if _are_labels(targets):
            metrics["error"] = float(np.mean(_labels(output) != to_numpy(targets)))
        if relaxed:
            metrics["residual"] = max(float(xp.max(xp.asarray(state.residual))) for state in relaxed)
            metrics["kink_share"] = share
            metrics["uncertified_fraction"] = 1.0 - float(xp.mean(xp.astype(trusted, error.dtype)))
        return gradients, metrics

    def project(self) -> None:
        """Move every block's parameters to where they are allowed."""
        for element in self.elements:
            if is_block(element):
                element.project()

    def state_arrays(self) -> Arrays:
        """Running averages of the stages."""
        return self._collected("averages")

    def load_state_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take back what `state_arrays` gave."""
        mine = self.state_arrays()
        if set(mine) != set(arrays):
            raise UsageError(f"the averages {sorted(arrays)} do not belong to this chain, which has {sorted(mine)}")
        for name, array in mine.items():
            array[...] = arrays[name]

    def output(self, x: Array) -> Array:
        """(samples, outputs) of the last element, with the stages' running averages."""
        x = self._of_one_library(x)
        xp = namespace(x)
        parts = [forward(self.elements, self._enter(x[i : i + SLICE]), False)[0] for i in range(0, x.shape[0], SLICE)]
        return xp.concat(parts, axis=0)

    def predict(self, x: Array) -> Array:
        """Labels under cross-entropy, outputs otherwise."""
        output = self.output(x)
        return _labels(output) if self.loss.name == "cross-entropy" else output

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
        if _are_labels(targets):
            return float(np.mean(_labels(output) == targets))
        output, wanted = to_numpy(output), np.reshape(targets, output.shape)
        return 1.0 - float(np.sum((output - wanted) ** 2) / np.sum((wanted - wanted.mean(axis=0)) ** 2))

    def top(self, x: Array, labels: Array, count: int = 5) -> float:
        """Fraction of samples whose label is among the ``count`` largest outputs.

        Parameters
        ----------
        x : (samples, …) array
            Inputs of the first element.
        labels : (samples,) integer array
            Indices of outputs.
        count : int
            At least 1.

        Returns
        -------
        float
            In [0, 1].
        """
        output, labels = to_numpy(self.output(x)), to_numpy(labels)
        right = output[np.arange(len(labels)), labels]
        return float(np.mean((output > right[:, None]).sum(axis=1) < count))

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

        if not all(isinstance(array, np.ndarray) for array in self.parameters.values()):
            raise UsageError("fit trains numpy arrays; take the parameters back with chain.convert(to_numpy) before it")
        x, targets = to_numpy(x), to_numpy(targets)
        for name, array in (("inputs", x), ("targets", targets)):
            kind = array.dtype.kind
            if kind not in "biuf" or (kind == "f" and not np.isfinite(array).all()):
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
        rates = {}
        for number, element in enumerate(self.elements):
            for name, array in element.parameters.items():
                size = float(np.mean(np.abs(array))) if hasattr(element, "circuit") else 1.0
                rates[f"{number}.{name}"] = rate * (size or 1.0)
        return rates

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
        constructor as JSON values.
        """
        from circuitsim.ffebm.description import save

        save(self, Path(path))

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
        from circuitsim.ffebm.description import load

        return load(Path(path), elements)

    def _collected(self, attribute: str) -> dict[str, Any]:
        return {
            f"{number}.{name}": array
            for number, element in enumerate(self.elements)
            for name, array in getattr(element, attribute, {}).items()
        }

    def _of_one_library(self, array: Array) -> Array:
        """Tensors of other libraries and tables as numpy arrays where the parameters are numpy arrays."""
        ours = all(isinstance(own, np.ndarray) for element in self.elements for own in element.parameters.values())
        return to_numpy(array) if ours else array

    def _enter(self, x: Array) -> Array:
        """Samples in the chain's precision, unless the first stage takes them as they are stored."""
        first = self.elements[0]
        xp = namespace(x)
        dtype = getattr(xp, self.dtype.name)
        if getattr(first, "takes_stored", False) or x.dtype == dtype:
            return x
        return xp.astype(x, dtype)


def _labels(output: Array) -> np.ndarray:
    return np.argmax(to_numpy(output), axis=1)


def _are_labels(targets: Array) -> bool:
    return targets.ndim == 1 and bool(namespace(targets).isdtype(targets.dtype, "integral"))
