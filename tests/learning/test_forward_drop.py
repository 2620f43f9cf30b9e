"""The study of digits over the forward drop: its decks, its features, files of MNIST's form."""

import csv
from pathlib import Path

import numpy as np
import pytest
from helpers import idx

import circuitsim
from circuitsim.cli import main
from circuitsim.cli.reproduce import deck, features


def test_decks_have_diodes_of_the_drop(tmp_path: Path) -> None:
    for drop in (0.1, 0.4, 1.6):
        circuit = circuitsim.load(deck(drop, tmp_path))
        currents = [device.at(drop)[1] for device in circuit.devices.values()]  # type: ignore[attr-defined]
        assert len(currents) == 20
        assert currents == pytest.approx([1.0] * 20, rel=0.05)
    assert not circuitsim.load(deck(0.0, tmp_path)).devices


def test_features_are_means_and_their_negatives() -> None:
    image = np.zeros((28, 28), dtype=np.uint8)
    image[2:5, 2:5], image[23, 25], image[0, 0] = 255, 90, 255
    found = features(np.stack([image, image]).reshape(2, -1), 28)
    wanted = np.zeros((8, 8))
    wanted[0, 0], wanted[7, 7] = 1.0, 90.0 / 255.0 / 9.0
    np.testing.assert_allclose(found, [np.concatenate([wanted.ravel(), -wanted.ravel()])] * 2, atol=1e-15)


def test_a_small_run_on_files_of_mnists_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mnist"
    folder.mkdir()
    for name, count in (("train", 200), ("t10k", 100)):
        labels, images = np.arange(count) % 10, np.zeros((count, 28, 28))
        for image, label in zip(images, labels):
            image[4 + label : 10 + label, 4:24] = 255
        (folder / f"{name}-images-idx3-ubyte").write_bytes(idx(images))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(idx(labels))
    command = f"reproduce forward-drop --dataset mnist --data-dir {tmp_path} --drops 0 --gains 4 --epochs 2".split()
    command += ["--out", str(tmp_path / "out"), "--samples"]
    assert main([*command, "400"]) == 2
    assert "--samples takes 1 to 200" in capsys.readouterr().err
    assert main([*command, "200"]) == 0
    assert "Trained here on mnist-train." in capsys.readouterr().out
    *_, row = csv.DictReader((tmp_path / "out" / "forward-drop.csv").read_text().splitlines())
    assert float(row["test_error"]) < 0.8
