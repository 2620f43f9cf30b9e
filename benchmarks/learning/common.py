"""What the studies of learning circuits share: runs as the command line makes them, and files of results."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from circuitsim import experiments
from circuitsim.training import Trainer, software_versions

ROOT = Path(__file__).parents[2]
NETLISTS = ROOT / "netlists"
RESULTS = ROOT / "benchmarks" / "results" / "learning"


def experiment(deck: str, **options: Any) -> experiments.Experiment:
    """What ``circuitsim train circuit netlists/DECK`` makes of these options."""
    return experiments.experiment("circuit", deck=str(NETLISTS / deck), **options)


def train(made: experiments.Experiment) -> list[dict[str, Any]]:
    """The rows of its history."""
    return Trainer(made.trainable, made.data, made.plan, made.evaluate).train().history.rows


def machine() -> str:
    """One line on where this was measured."""
    software = ", ".join(f"{name} {version}" for name, version in software_versions().items() if name != "machine")
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    return f"{platform.machine()}, {os.cpu_count()} processors, load {load}; {software}."


def write(name: str, lines: list[str]) -> None:
    """Write a page of results, and show it."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = "\n".join(lines) + "\n"
    (RESULTS / name).write_text(text, encoding="utf-8")
    print(text)
