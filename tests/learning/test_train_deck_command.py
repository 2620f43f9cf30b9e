"""``circuitsim train circuit DECK`` and ``gradient DECK``: from a deck to a trained deck, whatever happens."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import circuitsim
from circuitsim import netlist
from circuitsim.cli import main
from circuitsim.netlist.roles import read_roles

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


def test_the_trained_deck_is_a_deck_and_can_be_trained_on(here, capsys) -> None:
    assert main([*TRAIN, "--epochs", "5", "--out", "run"]) == 0
    deck = netlist.load(here / "run/trained.cir")
    assert read_roles(deck)[0] == read_roles(netlist.load(here / "net.cir"))[0]
    assert deck.circuit["Ra"].value != 1000.0 and deck.circuit["Ib"].value != 1e-4
    assert circuitsim.solve(deck.circuit).certificate.certified
    assert main(["check", "run/trained.cir"]) == 0
    assert main(["train", "circuit", "run/trained.cir", "--data", "data.csv", "--epochs", "1"]) == 0


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


def test_classes_and_cross_entropy(here, capsys) -> None:
    lines = (here / "data.csv").read_text().splitlines()[1:]
    values = [[float(cell) for cell in line.split(",")] for line in lines]
    rows = [f"{a},{b},{'up' if a > b else 'down'}\n" for a, b, *_ in values]
    (here / "c.csv").write_text("V1,V2,class\n" + "".join(rows))
    words = ["train", "circuit", "net.cir", "--data", "c.csv", "--epochs", "30", "--out", "run"]
    words += ["--no-pictures", "--outputs", "v(p) v(out,q)"]
    assert main(words) == 0
    rows = rows_of(here / "run")
    assert rows[-1]["loss"] < rows[0]["loss"] and 0 <= rows[-1]["error"] <= 1
    options = json.loads((here / "run/config.json").read_text())["options"]
    assert options["classes"] == ["down", "up"] and options["temperature"] > 0
    assert "*! output v(p) v(out,q)" in (here / "run/trained.cir").read_text()


def test_uncertified_states_are_never_used(here, capsys) -> None:
    impossible = ["--tolerance", "1e-300", "--epochs", "2", "--out"]
    assert main([*DRAWN[:7], *impossible, "run"]) == 3
    told = capsys.readouterr().err
    assert "steps were skipped" in told and "nothing was learned: all 6 steps" in told
    rows = rows_of(here / "run")
    assert rows[-1]["skipped"] > 0 and rows[-1]["uncertified_fraction"] > 0
    before, after = (netlist.load(here / name) for name in ("net.cir", "run/trained.cir"))
    assert rows[-1]["updates"] == 0
    assert [e.value for e in before if e.kind == "resistor"] == [e.value for e in after if e.kind == "resistor"]
    assert main([*DRAWN[:7], *impossible, "other", "--uncertified", "stop"]) == 3
    assert "have no state certified to the tolerance" in capsys.readouterr().err


def test_a_run_resumes_only_with_its_own_deck_and_data(here, capsys) -> None:
    assert main([*TRAIN, "--epochs", "1", "--out", "run"]) == 0
    (here / "net.cir").write_text(DECK.replace("Rg out 0 1k", "Rg out 0 2k"))
    assert main(["train", "resume", "--epochs", "2", "--out", "run"]) == 2
    assert "the deck or the data have changed since" in capsys.readouterr().err


def test_gradients_by_every_method(here, capsys) -> None:
    assert main([*TRAIN, "--compare", "json"]) == 0
    found = {m["method"]: m for m in json.loads(capsys.readouterr().out)["methods"]}
    assert list(found) == ["implicit", "ep centred", "ep positive", "ep negative", "coupled", "frequency", "agnostic"]
    assert found["implicit"]["relative_error"] == 0
    assert list(found["implicit"]["gradient"]) == ["Ra", "Rb", "Rc", "Rd", "Re", "Rf", "Rg", "Ib"]
    assert found["ep centred"]["relative_error"] < 0.05 and found["frequency"]["cosine"] > 0.99
    assert main([*TRAIN, "--compare"]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[1].split()[:2] == ["method", "strength"] and "ep centred" in text
    assert main([*TRAIN, "--compare", "csv", "--variant", "centred"]) == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert [row[0] for row in rows[1:]] == ["implicit", "ep centred", "coupled", "frequency", "agnostic"]


def test_a_method_that_does_not_fit_is_left_out_and_named(here, capsys) -> None:
    (here / "c.csv").write_text("V1,V2,class\n1,0,0\n0,1,1\n")
    assert main(["train", "circuit", "net.cir", "--data", "c.csv", "--nudge", "constant", "--compare"]) == 0
    shown = capsys.readouterr()
    assert "note: coupled is left out" in shown.err and "coupled" not in shown.out


def test_comparing_trains_nothing(here, capsys) -> None:
    assert main([*TRAIN, "--compare", "--out", "run"]) == 2
    assert "leave --out out" in capsys.readouterr().err and not (here / "run").exists()
    assert main([*TRAIN, "--compare", "json", "--batch", "1"]) == 0
    one = json.loads(capsys.readouterr().out)["methods"][0]["gradient"]
    assert main([*TRAIN, "--compare", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["methods"][0]["gradient"] != one
