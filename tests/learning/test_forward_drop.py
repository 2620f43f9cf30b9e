"""The study of digits over the forward drop of a network's diodes."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import circuitsim
from circuitsim.cli import main
from circuitsim.cli.studies.forward_drop import deck


def test_decks_have_diodes_of_the_drop(tmp_path: Path) -> None:
    for drop in (0.1, 0.4, 1.6):
        circuit = circuitsim.load(deck(drop, tmp_path))
        currents = [device.at(drop)[1] for device in circuit.devices.values()]  # type: ignore[attr-defined]
        assert len(currents) == 20
        assert currents == pytest.approx([1.0] * 20, rel=0.05)
    assert not circuitsim.load(deck(0.0, tmp_path)).devices


def test_a_stored_run_is_continued_and_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["reproduce", "forward-drop", "--drops", "0", "--gains", "4", "--epochs", "1", "--runs",
               str(tmp_path / "runs"), "--out", str(tmp_path / "out")]  # fmt: skip
    assert main(command) == 0
    page = capsys.readouterr().out
    (row,) = csv.DictReader((tmp_path / "out" / "forward-drop.csv").read_text().splitlines())
    # Its own numbers, put into a network made anew, give its own accuracy.
    assert row["accuracy"] == row["accuracy_of_ideal"]
    assert float(row["accuracy"]) > 20.0 and float(row["certificate"]) < 1e-9
    assert (tmp_path / "out" / "forward-drop.png").stat().st_size > 5000
    assert main([*command, "--budget", "0"]) == 0  # nothing is trained again
    assert capsys.readouterr().out == page


@pytest.mark.parametrize(("option", "wrong"), [(["--drops", "0,a"], "numbers"), (["--gains", "0"], "from 0.001")])
def test_refusals(option: list[str], wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "forward-drop", *option]) == 2
    assert wrong in capsys.readouterr().err
