"""Values of options that are of another kind than they should be: exit code 2, the file and the option by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from circuitsim.cli.options import LARGEST
from circuitsim.errors import UsageError
from circuitsim.training import TrainingPlan

from .conftest import Command


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('epochs = "a"', "epochs must be a whole number, not 'a'"),
        ("epochs = true", "epochs must be a whole number, not true"),
        ("epochs = 1.5", "epochs must be a whole number, not 1.5"),
        ("epochs = 2.0", "epochs must be a whole number, not 2.0"),
        ("epochs = [1]", "epochs must be a whole number, not [1]"),
        ("epochs = 1979-05-27", "epochs must be a whole number, not datetime.date(1979, 5, 27)"),
        (f"batch = {LARGEST + 1}", f"batch must be at most {LARGEST}, not {LARGEST + 1}"),
        ("lr = 1" + "0" * 400, "lr must be a finite number, not 1000"),
        (r'data-dir = "a\u0000"', r"data_dir must be a text (without NUL), not 'a\x00'"),
        ("lr = nan", "lr must be a finite number, not nan"),
        ("lr = false", "lr must be a finite number, not false"),
        ("evaluate-every = {}", "evaluate_every must be a whole number, not {}"),
        ("model = 'rbm'", "the model stands on the command line: circuitsim train MODEL --config FILE"),
        ("dataset = ['digits']", "dataset must be a text (without NUL), not ['digits']"),
        ("cold = 1", "cold must be true or false, not 1"),
        ("trainable = 'R*'", "trainable must be a list of texts, not 'R*'"),
        ("elements = [1]", "elements must be a list of tables, not [1]"),
        ("precision = 'float16'", "precision must be float32 or float64, not 'float16'"),
        ("out = 1", "out must be a text (without NUL), not 1"),
        ("x = " + "[" * 50_000, ""),
        ("epochs = " + "9" * 5000, ""),
    ],
)
def test_values_in_toml(command: Command, tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "my.toml"
    path.write_text(line + "\n")
    family = {"cold": "dhn", "trai": "circuit", "elem": "ffebm"}.get(line[:4], "rbm")
    code, out, err = command("train", family, "--config", path)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {path}: {message}")


def test_toml_that_is_none(command: Command, tmp_path: Path) -> None:
    (tmp_path / "junk.toml").write_bytes(bytes(range(256)))
    for path in (tmp_path, tmp_path / "junk.toml"):
        code, out, err = command("train", "rbm", "--config", path)
        assert (code, out) == (2, "") and str(path) in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--seed", "-1"), "--seed must be at least 0, not -1"),
        (("--lr", "nan"), "--lr must be a finite number, not nan"),
        (("--checkpoint-seconds", "inf"), "--checkpoint-seconds must be a finite number, not inf"),
        (("--batch", str(LARGEST + 1)), f"--batch must be at most {LARGEST}, not {LARGEST + 1}"),
    ],
)
def test_values_on_the_command_line(command: Command, words: tuple[str, ...], message: str) -> None:
    assert command("train", "rbm", *words) == (2, "", f"error: {message}\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "rbm", "epochs": "2"}, "epochs must be a whole number, not '2'"),
        ({"model": "rbm", "persistent": None}, "persistent must be a whole number, not None"),
        ({"model": ["rbm"]}, "model must be a text (without NUL), not ['rbm']"),
        ({}, "model must be a text (without NUL), not None"),
        ({"model": "drn-xs"}, "model 'drn-xs' is no model of this version; start the run anew"),
    ],
)
def test_values_of_a_recorded_run(command: Command, tmp_path: Path, options: dict, message: str) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"options": options, "versions": {}}))
    assert command("train", "resume", "--out", tmp_path) == (2, "", f"error: {config}: {message}\n")


@pytest.mark.parametrize("name", ["epochs", "batch", "seed", "evaluate_every"])
@pytest.mark.parametrize("value", [True, 1.5, "3", None])
def test_a_plan_takes_whole_numbers_only(name: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"^{name} must be a whole number, not "):
        TrainingPlan(**{"epochs": 1, "batch": 1, name: value})


WORST_CASE = ("worst-case", "--tol", "R*=1%", "--observe", "v(out)")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("sweep", "--vary", "V1=0:1:1", "--workers", "0"), "--workers must be at least 1, not 0"),
        ((*WORST_CASE, "--workers", "0"), "--workers must be at least 1, not 0"),
        ((*WORST_CASE, "--gap", "x"), "argument --gap: 'x' is not a number"),
        ((*WORST_CASE, "--gap=-1"), "argument --gap: -1 is less than 0"),
        ((*WORST_CASE, "--budget", "0"), "--budget must be at least 1, not 0"),
        (("solve", "--drops", "--top", "-1"), "--top must be at least 0, not -1"),
        (("tran", "--accuracy", "nan"), "argument --accuracy: "),
        (("sweep", "--vary", "V1=0:1:1", "--checkpoint", "my.cir"), "--checkpoint 'my.cir' is no folder"),
        (("report", "--capacitance", "1p"), "--capacitance is for the folder of a run"),
    ],
)
def test_values_out_of_range(command: Command, deck, words: tuple[str, ...], message: str) -> None:
    code, out, err = command(words[0], deck(), *words[1:])
    assert (code, out) == (2, "") and err.startswith(f"error: {message}"), err


def test_a_folder_that_is_no_run(command: Command, tmp_path: Path) -> None:
    assert "name a deck or a run" in command("report", tmp_path).err
