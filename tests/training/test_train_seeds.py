"""``train MODEL --seeds``: the runs of single commands, in any number of processes, resumable."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from circuitsim.cli import main

NETLISTS = Path(__file__).resolve().parents[2] / "netlists"
WORDS = [
    "train",
    "circuit",
    str(NETLISTS / "learn-divider.cir"),
    "--data",
    str(NETLISTS / "learn-divider.csv"),
    "--scatter",
    "0.5",
    "--no-pictures",
]


def last_row(path: Path) -> dict[str, str]:
    *_, row = csv.DictReader(path.open())
    return row


def test_seeds_are_the_runs_of_single_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "all"
    assert main([*WORDS, "--epochs", "3", "--seed", "4", "--seeds", "2", "--workers", "2", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    # Three epochs and two more are five.
    assert main([*WORDS, "--epochs", "5", "--seed", "4", "--seeds", "3", "--out", str(out)]) == 0
    table = list(csv.DictReader((out / "seeds.csv").open()))
    assert [row["seed"] for row in table] == ["4", "5", "6"]
    for row in table:
        alone = tmp_path / row["seed"]
        assert main([*WORDS, "--epochs", "5", "--seed", row["seed"], "--out", str(alone)]) == 0
        single = last_row(alone / "history.csv")
        assert float(row["loss"]) == float(single["loss"]) and float(row["error"]) == float(single["error"])
        assert (out / f"seed-{row['seed']}" / "trained.cir").read_bytes() == (alone / "trained.cir").read_bytes()
    rows = [line.split() for line in shown.splitlines()]
    losses = [float(row[1]) for row in rows if row and row[0] in ("4", "5")]
    mean, deviation = (next(float(row[1]) for row in rows if row and row[0] == word) for word in ("mean", "deviation"))
    assert mean == pytest.approx(np.mean(losses), rel=1e-4)
    assert deviation == pytest.approx(np.std(losses, ddof=1), rel=0.05)
