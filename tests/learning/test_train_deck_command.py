"""``circuitsim train circuit DECK`` and ``gradient DECK``: from a deck to a trained deck, whatever happens."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from circuitsim import netlist
from circuitsim.cli import main

DECK = """a network with a diode between free nodes
*! input V1 V2
*! output v(out) v(p,q)
*! trainable R* min=10 max=100k
*! trainable Ib min=-5m max=5m
V1 a 0 1
V2 b 0 -1
Ib 0 q 0.1m
Ra a p 1k
Rb b p 3k
Rc p q 2k
Rd q 0 1k
Re q out 1k
Rf out a 2k
Rg out 0 1k
D1 p out
.model ideal D
.op
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.cir").write_text(DECK)
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (12, 2))
    y = np.stack([0.3 * x[:, 0] + 0.1 * x[:, 1], 0.2 * x[:, 0]], axis=1)
    rows = "\n".join(",".join(map(repr, row)) for row in np.hstack([x, y]).tolist())
    (tmp_path / "data.csv").write_text('V1,V2,v(out),"v(p,q)"\n' + rows + "\n")
    return tmp_path


DRAWN = ["train", "circuit", "net.cir", "--data", "data.csv", "--batch", "4", "--split", "0.25"]
TRAIN = [*DRAWN, "--no-pictures"]


def rows_of(directory) -> list[dict]:
    """The history without its clock."""
    lines = (directory / "history.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in lines]


def test_from_a_deck_to_a_trained_deck(here, capsys) -> None:
    assert main([*DRAWN, "--epochs", "30", "--out", "run"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(
        "a network with a diode between free nodes: 2 inputs, 2 outputs, 8 trainable elements; "
        "ep, 9 samples, 3 held out\n"
    )
    assert "written to run: trained.cir, learning.png, conductances.png, circuit.png, history, checkpoint" in shown.out
    assert shown.err == ""
    rows = rows_of(here / "run")
    assert len(rows) == 30 and rows[-1]["loss"] < 0.2 * rows[0]["loss"] and rows[-1]["test_loss"] < rows[0]["test_loss"]
    for row in rows:
        assert row["lower"] <= row["loss"] <= row["upper"]
        assert row["certificate"] <= 1e-9 and row["skipped"] == row["uncertified_fraction"] == 0
    header = next(csv.reader(io.StringIO((here / "run/history.csv").read_text())))
    assert header[:4] == ["epoch", "updates", "skipped", "rate_factor"] and header[-1] == "seconds"
    for picture in ("learning", "conductances", "circuit"):
        assert (here / f"run/{picture}.png").read_bytes().startswith(b"\x89PNG")
    config = json.loads((here / "run/config.json").read_text())
    assert config["options"]["beta"] > 0 and config["options"]["lr"] > 0 and "numpy" in config["versions"]


def test_parameters_on_a_bound_are_counted_at_the_end(here, capsys) -> None:
    """The column of the history is the mean over the steps of an epoch."""
    bounds = ["--trainable", "Ra Rd Re Rg min=990 max=1010"]
    assert main([*TRAIN, *bounds, "--epochs", "1", "--lr", "1e-5", "--out", "run"]) == 0
    trained = netlist.load(here / "run/trained.cir").circuit
    ends = sum(trained[name].value in (990.0, 1010.0) for name in ("Ra", "Rd", "Re", "Rg"))
    assert ends > 0 and rows_of(here / "run")[-1]["clamped"] < ends
    assert f"parameters on a bound: {ends}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["--method", "coupled"],
        ["--method", "frequency"],
        ["--method", "agnostic", "--nudge", "resistor", "--optimizer", "sgd"],
        ["--method", "implicit", "--optimizer", "momentum"],
        ["--nudge", "resistor", "--variant", "positive", "--schedule", "cosine"],
        ["--nudge", "current", "--variant", "negative", "--schedule", "exponential"],
    ],
    ids=lambda words: " ".join(words[1::2]),
)
def test_every_method_learns(here, words) -> None:
    assert main([*TRAIN, "--epochs", "12", "--out", "run", *words]) == 0
    rows = rows_of(here / "run")
    assert rows[-1]["loss"] < 0.9 * rows[0]["loss"]
    sides = {"positive": {"lower"}, "negative": {"upper"}}
    found = {name for name in ("lower", "upper") if name in rows[0]}
    assert found == next((sides[word] for word in words if word in sides), set())
