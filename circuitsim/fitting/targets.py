"""Targets over time from CSV files: waveforms (a column ``time``) or measurements (a column ``measurement``)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from circuitsim._files import csv_rows, no_data
from circuitsim.analysis.probes import Probe, parse_probes
from circuitsim.errors import UsageError
from circuitsim.netlist.deck import Deck, measurements_of

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
        if self.target is not None:
            return (value - self.target) / self.scale
        return (max(value - self.maximum, 0.0) - max(self.minimum - value, 0.0)) / self.scale

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
    header = rows[0][1]
    for line, row in rows:
        if len(row) != len(header):
            raise UsageError(f"{path}:{line}: {len(row)} cells, the header has {len(header)}")
    lower = [name.lower() for name in header]
    if len(set(lower)) < len(lower):
        raise UsageError(f"{path}:1: a column is repeated")
    if "measurement" in lower:
        return _measures(path, lower, rows[1:], deck)
    if "time" not in lower:
        raise UsageError(f"{path}:1: there is neither a column time nor a column measurement")
    return _waves(path, header, rows[1:], deck, inputs)


def _waves(
    path: Path, header: list[str], rows: list[tuple[int, list[str]]], deck: Deck, inputs: Sequence[str]
) -> list[WaveTarget]:
    sources = {name.lower(): name for name in inputs}
    columns: dict[int, str] = {}
    for k, name in enumerate(header):
        if name.lower() in ("time", "sample"):
            continue
        columns[k] = sources.get(name.lower()) or _quantity(path, name, deck)
    outputs = [k for k, name in columns.items() if name not in inputs]
    if not outputs:
        raise UsageError(f"{path}:1: no column is a target such as v(out)")
    if len(rows) * len(outputs) > LARGEST:
        raise UsageError(f"{path}: more than {LARGEST:,} target values; leave out some times")
    lower = [name.lower() for name in header]
    at, sample = lower.index("time"), lower.index("sample") if "sample" in lower else None
    groups: dict[str, list[tuple[int, list[str]]]] = {}
    for line, row in rows:
        groups.setdefault("" if sample is None else row[sample], []).append((line, row))
    return [_wave(path, own, at, columns, outputs) for own in groups.values()]


def _wave(
    path: Path, rows: list[tuple[int, list[str]]], at: int, columns: Mapping[int, str], outputs: Sequence[int]
) -> WaveTarget:
    times = np.array([_number(path, line, row[at]) for line, row in rows])
    if times[0] < 0.0 or (np.diff(times) <= 0.0).any():
        raise UsageError(f"{path}: times begin at 0 s or later and ascend (a column sample tells runs apart)")
    waves = {
        name: np.array([math.nan if k in outputs and not row[k] else _number(path, line, row[k]) for line, row in rows])
        for k, name in columns.items()
    }
    chosen = {columns[k] for k in outputs}
    return WaveTarget(
        times,
        {name: own for name, own in waves.items() if name not in chosen},
        {name: own for name, own in waves.items() if name in chosen},
    )


def _quantity(path: Path, name: str, deck: Deck) -> str:
    probes = parse_probes(name, deck.operating_circuit)
    if len(probes) != 1 or not isinstance(probes[0], Probe) or probes[0].kind not in ("v", "i"):
        raise UsageError(f"{path}:1: {name!r} is neither time, sample, an input source nor one voltage or current")
    return str(probes[0])


def _measures(path: Path, header: list[str], rows: list[tuple[int, list[str]]], deck: Deck) -> list[MeasureTarget]:
    unknown = [name for name in header if name not in MEASURES]
    if unknown:
        raise UsageError(f"{path}:1: there is no column {unknown[0]!r}; there are {', '.join(MEASURES)}")
    cards = {text.split()[0].lower(): text for text in measurements_of(deck, "tran")}
    found = []
    for line, row in rows:
        cell = dict(zip(header, row))

        def number(name: str, default: float, line: int = line, cell: dict[str, str] = cell) -> float:
            return _number(path, line, cell[name]) if cell.get(name) else default

        words = cell["measurement"]
        text = cards.get(words.lower()) or words
        if len(text.split()) < 2:
            known = ", ".join(cards) or "none"
            raise UsageError(f"{path}:{line}: the deck has no .meas tran {words}; there are {known}")
        target = number("target", math.nan) if cell.get("target") else None
        low, high = number("minimum", -math.inf), number("maximum", math.inf)
        if (target is None) == (low == -math.inf and high == math.inf) or not low < high:
            raise UsageError(f"{path}:{line}: state a target, or a minimum or a maximum or both")
        sizes = [abs(value) for value in (target, low, high) if value is not None and 0.0 < abs(value) < math.inf]
        scale, weight = number("scale", sizes[0] if sizes else 1.0), number("weight", 1.0)
        if not (scale > 0.0 and weight >= 0.0):
            raise UsageError(f"{path}:{line}: a scale is positive, a weight is not negative")
        found.append(MeasureTarget(text.split()[0], text, target, low, high, scale, weight))
    if not sum(own.weight for own in found) > 0.0:
        raise UsageError(f"{path}: no row has a weight")
    return found


def _number(path: Path, line: int, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"{path}:{line}: {cell[:40]!r} is not a finite number")
    return value
