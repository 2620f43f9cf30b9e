"""``circuitsim train rbm`` as a person meets it."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from test_datasets_images import write_mnist

from circuitsim.boltzmann import RestrictedBoltzmannMachine
from circuitsim.cli import main
from circuitsim.cli.models import MODELS

SMALL = ["train", "rbm", "--dataset", "diag", "--hidden", "5", "--batch", "3"]


def _rows(directory):
    rows = [json.loads(line) for line in (directory / "history.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def test_a_run_leaves_everything_behind(tmp_path, capsys):
    out = tmp_path / "run"
    assert main([*SMALL, "--epochs", "30", "--evaluate-every", "10", "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "rbm: 6 visible and 5 hidden units, CD, k = 1, 7 samples" in printed.out
    assert "(exact)" in printed.out and "bound on the bias" in printed.out
    assert sorted(file.name for file in out.iterdir()) == [
        ".lock",
        "checkpoint.npz",
        "config.json",
        "filters.png",
        "history.csv",
        "history.jsonl",
        "learning.png",
        "model.npz",
        "samples.png",
    ]
    rows = _rows(out)
    assert [row["epoch"] for row in rows] == [10, 20, 30]
    assert rows[-1]["updates"] == 90 and 0 < rows[-1]["exact_bias"] <= rows[-1]["bound"] < 1
    config = json.loads((out / "config.json").read_text())
    assert config["options"]["hidden"] == 5 and config["options"]["k"] == 1 and config["versions"]["numpy"]
    assert RestrictedBoltzmannMachine.load(out / "model.npz").weights.shape == (5, 6)


def test_without_out_nothing_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*SMALL, "--epochs", "1"]) == 0
    assert list(tmp_path.iterdir()) == [] and "bound on the bias" in capsys.readouterr().out


def test_adaptive_k_persistent_chains_and_grey_images(tmp_path, capsys):
    write_mnist(tmp_path)
    words = ["train", "rbm", "--data-dir", str(tmp_path), "--epochs", "1", "--hidden", "8", "--grey"]
    assert main([*words, "--persistent", "4", "--k-max", "3", "--no-pictures", "--out", str(tmp_path / "o")]) == 0
    printed = capsys.readouterr()
    assert "784 visible and 8 hidden units, persistent CD, k from 1 to 3, 12 samples" in printed.out
    assert "vacuous: no gradient exceeds 1" in printed.out
    (row,) = _rows(tmp_path / "o")
    assert row["vacuous"] is True and row["exact_bias"] is None and row["log_likelihood"] is None


def test_falls_back_to_the_bundled_digits_and_says_so(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn")
    monkeypatch.setenv("CIRCUITSIM_DATA", str(tmp_path / "data"))
    out = ["--out", str(tmp_path / "run")]
    assert main(["train", "rbm", "--epochs", "0", *out]) == 0
    printed = capsys.readouterr()
    assert f"note: MNIST is not in {tmp_path / 'data'}: taking scikit-learn's bundled digits (circuitsim" in printed.err
    # What was chosen is recorded: MNIST that comes later does not change the run to resume.
    (tmp_path / "data").mkdir()
    write_mnist(tmp_path / "data")
    assert main(["train", "resume", "--epochs", "0", *out]) == 0
    assert "64 visible" in capsys.readouterr().out
    assert "note: too many units to enumerate: the distance in the bound is replaced by 1" in printed.err
    assert "nothing was trained (0 epochs)" in printed.out


@pytest.mark.parametrize(
    "words, message",
    [
        (
            ["train", "--model", "rbm"],
            "circuitsim train --model was removed: name the model first: `circuitsim train drn --preset drn-xs`",
        ),
        (["train", "drn-1h"], "drn-1h is a preset: circuitsim train drn --preset drn-1h"),
        (["train", "my.cir", "--data", "x"], "a deck is trained by circuitsim train circuit my.cir"),
        (["train", "drn", "--tol", "1"], "circuitsim train --tol was removed: use `--tolerance`"),
        (
            ["train", "circuit", "my.cir", "--estimator", "centred"],
            "circuitsim train --estimator was removed: use `--variant`",
        ),
        (["train", "gpt"], f"there is no model 'gpt'; there are {', '.join(MODELS)}"),
        ([*SMALL, "--k", "0"], "k, the number of Gibbs steps, must be at least 1, not 0"),
        ([*SMALL, "--k", "5", "--k-max", "4"], "k_max must be at least k = 5, not 4"),
        ([*SMALL, "--lr", "-1"], "a learning rate must be finite and not negative, not -1.0"),
        ([*SMALL, "--lr", "nan"], "--lr must be a finite number, not nan"),
        ([*SMALL, "--momentum", "2"], "momentum must lie in [0, 1), not 2.0"),
        ([*SMALL, "--weight-decay", "-1"], "a weight decay must be finite and not negative, not -1.0"),
        ([*SMALL, "--epochs", "-1"], "epochs must be at least 0, not -1"),
        ([*SMALL, "--batch", "0"], "batch must be at least 1, not 0"),
        ([*SMALL, "--hidden", "0"], "a Boltzmann machine needs at least one unit in each layer, not 6 and 0"),
        ([*SMALL, "--units", "0"], "patterns need at least one unit, not 0"),
        ([*SMALL, "--spread", "-1"], "the spread of the initial weights must not be negative, not -1.0"),
        ([*SMALL, "--persistent", "-1"], "the number of persistent chains must not be negative, not -1"),
        ([*SMALL, "--seed", "-1"], "--seed must be at least 0, not -1"),
        ([*SMALL, "--resume"], "circuitsim train --resume was removed: use `circuitsim train resume --out DIR`"),
        (
            ["train", "rbm", "--dataset", "cats"],
            "there is no data set 'cats' for rbm; there are digits, mnist, diag, 1dball",
        ),
        (
            ["train", "rbm", "--data-dir", "/nonexistent"],
            "the data directory /nonexistent does not exist",
        ),
        (
            ["train", "resume", "--out", "/nonexistent/run"],
            "there is no run to resume in /nonexistent/run (no config.json)",
        ),
    ],
)
def test_refusals(words, message, capsys):
    assert main(words) == 2
    assert capsys.readouterr().err == f"error: {message}\n"


def test_a_number_that_is_none_is_bad_usage(capsys):
    assert main([*SMALL, "--k", "many"]) == 2
    assert capsys.readouterr().err.startswith("error: argument --k: 'many' is not a whole number\n")


def test_an_occupied_directory_and_a_contradicting_resumption(tmp_path, capsys):
    out = ["--out", str(tmp_path / "run"), "--no-pictures"]
    assert main([*SMALL, "--epochs", "1", *out]) == 0
    capsys.readouterr()
    assert main([*SMALL, "--epochs", "1", *out]) == 2
    assert "already holds a run; continue it with circuitsim train resume --out" in capsys.readouterr().err
    assert main(["train", "resume", "--lr", "0.9", *out]) == 2
    assert capsys.readouterr().err.startswith("error: unrecognized arguments: --lr 0.9\n")
    assert main(["train", "resume", "--threads", "2", *out]) == 2
    assert capsys.readouterr().err == "error: --threads is not an option of circuitsim train rbm\n"
    assert main(["train", "resume", "--epochs", "2", *out]) == 0
    assert [row["epoch"] for row in _rows(tmp_path / "run")] == [1, 2]
    # The longer run is now the recorded one: resuming it again has nothing left to do, and a shorter one is refused.
    assert main(["train", "resume", *out]) == 0 and len(_rows(tmp_path / "run")) == 2
    capsys.readouterr()
    assert main(["train", "resume", "--epochs", "1", *out]) == 2
    assert capsys.readouterr().err == "error: the run is already in epoch 2, beyond the 1 asked for\n"


def test_a_corrupted_checkpoint_is_named(tmp_path, capsys):
    out = tmp_path / "run"
    assert main([*SMALL, "--epochs", "1", "--no-pictures", "--out", str(out)]) == 0
    capsys.readouterr()
    whole = (out / "checkpoint.npz").read_bytes()
    (out / "checkpoint.npz").write_bytes(whole[: len(whole) // 2])
    assert main(["train", "resume", "--out", str(out)]) == 2
    assert f"error: the checkpoint {out}/checkpoint.npz is damaged and cannot be read (" in capsys.readouterr().err
    (out / "config.json").write_text('{"options": {"model": "rbm"}}')
    assert main(["train", "resume", "--out", str(out)]) == 2
    assert "error: the recorded configuration lacks epochs, " in capsys.readouterr().err


def test_divergence_is_an_answer_not_a_traceback(tmp_path, capsys):
    words = [*SMALL, "--epochs", "400", "--momentum", "0.99", "--lr", "1e38", "--out", str(tmp_path / "run")]
    assert main(words) == 3
    message = capsys.readouterr().err
    assert message.startswith("error: training diverged: ") and message.count("\n") == 1


LONG = [*SMALL, "--epochs", "3600", "--evaluate-every", "300", "--k-max", "4", "--momentum", "0.5", "--persistent", "3"]
LONG += ["--no-pictures"]


def _start(out, *more):
    script = "import sys; from circuitsim.cli import main; sys.exit(main())"
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", script, *LONG, "--out", str(out), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def _wait_for(path, process):
    for _ in range(6000):
        if path.exists() and path.stat().st_size:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    raise AssertionError(f"{path} never came")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "run"
    assert main([*LONG, "--out", str(out)]) == 0
    return out


def _same(out, uninterrupted):
    assert (out / "model.npz").read_bytes() == (uninterrupted / "model.npz").read_bytes()
    assert _rows(out) == _rows(uninterrupted)
    assert len((out / "history.csv").read_text().splitlines()) == 13


def test_interrupted_by_hand_and_resumed_it_is_the_same_run_bit_for_bit(tmp_path, uninterrupted, capsys):
    out = tmp_path / "run"
    process = _start(out)
    _wait_for(out / "history.jsonl", process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert errors.startswith("interrupted after ")
    assert errors.endswith(f"saved in {out}; continue with circuitsim train resume --out {out}\n")
    assert 0 < len(_rows(out)) < 12
    assert main(["train", "resume", "--out", str(out), "--no-pictures"]) == 0
    _same(out, uninterrupted)


def test_killed_and_resumed_it_is_the_same_run_bit_for_bit(tmp_path, uninterrupted):
    out = tmp_path / "run"
    process = _start(out, "--checkpoint-seconds", "0.05")
    _wait_for(out / "checkpoint.npz", process)
    _wait_for(out / "history.jsonl", process)
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert not (out / "model.npz").exists()
    assert main(["train", "resume", "--out", str(out), "--no-pictures"]) == 0
    _same(out, uninterrupted)
    assert not list(out.glob("*.part"))
