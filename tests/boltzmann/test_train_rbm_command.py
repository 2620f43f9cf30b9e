"""``circuitsim train rbm`` as a person meets it."""

import json

import pytest
from helpers import write_mnist

from circuitsim.cli import main


def test_adaptive_k_persistent_chains_and_grey_images(tmp_path, capsys):
    write_mnist(tmp_path)
    words = ["train", "rbm", "--data-dir", str(tmp_path), "--epochs", "1", "--hidden", "8", "--grey"]
    assert main([*words, "--persistent", "4", "--k-max", "3", "--no-pictures", "--out", str(tmp_path / "o")]) == 0
    printed = capsys.readouterr()
    assert "784 visible and 8 hidden units, persistent CD, k from 1 to 3, 12 samples" in printed.out
    assert "vacuous" in printed.out and "exact_bias" not in printed.out
    row = json.loads((tmp_path / "o" / "history.jsonl").read_text())
    assert row["vacuous"] is True and row["exact_bias"] is None and row["log_likelihood"] is None


def test_falls_back_to_the_bundled_digits_and_says_so(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn")
    monkeypatch.setenv("CIRCUITSIM_DATA", str(tmp_path / "data"))
    out = ["--out", str(tmp_path / "run")]
    assert main(["train", "rbm", "--epochs", "0", *out]) == 0
    printed = capsys.readouterr()
    assert f"note: MNIST is not in {tmp_path / 'data'}: using scikit-learn's bundled digits (circuitsim" in printed.err
    # What was chosen is recorded: MNIST that comes later does not change the run to resume.
    write_mnist(tmp_path / "data")
    assert main(["train", "resume", "--epochs", "0", *out]) == 0
    assert "64 visible" in capsys.readouterr().out
    assert "note: too many units to enumerate: the distance in the bound is replaced by 1" in printed.err
    assert "nothing was trained (0 epochs)" in printed.out
