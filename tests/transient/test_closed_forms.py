"""Waveforms, energies and events against closed forms, and runs against others: `closed.toml` and `equal.toml`."""

import itertools
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from circuitsim import loads, transient
from circuitsim.time_domain import Pulse, TransientResult

TABLE, EQUAL = (
    tomllib.loads((Path(__file__).parent / name).read_text(encoding="utf-8")) for name in ("closed.toml", "equal.toml")
)
NAMES = {**vars(np), "Pulse": Pulse, "quad": quad, "root": lambda f, a, b: brentq(f, a, b, xtol=1e-16)}


def waveform(run: TransientResult, quantity: str, times: np.ndarray) -> np.ndarray:
    """v(a), v(a,b) or i(R1)."""
    names = quantity[2:-1].split(",")
    return run.voltage(*names, times=times) if quantity[0] == "v" else run.current(*names, times=times)


@pytest.mark.parametrize(
    ("name", "method", "one"),
    [(name, method, one) for name, row in TABLE.items() for method in row["within"] for one in row.get("each", [""])],
)
def test_closed_forms(name: str, method: str, one: str) -> None:
    row, names = TABLE[name], dict[str, Any](NAMES)

    def value(text: str) -> Any:
        return eval(text.replace("@", one.split(" | ")[-1]), names)

    waves = {key: value(text) for key, text in row.get("waves", {}).items()}
    settings = {} if method == "auto" else {"method": method}
    deck = loads(f"{name}\n{row['deck'].strip().replace('@', one.split(' | ')[0])}\n.end\n")
    run = transient(deck, waveforms=waves, accuracy=row.get("accuracy", 1e-5), **settings)
    skip, within = row.get("skip", 0), row["within"][method]
    names["t"] = times = np.random.default_rng(1).uniform(0.0, run.stop, 300) if "random" in row else run.times[skip:]
    for key, text in row.get("names", {}).items():
        names[key] = value(text)
    assert run.certificate.certified and len(run.events) >= row.get("many", 0)
    for quantity, text in row["waveforms"].items():
        assert np.abs(waveform(run, quantity, times) - value(text)).max() <= within, quantity
    for key, text in row.get("energies", {}).items():
        tolerance = 1e-11 if method == "exact" else within
        assert getattr(run.energies, key) == pytest.approx(value(text), rel=max(tolerance, 1e-11) * 10), key
    if "events" in row and method == "exact":
        expected = np.atleast_1d(value(row["events"]))
        found = [event.time for event in run.events[: len(expected)]]
        assert found == pytest.approx(expected.tolist(), rel=row.get("times", 1e-12))
    changes = [" ".join(event.changed) for event in run.events]
    for expected, change in zip(row.get("changed", []), changes):
        assert set(expected.split()) == set(change.split())


@pytest.mark.parametrize(
    ("name", "values"),
    [(name, values) for name, row in EQUAL.items() for values in itertools.product(*row.get("of", {}).values())],
)
def test_two_runs_are_equal(name: str, values: tuple[str, ...]) -> None:
    row, runs = EQUAL[name], list[TransientResult]()
    for k, side in enumerate(("one", "other")):
        text, method = row.get(side) or row["deck"], row.get("methods", ["", ""])[k]
        for key, value in zip(row.get("of", {}), values):
            own = value.split(" | ")[k if " | " in value else 0]
            text, method = (part.replace(f"@{key}", own) for part in (text, method))
        settings = {"method": method} if method else {}
        runs.append(transient(loads(f"{name}\n{text}"), accuracy=row.get("accuracies", [1e-5, 1e-5])[k], **settings))
    first, second = runs
    times = first.times[row.get("skip", 0) :]
    assert first.certificate.certified and second.certificate.certified
    assert first.energies.imbalance <= row.get("imbalance", 1.0) and len(first.events) >= row.get("many", 0)
    for column, within in row["columns"].items():
        ours, theirs = (waveform(run, column, times) for run in runs)
        assert np.abs(ours - theirs).max() <= within * np.abs(theirs).max(), column
    if "events" in row:
        assert [{*event.changed} for event in first.events] == [{*event.changed} for event in second.events]
        found, expected = ([event.time for event in run.events] for run in runs)
        assert found == pytest.approx(expected, abs=row["events"])
