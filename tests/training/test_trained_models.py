"""Trained models from their files alone: what `predict` says is what training measured."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import circuitsim
from circuitsim import examples
from circuitsim.cli import main
from circuitsim.errors import CircuitError, UsageError
from circuitsim.trained import load_run

Capture = pytest.CaptureFixture[str]


def trained(tmp_path: Path, *words: str) -> Path:
    run = tmp_path / "run"
    assert main(["train", *words, "--out", str(run), "--no-pictures"]) == 0
    return run


def last_row(run: Path) -> dict[str, float]:
    return json.loads((run / "history.jsonl").read_text().splitlines()[-1])


def test_a_deck(tmp_path: Path, capsys: Capture) -> None:
    """Outputs are those of the trained deck, solved sample by sample."""
    deck, data = examples.path("learn-divider"), examples.path("learn-divider").replace(".cir", ".csv")
    run = trained(tmp_path, "circuit", deck, "--data", data, "--epochs", "30")
    inputs = tmp_path / "inputs.csv"
    inputs.write_text("V1\n1.5\n-0.25\n", encoding="utf-8")
    shutil.move(run, tmp_path / "moved")  # nothing outside the run is needed
    run = tmp_path / "moved"
    capsys.readouterr()
    assert main(["predict", str(run), "--data", str(inputs)]) == 0
    rows = list(csv.reader(capsys.readouterr().out.splitlines()))
    assert rows[0] == ["sample", "v(out)"] and [row[0] for row in rows[1:]] == ["0", "1"]
    circuit = circuitsim.load(run / "trained.cir")
    for row, volts in zip(rows[1:], (1.5, -0.25)):
        expected = circuitsim.solve(circuit.with_values({"V1": volts}))["out"]
        assert float(row[1]) == pytest.approx(expected, rel=1e-9)
    assert main(["predict", str(run), "--data", data, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["evaluation"]
    with open(data, encoding="utf-8") as file:
        samples = [(float(row["V1"]), float(row["v(out)"])) for row in csv.DictReader(file)]
    outputs = [circuitsim.solve(circuit.with_values({"V1": volts}))["out"] for volts, _ in samples]
    square = np.mean([(out - target) ** 2 for out, (_, target) in zip(outputs, samples)])
    assert found["samples"] == len(samples)
    assert found["mean_square"] == pytest.approx(square, rel=1e-6)
    assert found["loss"] == pytest.approx(square / 2, rel=1e-6)


@pytest.mark.parametrize(
    "words",
    [
        ("drn", "--epochs", "1"),
        ("dhn", "--hidden", "16", "--epochs", "1"),
        ("ffebm", "--epochs", "1", "--samples", "300"),
    ],
    ids=lambda words: words[0],
)
def test_images(tmp_path: Path, words: tuple[str, ...]) -> None:
    """The test error of the history, from the model file alone."""
    pytest.importorskip("sklearn")
    run = trained(tmp_path, *words, "--dataset", "digits")
    model = load_run(run)
    samples = model.read("digits")
    found = model.evaluate(samples)
    # A unit of single precision may decide one image in hundreds.
    assert found["error"] == pytest.approx(last_row(run)["test_error"], abs=1.01 / samples.size)
    assert 0.0 < found["standard_error"] < 0.03
    names = model.predict(samples.x)
    assert (names != samples.y.astype(str)).mean() == found["error"]
    outputs = model.outputs(samples.x)
    assert outputs.shape == (samples.size, 10) and "10 classes" in repr(model)
    np.savez(tmp_path / "own.npz", x=samples.x[:7] / 255.0)
    alone = model.read(str(tmp_path / "own.npz"), targets=False)
    assert np.abs(model.outputs(alone.x) - outputs[:7]).max() < 1e-4


def test_a_boltzmann_machine(tmp_path: Path, capsys: Capture) -> None:
    run = trained(tmp_path, "rbm", "--dataset", "diag", "--hidden", "4", "--epochs", "20")
    model = load_run(run)
    samples = model.read("diag")
    found = model.evaluate(samples)
    assert found["pseudo_log_likelihood"] == pytest.approx(last_row(run)["pseudo_likelihood"], rel=1e-5)
    assert ((model.outputs(samples.x) > 0) & (model.outputs(samples.x) < 1)).all()
    with pytest.raises(UsageError, match="no classes"):
        model.predict(samples.x)


def test_unfinished_and_foreign_runs_are_refused(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "config.json").write_text('{"options": {"model": "drn"}}')
    with pytest.raises(UsageError, match="not finished"):
        load_run(tmp_path)
    for text in ("{", "[]", '{"options": {"model": "gpt"}}', '{"options": 3}', '{"options": {"model": "circuit"}}'):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(CircuitError):
            load_run(tmp_path)
    assert main(["predict", str(tmp_path / "nothing"), "--data", "digits"]) == 2
    assert "no config.json" in capsys.readouterr().err


def test_data_that_do_not_fit_are_refused(tmp_path: Path, capsys: Capture) -> None:
    pytest.importorskip("sklearn")
    run = trained(tmp_path, "drn", "--epochs", "0", "--dataset", "digits")
    np.savez(tmp_path / "narrow.npz", x=np.zeros((3, 5)))
    assert main(["predict", str(run), "--data", str(tmp_path / "narrow.npz")]) == 2
    assert "the model takes 64" in capsys.readouterr().err
    np.savez(tmp_path / "wrong.npz", x=np.zeros((3, 64)), y=np.array([0, 1, 10]))
    assert main(["predict", str(run), "--data", str(tmp_path / "wrong.npz")]) == 0
    assert "note: no errors are computed" in (said := capsys.readouterr().err) and "0…9" in said
    rows = np.zeros((3, 64))
    rows[1, 5] = np.nan
    with pytest.raises(UsageError, match="1 of 3 samples hold values that are not finite, the first in row 1"):
        load_run(run).predict(rows)
