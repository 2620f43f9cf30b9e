"""Fits of decks to waveforms and measurements.

`WaveformFit`: training of a deck's parameters with a loss over waveforms or measurements.

`TimedDeck` is a deck for transient analysis, with trainable values. Targets over time are from CSV files: waveforms (a
column ``time``) or measurements (a column ``measurement``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from circuitsim._files import csv_rows, finite_number, no_data
from circuitsim.analysis.probes import VALUE, Formula, parse_probe, parse_probes
from circuitsim.circuit import Circuit
from circuitsim.circuit.parameters import parameter
from circuitsim.circuit.waveforms import PiecewiseLinear
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.netlist.deck import Deck, Transient, measurements_of
from circuitsim.netlist.roles import Roles
from circuitsim.netlist.writer import text_of
from circuitsim.plotting.charts import gridded, legend, measured, plain, stacked, write
from circuitsim.points import digest
from circuitsim.time_domain import Switch, TransientResult, Waveform, steady_state, transient, waveform_gradient
from circuitsim.time_domain.deck import setting
from circuitsim.time_domain.functionals import Functional, Value
from circuitsim.time_domain.gradients import measurement_terms
from circuitsim.time_domain.result import columns
from circuitsim.training.checkpoint import Arrays, Batch, CheckpointError

NUMBERS = {"vt": "threshold", "vh": "hysteresis", "ron": "on", "roff": "off"}
"""The numbers of a switch in decks and in `circuitsim.time_domain.Switch`."""


class TimedDeck:
    """A deck with adjustable numbers.

    Parameters
    ----------
    deck : Deck
    roles : Roles
        The adjustable elements and numbers.
    steady : bool
        Whether a run is one period of the periodic steady state.
    stop : float, optional
        End of a run, s; by default that of ``.tran``.
    tolerance : float
        Tolerance of each run's certificate.

    Attributes
    ----------
    names : list of str
        The adjustable numbers.
    start, low, high : (n,) float arrays
        Their values in the deck and their bounds.

    Raises
    ------
    UsageError
        Nothing is adjustable; no ``.tran`` and no ``stop``; sources that follow others.
    """

    def __init__(
        self, deck: Deck, roles: Roles, steady: bool = False, stop: float | None = None, tolerance: float = 1e-9
    ) -> None:
        if not roles.trainable:
            raise UsageError("nothing is trainable: write '*! trainable R* C1' into the deck, or --trainable 'R* C1'")
        follow = {*deck.following.formulas, *deck.following.frozen}
        if follow:
            name = deck.operating_circuit.names[min(follow)]
            raise UsageError(
                f"{name} follows other sources, which waveform fits do not support: give it a time function of its own"
            )
        self.deck, self.roles, self.steady, self.tolerance = deck, roles, steady, tolerance
        # The card's step is the default rise time and is kept.
        steps = [card.step for card in deck.of_kind(Transient) if card.step > 0.0]
        self.setting = setting(deck, steps[0] if steps else None, stop)
        self.names = [a.name for a in roles.trainable]
        self.low, self.high = (np.array([getattr(a, end) for a in roles.trainable]) for end in ("minimum", "maximum"))
        found = [parameter(deck.operating_circuit, name, deck.following.switches) for name in self.names]
        self._numbers = [own for own in found if own is not None]
        self.start = np.array([own.value for own in self._numbers])

    def at(self, values: Sequence[float] | np.ndarray) -> tuple[Circuit, dict[str, Switch]]:
        """The circuit and its switches with values (n,) of the adjustable numbers."""
        circuit, switches = self.deck.operating_circuit, dict(self.setting.switches)
        plain = {}
        for own, value in zip(self._numbers, np.asarray(values, dtype=float).tolist()):
            if own.plain:
                plain[own.name] = value
            else:
                name = circuit.names[own.elements[0]]
                switches[name] = switches[name]._replace(**{NUMBERS[own.key]: value})
        return circuit.with_values(plain), switches

    def run(
        self,
        values: Sequence[float] | np.ndarray,
        inputs: Mapping[str, Waveform] = MappingProxyType({}),
        points: int = 2,
    ) -> TransientResult:
        """The waveforms with values (n,) of the adjustable numbers.

        Parameters
        ----------
        values : (n,) float array
        inputs : mapping of str to Waveform
            Waveforms of sources, in place of the deck's.
        points : int
            Number of output times.
        """
        circuit, switches = self.at(values)
        own, couplings = self.setting, self.deck.following.couplings
        waves = {**own.waveforms, **inputs}
        if self.steady:
            return steady_state(circuit, waves, None, own.initial, points, self.tolerance, switches, couplings)
        return transient(
            circuit,
            own.stop,
            waves,
            own.initial,
            points,
            self.tolerance,
            switches,
            couplings,
            held=own.held,
            max_step=own.max_step,
        )

    def text(self, values: Sequence[float] | np.ndarray) -> str:
        """The deck with values (n,) of the adjustable numbers, its roles and its transient data."""
        circuit, switches = self.at(values)
        numbers = {}
        for k in self.deck.following.switches:
            switch = switches[circuit.names[k]]
            numbers[k] = {number: float(getattr(switch, own)) for number, own in NUMBERS.items()}
        return text_of(circuit, self.roles, self.deck, numbers, lenient=True)


LARGEST = 100_000
"""Maximum number of target values in a file; each is a terminal value of the adjoint run."""


class WaveTarget(NamedTuple):
    """Target values of quantities over time, for one set of input waveforms.

    Attributes
    ----------
    times : (n,) float array
        Ascending, s.
    inputs : dict of str to (n,) float array
        Values of sources at these times, V or A, with linear interpolation.
    outputs : dict of str to (n,) float array
        ``v(out)`` … at these times; nan where there is no target.
    """

    times: np.ndarray
    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]

    @property
    def wanted(self) -> int:
        """Number of target values."""
        return int(sum(np.isfinite(own).sum() for own in self.outputs.values()))


class MeasureTarget(NamedTuple):
    """The target of a measurement.

    Attributes
    ----------
    name, text : str
        The name, and the text for `circuitsim.time_domain.measure`.
    target : float or None
    minimum, maximum : float
        Allowed range if there is no target.
    scale : float
        Deviations are divided by it.
    weight : float
        Weight of its squared deviation in the loss.
    """

    name: str
    text: str
    target: float | None
    minimum: float
    maximum: float
    scale: float
    weight: float

    def miss(self, value: float) -> float:
        """The deviation over the scale: from the target, or beyond the nearer bound."""
        nearest = min(max(value, self.minimum), self.maximum) if self.target is None else self.target
        return (value - nearest) / self.scale

    def asked(self) -> str:
        """The target in words."""
        if self.target is not None:
            return f"= {self.target:g}"
        ends = [f"≥ {self.minimum:g}" * (self.minimum > -math.inf), f"≤ {self.maximum:g}" * (self.maximum < math.inf)]
        return " and ".join(filter(None, ends))


Targets = list[WaveTarget] | list[MeasureTarget]

MEASURES = ("measurement", "target", "minimum", "maximum", "scale", "weight")


def read_targets(path: str | Path, deck: Deck, inputs: Sequence[str] = ()) -> Targets:
    """The targets of a file.

    Parameters
    ----------
    path : str or Path
        CSV. With a column ``time`` (s): columns of sources among ``inputs`` are their waveforms, other columns are
        voltages and currents and what they should be (empty: no target); rows with another value in a column
        ``sample`` are another run. With a column ``measurement`` (a ``.meas`` card's name, or what follows
        ``.meas tran``): ``target``, or ``minimum`` and ``maximum``; ``scale``, ``weight``.
    deck : Deck
    inputs : sequence of str
        Sources that columns may drive.

    Raises
    ------
    UsageError
        No such file; missing or unknown columns; non-numeric cells, by file and line.
    """
    path = Path(path)
    if not path.is_file():
        raise UsageError(no_data(path))
    rows = list(csv_rows(path))
    if len(rows) < 2:
        raise UsageError(f"{path}: a header and at least one row are needed")
    header = rows.pop(0)[1]
    lower = [name.lower() for name in header]
    if len(set(lower)) < len(lower):
        raise UsageError(f"{path}:1: a column is repeated")
    if "measurement" in lower:
        return _measures(path, lower, rows, deck)
    if "time" not in lower:
        raise UsageError(f"{path}:1: there is neither a column time nor a column measurement")
    sources = {name.lower(): name for name in inputs}
    columns = {
        k: sources.get(own) or _quantity(path, header[k], deck)
        for k, own in enumerate(lower)
        if own not in ("time", "sample")
    }
    outputs = [k for k, name in columns.items() if name not in inputs]
    if not outputs:
        raise UsageError(f"{path}:1: no column is a target such as v(out)")
    if len(rows) * len(outputs) > LARGEST:
        raise UsageError(f"{path}: more than {LARGEST:,} target values; leave out some times")
    samples: dict[str, list[tuple[int, list[str]]]] = {}
    for line, row in rows:
        samples.setdefault(row[lower.index("sample")] if "sample" in lower else "", []).append((line, row))
    return [_wave(path, own, lower.index("time"), columns, outputs) for own in samples.values()]


def _wave(
    path: Path, rows: list[tuple[int, list[str]]], at: int, columns: Mapping[int, str], outputs: Sequence[int]
) -> WaveTarget:
    """The rows of one sample, whose time is in the column ``at``."""
    if not any(row[k] for _, row in rows for k in outputs):
        raise UsageError(f"{path}:{rows[0][0]}: a sample without a target value")
    waves = {
        k: np.array(
            [math.nan if k in outputs and not row[k] else finite_number(path, line, row[k]) for line, row in rows]
        )
        for k in (at, *columns)
    }
    times = waves.pop(at)
    if times[0] < 0.0 or (np.diff(times) <= 0.0).any():
        raise UsageError(f"{path}: times begin at 0 s or later and ascend (a column sample tells runs apart)")
    targets = {columns[k]: waves.pop(k) for k in outputs}
    return WaveTarget(times, {columns[k]: own for k, own in waves.items()}, targets)


def _quantity(path: Path, name: str, deck: Deck) -> str:
    if name in deck:
        raise UsageError(f"{path}:1: {name} is no input of the circuit: write '*! input {name}', or --inputs {name}")
    refused = f"{name!r} is neither time, sample, an input source nor one voltage or current"
    try:
        return str(parse_probe(name, deck.operating_circuit, refused, ("v", "i")))
    except UsageError as error:
        raise UsageError(f"{path}:1: {error}") from None


def _measures(path: Path, header: list[str], rows: list[tuple[int, list[str]]], deck: Deck) -> list[MeasureTarget]:
    unknown = [name for name in header if name not in MEASURES]
    if unknown:
        raise UsageError(f"{path}:1: there is no column {unknown[0]!r}; there are {', '.join(MEASURES)}")
    cards = {text.split()[0].lower(): text for text in measurements_of(deck, "tran")}
    found = []
    for line, row in rows:
        cell = {name: text for name, text in zip(header, row) if text}
        words = cell.pop("measurement", "")
        text = cards.get(words.lower()) or words
        if len(text.split()) < 2:
            known = ", ".join(cards) or "none"
            raise UsageError(f"{path}:{line}: the deck has no .meas tran {words}; there are {known}")
        number = {name: finite_number(path, line, own) for name, own in cell.items()}
        target, low, high = number.get("target"), number.get("minimum", -math.inf), number.get("maximum", math.inf)
        if (target is None) == (low == -math.inf and high == math.inf) or not low < high:
            raise UsageError(f"{path}:{line}: state a target, or a minimum or a maximum or both")
        sizes = [abs(value) for value in (target, low, high) if value is not None and 0.0 < abs(value) < math.inf]
        scale, weight = number.get("scale", [*sizes, 1.0][0]), number.get("weight", 1.0)
        if not (scale > 0.0 and weight >= 0.0):
            raise UsageError(f"{path}:{line}: a scale is positive, a weight is not negative")
        found.append(MeasureTarget(text.split()[0], text, target, low, high, scale, weight))
    if not sum(own.weight for own in found) > 0.0:
        raise UsageError(f"{path}: no row has a weight")
    return found


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
        total, losses = np.zeros(self.size.size), list[Loss]()
        for sample in batch[0].tolist():
            result = self.run(sample)
            losses.append(self.loss(sample, result))
            found = waveform_gradient(result, losses[-1].functionals, self.timed.names, losses[-1].weights).gradient
            total += np.array([found[name] for name in self.timed.names])
        size = np.where(self.positive, self.values(), self.size)
        return {"numbers": total / len(losses) * size}, _mean(losses)

    def measured(self, samples: Sequence[int]) -> dict[str, float]:
        """Mean loss and measurements of samples, without gradients."""
        return _mean([self.loss(sample, self.run(sample)) for sample in samples])

    def project(self) -> None:
        """Clip to the bounds."""
        own = self.parameters["numbers"]
        np.clip(own, *map(self._coordinates, (self.timed.low, self.timed.high)), out=own)

    def fingerprint(self) -> bytes:
        """Fingerprint of deck and targets, which must match to resume a run."""
        return digest((self.timed.text(self.timed.start), self.targets))

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


def _mean(losses: Sequence[Loss]) -> dict[str, float]:
    """The mean loss and the mean measurements of samples."""
    rows = [{"loss": loss.value, **loss.measured} for loss in losses]
    return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}


def _of_waves(own: WaveTarget, result: TransientResult) -> Loss:
    """Mean squared deviation from target values."""
    if own.times[-1] > result.stop:
        raise UsageError(f"a target is at {own.times[-1]:g} s, the waveforms end at {result.stop:g} s")
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


POINTS = 1001

PANELS = 4
"""Maximum number of quantities drawn."""


def draw_fit(fit: WaveformFit, first: np.ndarray, path: Path) -> None:
    """Draw the first sample: one panel per quantity, before (dashed), after, target (dots).

    Parameters
    ----------
    fit : WaveformFit
    first : (n,) float array
        The numbers before.
    path : Path
        PNG to write.
    """
    own = fit.targets[0]
    names = list(own.outputs) if isinstance(own, WaveTarget) else _measured(fit)
    runs = [fit.run(0, values, POINTS) for values in (first, fit.values())]
    heading = fit.timed.deck.operating_circuit.title
    figure, axes = stacked(heading, 8.0, [2.7] * max(len(names[:PANELS]), 1), True)
    for panel, name in zip(axes, names):
        probes = parse_probes(name, runs[0].circuit)
        for run, label, style, colour in zip(runs, ("before", "after"), ("--", "-"), ("#8a919c", "#b5367a")):
            panel.plot(run.times, columns(run, probes, {}, run.times)[0], style, color=colour, label=label)
        if isinstance(own, WaveTarget):
            panel.plot(own.times, own.outputs[name], ".", color="#1f6f8b", markersize=4, label="target")
        measured(panel.yaxis, plain(name), probes[0].unit)
        gridded(panel)
        legend(panel)
    measured(axes[-1].xaxis, "time", "s")
    write(figure, path)


def _measured(fit: WaveformFit) -> list[str]:
    """Voltages and currents used by the measurements."""
    found: dict[str, None] = {}
    for own in fit.targets:
        for word in () if isinstance(own, WaveTarget) else own.text.split()[1:]:
            try:
                probes = parse_probes(word.partition("=")[0], fit.timed.deck.operating_circuit)
            except UsageError:
                continue
            found.update({str(p): None for p in probes if not isinstance(p, Formula) and p.kind != VALUE})
    return list(found)


__all__ = ["MeasureTarget", "TimedDeck", "WaveTarget", "WaveformFit", "read_targets"]
