"""`WaveformFit`: training of a deck's parameters with a loss over waveforms or measurements."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from circuitsim.circuit.waveforms import PiecewiseLinear
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.fitting.numbers import TimedDeck
from circuitsim.fitting.targets import MeasureTarget, Targets, WaveTarget
from circuitsim.time_domain import TransientResult, Waveform, waveform_gradient
from circuitsim.time_domain.functionals import Functional, Value
from circuitsim.time_domain.measure_gradients import measurement_terms
from circuitsim.training.checkpoint import CheckpointError
from circuitsim.training.trainable import Arrays, Batch


class Loss(NamedTuple):
    """A loss and the terms of its derivative.

    Attributes
    ----------
    value : float
    functionals, weights : list
        The derivative of the loss is the sum of ``weights`` times the derivatives of ``functionals``.
    measured : dict of str to float
        Measurements by name; of waveforms ``rms``, the root of the mean squared deviation.
    """

    value: float
    functionals: list[Functional]
    weights: list[float]
    measured: dict[str, float]


class WaveformFit:
    """A deck whose numbers are fitted; `circuitsim.training.Trainable`.

    Parameters
    ----------
    timed : TimedDeck
    targets : list of WaveTarget, or list of MeasureTarget
        Each `WaveTarget` is a sample; all `MeasureTarget` values are one.

    Attributes
    ----------
    parameters : dict of str to ndarray
        ``numbers``: logarithms of positive ones, the others relative to their initial magnitudes.

    Notes
    -----
    Metrics: ``loss``; of waveforms the mean squared deviation (V² and A²) and ``rms``, its root; of measurements the
    weighted mean of the squared deviations over their scales, and each measurement.
    """

    def __init__(self, timed: TimedDeck, targets: Targets) -> None:
        self.timed, self.targets = timed, targets
        self.positive = (timed.low > 0.0) & (timed.start > 0.0)
        self.size = np.where(timed.start != 0.0, np.abs(timed.start), 1.0)
        self.parameters: Arrays = {"numbers": self._coordinates(timed.start)}
        self.samples = np.arange(1 if isinstance(targets[0], MeasureTarget) else len(targets))

    def values(self) -> np.ndarray:
        """The current numbers (n,)."""
        x = self.parameters["numbers"]
        found = np.where(self.positive, np.exp(np.where(self.positive, x, 0.0)), x * self.size)
        return np.clip(found, self.timed.low, self.timed.high)

    def _coordinates(self, values: np.ndarray) -> np.ndarray:
        return np.where(self.positive, np.log(np.where(self.positive, values, 1.0)), values / self.size)

    def scatter(self, share: float, rng: np.random.Generator) -> None:
        """Multiply positive numbers by exp(share · N(0, 1)), within their bounds.

        Parameters
        ----------
        share : float
            Standard deviation of the logarithms.
        rng : numpy.random.Generator
        """
        self.parameters["numbers"][self.positive] += share * rng.standard_normal(int(self.positive.sum()))
        self.project()

    def run(self, sample: int, values: np.ndarray | None = None, points: int = 2) -> TransientResult:
        """The waveforms of a sample.

        Parameters
        ----------
        sample : int
            Position in ``targets``.
        values : (n,) float array, optional
            The numbers, in SI units; by default the current ones.
        points : int
            Number of output times.
        """
        own, inputs = self.targets[sample], dict[str, Waveform]()
        if isinstance(own, WaveTarget):
            inputs = {name: PiecewiseLinear(own.times.tolist(), y.tolist()) for name, y in own.inputs.items()}
        return self.timed.run(self.values() if values is None else values, inputs, points)

    def loss(self, sample: int, result: TransientResult) -> Loss:
        """The loss of a sample's waveforms.

        Parameters
        ----------
        sample : int
            Position in ``targets``.
        result : TransientResult
            As `run` gives it.
        """
        own = self.targets[sample]
        if isinstance(own, WaveTarget):
            return _of_waves(own, result)
        return _of_measures([one for one in self.targets if isinstance(one, MeasureTarget)], result, self._parameters())

    def _parameters(self) -> dict[str, float]:
        return {name.lower(): value for name, value in self.timed.deck.parameters.items()}

    def gradient(self, batch: Batch, rng: np.random.Generator) -> tuple[Arrays | None, dict[str, float]]:
        """The exact gradient over some samples.

        Parameters
        ----------
        batch : sequence of arrays
            Its first holds positions in ``targets``.
        rng : numpy.random.Generator
            Not used: nothing is random.

        Returns
        -------
        dict of str to array or None, dict of str to float
            By parameter; means of the loss and of the measurements.
        """
        total, metrics = np.zeros(self.size.size), dict[str, float]()
        rows = batch[0].tolist()
        for sample in rows:
            result = self.run(sample)
            loss = self.loss(sample, result)
            found = waveform_gradient(result, loss.functionals, self.timed.names, loss.weights).gradient
            total += np.array([found[name] for name in self.timed.names]) / len(rows)
            for name, value in {"loss": loss.value, **loss.measured}.items():
                metrics[name] = metrics.get(name, 0.0) + value / len(rows)
        return {"numbers": total * np.where(self.positive, self.values(), self.size)}, metrics

    def measured(self, samples: Sequence[int]) -> dict[str, float]:
        """Mean loss and measurements of samples, without gradients."""
        found: dict[str, float] = {}
        for sample in samples:
            loss = self.loss(sample, self.run(sample))
            for name, value in {"loss": loss.value, **loss.measured}.items():
                found[name] = found.get(name, 0.0) + value / len(samples)
        return found

    def project(self) -> None:
        """Clip to the bounds."""
        own = self.parameters["numbers"]
        np.clip(own, *map(self._coordinates, (self.timed.low, self.timed.high)), out=own)

    def fingerprint(self) -> bytes:
        """Fingerprint of deck and targets, which must match to resume a run."""
        digest = hashlib.sha256(self.timed.text(self.timed.start).encode())
        for own in self.targets:
            if isinstance(own, WaveTarget):
                parts: list[np.ndarray] = [own.times, *own.inputs.values(), *own.outputs.values()]
                digest.update(b"".join(np.ascontiguousarray(part).tobytes() for part in parts))
            else:
                digest.update(repr(own).encode())
        return digest.digest()

    def state_arrays(self) -> Arrays:
        """The fingerprint, the only state between steps."""
        return {"fingerprint": np.frombuffer(self.fingerprint(), dtype=np.uint8).copy()}

    def load_state_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Check that deck and targets are those of the run to resume.

        Raises
        ------
        CheckpointError
            They differ.
        """
        if arrays.get("fingerprint", np.zeros(0)).tobytes() != self.fingerprint():
            raise CheckpointError("the deck or the data have changed since the run to resume was begun")


def _of_waves(own: WaveTarget, result: TransientResult) -> Loss:
    """Mean squared deviation from target values."""
    if own.times[-1] > result.stop:
        raise UsageError(f"a target is at {own.times[-1]:g} s, the waveforms end at {result.stop:g} s")
    from circuitsim.analysis.probes import parse_probes
    from circuitsim.time_domain.result import columns

    functionals: list[Functional] = []
    weights, total, count = [], 0.0, own.wanted
    for name, wanted in own.outputs.items():
        here = np.isfinite(wanted)
        times = own.times[here]
        found = columns(result, parse_probes(name, result.circuit), {}, times)[0]
        gap = found - wanted[here]
        total += float(gap @ gap) / count
        functionals += [Value(name, time) for time in times.tolist()]
        weights += (2.0 * gap / count).tolist()
    return Loss(total, functionals, weights, {"rms": float(np.sqrt(total))})


def _of_measures(targets: Sequence[MeasureTarget], result: TransientResult, names: Mapping[str, float]) -> Loss:
    """Weighted mean of squared deviations of measurements over their scales."""
    functionals: list[Functional] = []
    weights: list[float] = []
    whole, total, measured = sum(own.weight for own in targets), 0.0, dict[str, float]()
    for own in targets:
        terms = measurement_terms(result, own.text, names)
        if terms.value is None:
            raise ConvergenceError(f"measurement {own.name}: its event never occurs; start from other values")
        miss = own.miss(terms.value)
        total += own.weight * miss**2 / whole
        factor = 2.0 * own.weight * miss / (own.scale * whole)
        functionals += terms.functionals
        weights += [factor * weight for weight in terms.weights]
        measured[own.name] = terms.value
    return Loss(total, functionals, weights, measured)
