"""Runs of ``circuitsim train`` as models: outputs and classes of new samples.

>>> from circuitsim.trained import load_run
>>> load_run("no such run")
Traceback (most recent call last):
    ...
circuitsim.errors.UsageError: there is no run in no such run (no config.json)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from circuitsim._arrays import to_numpy
from circuitsim._npz import npz_headers
from circuitsim.datasets.samples import Samples, arrays_of, read_samples
from circuitsim.errors import UsageError
from circuitsim.training.checkpoint import RunDirectory

BATCH = 500
"""Samples per batch."""


Read = Callable[[str, bool], Samples]
Compute = Callable[[np.ndarray], Any]
Measure = Callable[[np.ndarray, Samples], dict[str, float]]


@dataclass(frozen=True, eq=False, repr=False)
class TrainedModel:
    """A trained model, ready for new samples.

    Attributes
    ----------
    path : Path
        The run directory.
    options : dict
        The options of training.
    output_names : tuple of str
        Names of the columns of `outputs`.
    classes : tuple of str
        Names of the classes, one per output; empty if outputs are not classes.
    """

    path: Path
    options: Mapping[str, Any]
    output_names: tuple[str, ...]
    classes: tuple[str, ...]
    _read: Read
    _compute: Compute
    _measure: Measure

    def read(self, data: str, targets: bool = True) -> Samples:
        """Samples from a file or a data set.

        Parameters
        ----------
        data : str
            A file, or the name of a data set.
        targets : bool
            Whether there must be targets.

        Raises
        ------
        UsageError
            Missing data, or data that do not fit the model.
        """
        return self._read(data, targets)

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """Outputs (samples, outputs) of samples (samples, inputs): volts of circuits, probabilities of machines.

        Raises
        ------
        UsageError
            Wrong number of inputs, or non-finite values.
        """
        x = np.asarray(x)
        bad = np.flatnonzero(~np.isfinite(x).all(axis=tuple(range(1, x.ndim))))
        if bad.size:
            raise UsageError(
                f"{bad.size} of {len(x)} samples hold values that are not finite, the first in row {bad[0]}"
            )
        parts = [to_numpy(self._compute(x[at : at + BATCH])).astype(float) for at in range(0, len(x), BATCH)]
        return np.concatenate(parts) if parts else np.empty((0, len(self.output_names)))

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Names of the classes (samples,) of samples (samples, inputs): the highest output of each.

        Raises
        ------
        UsageError
            The model has no classes.
        """
        if not self.classes:
            raise UsageError("this model has no classes; outputs(x) gives its outputs")
        return np.array(self.classes)[self.outputs(x)[:, : len(self.classes)].argmax(axis=1)]

    def evaluate(self, samples: Samples, outputs: np.ndarray | None = None) -> dict[str, float]:
        """Error rate, its standard error, and losses over samples with targets.

        Parameters
        ----------
        samples : Samples
        outputs : (samples, outputs) array, optional
            The result of `outputs`, if known.
        """
        outputs = self.outputs(samples.x) if outputs is None else outputs
        found: dict[str, float] = {"samples": samples.size}
        if self.classes:
            wrong = float((outputs[:, : len(self.classes)].argmax(axis=1) != samples.y).mean())
            found |= {"error": wrong, "standard_error": float(np.sqrt(wrong * (1.0 - wrong) / samples.size))}
        return found | self._measure(outputs, samples)

    def __repr__(self) -> str:
        outputs = len(self.output_names)
        what = f"{len(self.classes)} classes" if self.classes else f"{outputs} output{'s' * (outputs > 1)}"
        return f"TrainedModel {self.options['model']} of {str(self.path)!r}: {what}"


def _circuit(path: Path, options: Mapping[str, Any]) -> TrainedModel:
    """A deck with its learned values (``trained.cir``)."""
    from circuitsim.learning import CrossEntropy, ImplicitDifferentiation, Learner, SquaredError
    from circuitsim.learning.estimate import error
    from circuitsim.learning.function import circuit_block

    block = circuit_block(RunDirectory(path).file("trained.cir"), tolerance=options["tolerance"])
    roles, gain, classes = block.roles, float(options["gain"]), tuple(options["classes"])
    entropy = (options["loss"] or ("cross-entropy" if classes else "squared")) == "cross-entropy"
    loss = CrossEntropy(options["temperature"]) if entropy else SquaredError(options["low"], options["high"])
    chain = Learner(block, ImplicitDifferentiation(), loss)

    def measure(outputs: np.ndarray, samples: Samples) -> dict[str, float]:
        found = {"loss": float(loss.value(outputs, samples.y).mean())}
        return found if classes else {**found, "mean_square": float(error(outputs, samples.y).mean())}

    return TrainedModel(
        path,
        options,
        tuple(roles.output_names),
        classes,
        lambda data, targets: read_samples(data, roles, classes, targets),
        lambda x: chain.output(gain * x),
        measure,
    )


def _of_images(
    path: Path, options: Mapping[str, Any], inputs: int | None, outputs: int, compute: Compute
) -> TrainedModel:
    """An image classifier, one output per class."""
    names = tuple(str(k) for k in range(outputs))
    name = options.get("loss") or "mse"
    key = {"mse": "squared_distance"}.get(name, name.replace("-", "_"))

    def measure(outputs: np.ndarray, samples: Samples) -> dict[str, float]:
        from circuitsim.learning.estimate import loss_named

        return {key: float(loss_named(name).value(outputs, samples.y).mean())}

    def read(data: str, targets: bool) -> Samples:
        return _images(data, options.get("data_dir"), targets, names, inputs)

    return TrainedModel(path, options, tuple(f"output {name}" for name in names), names, read, compute, measure)


def _layers(path: Path, options: Mapping[str, Any]) -> TrainedModel:
    """A deep resistive or deep Hopfield network (``model.npz``)."""
    from circuitsim.blocks.hopfield import DeepHopfieldBlock
    from circuitsim.layered.network import DeepResistiveNetwork

    kind: Any = DeepHopfieldBlock if options["model"].startswith("dhn") else DeepResistiveNetwork
    block = kind.load(RunDirectory(path).file("model.npz"))
    return _of_images(path, options, block.n_inputs, block.n_outputs, lambda x: block.relax(_fractions(x)).output)


def _chain(path: Path, options: Mapping[str, Any]) -> TrainedModel:
    """A chain of stages and blocks (``model.npz``)."""
    from circuitsim.learning.chain import Chain

    chain = Chain.load(RunDirectory(path).file("model.npz"))
    # The number of outputs is the length of the last bias.
    outputs = len(list(chain.elements[-1].parameters.values())[-1])
    return _of_images(path, options, None, outputs, lambda x: chain.output(_bytes(x)))


def _machine(path: Path, options: Mapping[str, Any]) -> TrainedModel:
    """A restricted Boltzmann machine (``model.npz``); outputs are the probabilities of its hidden units."""
    from circuitsim.boltzmann.machine import RestrictedBoltzmannMachine
    from circuitsim.boltzmann.study import PATTERNS, pattern_set

    machine = RestrictedBoltzmannMachine.load(RunDirectory(path).file("model.npz"))

    def states(x: np.ndarray) -> np.ndarray:
        if x.dtype == np.uint8 and not options["grey"]:
            x = np.uint8(255) * (x >= 128)
        return machine.as_states(x)

    def read(data: str, targets: bool) -> Samples:
        if data not in PATTERNS:
            return _images(data, options.get("data_dir"), False, (), machine.visible)
        x = pattern_set(data, options["units"])
        return Samples(x, np.empty((len(x), 0)))

    return TrainedModel(
        path,
        options,
        tuple(f"p(h{k})" for k in range(machine.hidden)),
        (),
        read,
        lambda x: machine.hidden_probability(states(x)),
        lambda outputs, samples: {
            "pseudo_log_likelihood": float(machine.pseudo_log_likelihood(states(samples.x)).mean())
        },
    )


_FAMILIES = {"circuit": _circuit, "drn": _layers, "dhn": _layers, "ffebm": _chain, "rbm": _machine}
"""Model name up to the first dash → reader of its run."""


def load_run(path: str | Path) -> TrainedModel:
    """The trained model of a run of ``circuitsim train … --out RUN``.

    Parameters
    ----------
    path : str or Path
        The directory RUN; only its ``config.json`` and ``trained.cir`` or ``model.npz`` are read.

    Raises
    ------
    UsageError
        No run, or an unfinished one.
    CheckpointError
        A model file that is damaged, or not as training wrote it.
    """
    directory = RunDirectory(path)
    path, options = directory.path, directory.options()
    if options.get("over_time"):
        raise UsageError(f"{path} was fitted to waveforms; circuitsim tran {path}/trained.cir shows its waveforms")
    model = str(options.get("model")).split("-")[0]
    if model not in _FAMILIES:
        raise UsageError(f"{directory.config} is damaged and cannot be read (there is no model '{model}')")
    try:
        return _FAMILIES[model](path, options)
    except KeyError as problem:
        raise UsageError(f"{directory.config} lacks {problem}: the run is of another version") from problem


def _images(data: str, directory: str | None, targets: bool, classes: Sequence[str], inputs: int | None) -> Samples:
    """Images by the name of a data set (its test images), a folder of idx files, or an npz file."""
    from circuitsim.datasets import load

    if data.lower().endswith(".npz"):
        x, y = arrays_of(Path(data), targets)
        if x.ndim != 2:
            raise UsageError(f"{data}: x must be samples × inputs, not {x.shape}")
        if targets and (y.ndim != 1 or len(y) != len(x) or y.min() < 0 or y.max() >= len(classes)):
            raise UsageError(f"{data}: y must be one class a sample, in 0…{len(classes) - 1}")
        stored = npz_headers(Path(data), ("x",))[0][1]
        x = x.astype(np.uint8) if stored == np.uint8 else x
    else:
        images = load(data, directory)
        x, y = images.test, images.test_labels
    if inputs is not None and x.shape[1] != inputs:
        raise UsageError(f"{data}: samples have {x.shape[1]} numbers, the model takes {inputs}")
    return Samples(x, y.astype(np.int64), tuple(classes))


def _fractions(x: np.ndarray) -> np.ndarray:
    """Bytes as fractions of 255; other numbers unchanged."""
    return x / 255.0 if x.dtype == np.uint8 else x


def _bytes(x: np.ndarray) -> np.ndarray:
    """Fractions of 255 as bytes.

    Raises
    ------
    UsageError
        Some lie outside 0…1.
    """
    if x.dtype == np.uint8:
        return x
    if x.min(initial=0.0) < 0.0 or x.max(initial=0.0) > 1.0:
        raise UsageError(f"pixels must lie in 0…1 (or be bytes); these reach from {x.min():g} to {x.max():g}")
    return np.round(255.0 * x).astype(np.uint8)
