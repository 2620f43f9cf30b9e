"""Trained models from their files alone: what `predict` says is what training measured."""

import json
from pathlib import Path

import numpy as np
import pytest

from circuitsim.cli import main
from circuitsim.errors import UsageError
from circuitsim.trained import load_run

Capture = pytest.CaptureFixture[str]


def trained(tmp_path: Path, *words: str) -> Path:
    run = tmp_path / "run"
    assert main(["train", *words, "--out", str(run), "--no-pictures"]) == 0
    return run


def last_row(run: Path) -> dict[str, float]:
    return json.loads((run / "history.jsonl").read_text().splitlines()[-1])


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


def test_a_boltzmann_machine(tmp_path: Path) -> None:
    run = trained(tmp_path, "rbm", "--dataset", "diag", "--hidden", "4", "--epochs", "20")
    model = load_run(run)
    samples = model.read("diag")
    found = model.evaluate(samples)
    assert found["pseudo_log_likelihood"] == pytest.approx(last_row(run)["pseudo_likelihood"], rel=1e-5)
    assert ((model.outputs(samples.x) > 0) & (model.outputs(samples.x) < 1)).all()
    with pytest.raises(UsageError, match="no classes"):
        model.predict(samples.x)


def test_a_truncated_deck_is_refused_by_its_name(tmp_path: Path, capsys: Capture) -> None:
    deck = Path(__file__).parents[2] / "netlists" / "learn-divider"
    run = trained(tmp_path, "circuit", f"{deck}.cir", "--data", f"{deck}.csv", "--epochs", "1")
    predict = ["predict", str(run), "--data", f"{deck}.csv"]
    whole, other = (run / "trained.cir").read_text(), run / "trained.cir"
    assert main(predict) == 0
    other.write_text("\n".join(whole.splitlines()[:-4]))
    assert main(predict) == 2
    assert f"{other} is not as training wrote it, but truncated or edited" in capsys.readouterr().err
    assert main(["train", "resume", "--out", str(run), "--no-pictures"]) == main(predict) == 0
    assert other.read_text() == whole


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
