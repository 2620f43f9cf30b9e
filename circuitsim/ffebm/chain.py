"""`Chain`: stages and blocks, one after the other, with a loss at the end, trained as one; as plain data too.

Descriptions are contents of TOML files and of saved models.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from circuitsim._arrays import Array, device, namespace, to_numpy
from circuitsim.blocks.convolutional import ConvolutionalHopfieldBlock
from circuitsim.blocks.hopfield import DeepHopfieldBlock
from circuitsim.blocks.layered import Sweeps
from circuitsim.blocks.propagation import DivergedError
from circuitsim.blocks.protocol import EnergyBlock
from circuitsim.blocks.resistive import ResistiveBlock
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.ffebm.chaining import Chaining, backward, forward, is_block
from circuitsim.ffebm.images import BatchNorm, Conv2d, MaxPool, SoftPool
from circuitsim.ffebm.losses import loss_named
from circuitsim.ffebm.stages import Activation, Flatten, Linear, Normalise, Readout, Stage
from circuitsim.training.callbacks import Callback
from circuitsim.training.checkpoint import CheckpointError, copy_into, load_checkpoint, pack, save_checkpoint, unpack
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

        save_checkpoint(Path(path), chain_arrays(self), {"kind": "chain", "chain": describe_chain(self)})

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

        arrays, facts = load_checkpoint(Path(path))
        if facts.get("kind") != "chain":
            raise CheckpointError(f"{path} does not hold a chain")
        try:
            return restored_chain(arrays, facts["chain"], elements)
        except (KeyError, TypeError) as problem:
            raise CheckpointError(f"the description in {path} is damaged ({problem})") from problem

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


#: What a description's ``kind`` may be, besides ``circuit``.
KINDS: dict[str, Any] = {
    element.kind: element
    for element in (
        Linear,
        Readout,
        Flatten,
        Normalise,
        Activation,
        Conv2d,
        BatchNorm,
        MaxPool,
        SoftPool,
        DeepHopfieldBlock,
        ConvolutionalHopfieldBlock,
        ResistiveBlock,
    )
}


def describe(element: Any) -> dict[str, Any]:
    """An element as a table of plain values.

    Raises
    ------
    UsageError
        It is of a kind that has no description.
    """
    kind, options = getattr(element, "kind", None), getattr(element, "options", None)
    if isinstance(kind, str) and isinstance(options, Mapping):
        if kind in (*KINDS, "circuit") and not isinstance(element, KINDS.get(kind, ())):
            raise UsageError(f"{type(element).__name__} has the kind {kind!r} of another element: give it its own")
        return {"kind": kind, **options}
    if hasattr(element, "circuit") and hasattr(element, "roles"):
        from circuitsim.netlist import dumps

        return {"kind": "circuit", "deck": dumps(element.trained(), element.roles), "tolerance": element.tolerance}
    raise UsageError(
        f"{type(element).__name__} cannot be described in a file: it needs 'kind', a name in its class, and 'options', "
        "the arguments of its constructor as JSON values"
    )


def build(description: Mapping[str, Any], elements: Sequence[type] = ()) -> Any:
    """The element a table describes; ``elements`` are classes besides those of `KINDS`.

    Parameters
    ----------
    description : mapping of str to object
        ``kind``, and the arguments of its constructor by name; of a circuit ``deck`` and ``tolerance``.
    elements : sequence of type
        Classes of your own, each with a name ``kind``.

    Returns
    -------
    Stage or EnergyBlock

    Raises
    ------
    UsageError
        An unknown kind, an option it does not have, or one it needs.
    """
    options = dict(description)
    kind = options.pop("kind", None)
    if kind == "circuit":
        return _circuit(options)
    kinds = {**{getattr(element, "kind", element.__name__): element for element in elements}, **KINDS}
    if kind not in kinds:
        raise UsageError(
            f"there is no kind of element '{kind}'; there are {', '.join([*kinds, 'circuit'])}. Name a class of your "
            "own in elements=[...]"
        )
    allowed = inspect.signature(kinds[kind].__init__).parameters
    open_ended = inspect.Parameter.VAR_KEYWORD
    known = [name for name, a in allowed.items() if name not in ("self", "rng", "dtype") and a.kind != open_ended]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise UsageError(f"'{unknown[0]}' is not an option of {kind}; it has {', '.join(known) or 'none'}")
    missing = [name for name in known if allowed[name].default is inspect.Parameter.empty and name not in options]
    if missing:
        raise UsageError(f"{kind} needs {', '.join(missing)}")
    try:
        if isinstance(options.get("sweeps"), Mapping):
            options["sweeps"] = Sweeps(**options["sweeps"])
        return kinds[kind](**options)
    except (TypeError, ValueError, AttributeError) as problem:
        raise UsageError(f"{kind} cannot be made from {options}: {problem}") from problem


def _circuit(options: dict[str, Any]) -> Any:
    from circuitsim.blocks.circuit import CircuitBlock
    from circuitsim.netlist import loads
    from circuitsim.netlist.roles import read_roles

    text = options.pop("deck", None)
    tolerance = options.pop("tolerance", None)
    if not isinstance(text, str) or options:
        raise UsageError(
            f"a circuit is described by deck (its text) and tolerance, not {', '.join(options) or 'nothing'}"
        )
    deck = loads(text)
    roles, _ = read_roles(deck)
    circuit, _ = deck.where_change(None)
    return CircuitBlock(circuit, roles) if tolerance is None else CircuitBlock(circuit, roles, float(tolerance))


def describe_chain(chain: Chain) -> dict[str, Any]:
    """A chain without the values of its parameters."""
    return {
        "elements": [describe(element) for element in chain.elements],
        "loss": chain.loss.name,
        "chaining": asdict(chain.chaining),
        "dtype": chain.dtype.name,
    }


def build_chain(
    elements: Sequence[Mapping[str, Any]],
    loss: str = "cross-entropy",
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
    loss : {"cross-entropy", "mse"}
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
    try:
        rule = Chaining(**(chaining or {}))
    except TypeError as problem:
        raise UsageError(f"gradients cannot be computed as {dict(chaining or {})}: {problem}") from problem
    made = []
    for number, table in enumerate(elements):
        try:
            made.append(build(table, own))
        except UsageError as problem:
            raise UsageError(f"element {number}: {problem}") from problem
    return Chain(made, loss, rule, seed, np.dtype(dtype))


def chain_arrays(chain: Chain) -> dict[str, np.ndarray]:
    """Parameters and averages of a chain."""
    groups = {"parameters": chain.parameters, "averages": chain.state_arrays()}
    return pack(**{group: {name: to_numpy(a) for name, a in found.items()} for group, found in groups.items()})


def restored_chain(
    arrays: Mapping[str, np.ndarray], description: Mapping[str, Any], elements: Sequence[type] = ()
) -> Chain:
    """The chain of `describe_chain` with the arrays of `chain_arrays`."""
    chain = build_chain(**description, own=elements)
    copy_into(chain.parameters, unpack(arrays, "parameters"), "parameters")
    copy_into(chain.state_arrays(), unpack(arrays, "averages"), "averages")
    return chain
