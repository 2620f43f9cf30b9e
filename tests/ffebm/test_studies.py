"""The published gradient and splitting studies, small; EP beside implicit differentiation on 6 blocks, 15 layers."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from circuitsim.blocks.hopfield import DeepHopfieldBlock, Sweeps
from circuitsim.blocks.resistive import ResistiveBlock
from circuitsim.cli import main
from circuitsim.cli.studies.gradients import figure_chain
from circuitsim.errors import UsageError
from circuitsim.ffebm import Chain, Chaining, Linear, Readout
from circuitsim.ffebm.comparison import gradient_cosines, gradient_curves


def test_six_blocks_and_fifteen_layers_agree_with_implicit_differentiation() -> None:
    """Cosines ≥ 0.9999 for every parameter, and every sweep a step of backpropagation, in double precision."""
    chain = figure_chain(sweeps=25, nudged=6)
    kinds = [element.kind for element in chain.elements]
    blocks = [element for element in chain.elements if element.kind == "convolutional-hopfield"]
    assert len(blocks) == 6
    assert sum(1 + len(b.options["channels"]) + len(b.options["dense"]) for b in blocks) == 15
    assert kinds[-1] == "readout"
    rng = np.random.default_rng(1)
    x, y = rng.integers(256, size=(2, 3072), dtype=np.uint8), rng.integers(10, size=2)
    cosines = gradient_cosines(chain, x, y)
    assert set(cosines) == set(chain.parameters)
    assert min(cosines.values()) >= 0.9999
    curves = gradient_curves(chain, x, y)
    assert {curve.name for curve in curves} == {
        f"{number}.{name}"
        for number, element in enumerate(chain.elements)
        if element in blocks
        for name in element.parameters
    }
    assert max(curve.deviation.max() for curve in curves) < 1e-9
    for curve in curves:
        assert curve.ep.shape == (6, 5)
        assert curve.deviation.shape == (6,)


def test_curves_of_dense_blocks() -> None:
    """Hopfield and resistive blocks in one chain; the first sweep differs from the last: there is something to see."""
    sweeps = Sweeps(800, 8)
    chain = Chain(
        [
            Linear(5, 6),
            DeepHopfieldBlock([6, 5, 4], clamped=False, bias=0.5, sweeps=sweeps),
            Linear(4, 3),
            ResistiveBlock([6, 4, 3], inputs=3, sweeps=sweeps),
            Readout(3, 2),
        ],
        dtype=np.float64,
        rule=Chaining(beta=1e-4),
        seed=3,
    )
    rng = np.random.default_rng(0)
    curves = {c.name: c for c in gradient_curves(chain, rng.normal(size=(4, 5)), rng.integers(2, size=4), 20)}
    assert max(curve.deviation.max() for curve in curves.values()) < 1e-9
    first = curves["1.weights1"]
    assert np.abs(first.ep[0] - first.ep[-1]).max() > 1e-3 * np.abs(first.ep[-1]).max()


def test_what_does_not_sweep_has_no_curves() -> None:
    from circuitsim.ffebm import build

    deck = "one\n*! input V1\n*! output v(a)\n*! trainable R1\nV1 x 0 0\nR1 x a 1k\nR2 a 0 1k\n"
    chain = Chain([Linear(2, 1), build({"kind": "circuit", "deck": deck}), Readout(1, 2)], dtype=np.float64)
    with pytest.raises(UsageError, match="solved without sweeps"):
        gradient_curves(chain, np.ones((2, 2)), np.array([0, 1]))


@pytest.mark.parametrize("study", ["gdu", "cosine"])
def test_gradient_studies_write_page_table_and_figure(
    study: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reproduce", study, "--sweeps", "8", "--nudged-sweeps", "2", "--out", str(tmp_path)]
    assert main(words) == 0
    page = capsys.readouterr().out
    assert "6 blocks, 15 layers" in page and "change between the phases (kinks): 0" in page
    for suffix in ("md", "csv", "png"):
        assert (tmp_path / f"{study}.{suffix}").stat().st_size > 500


def test_splitting_study_keeps_what_it_has_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["reproduce", "split", "--seeds", "1", "--layers", "6", "--epochs", "1", "--width", "8"]
    words += ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path)]
    assert main(words) == 0
    page = capsys.readouterr().out
    assert [page.count(f"| 6 | {size} | {method} | 1 |") for size in (6, 3, 2) for method in ("ep", "bp")] == [1] * 6
    ours = [line.split("|")[6] for line in page.splitlines() if line.startswith("| 6 |")]
    assert "±" not in str(ours)  # one run has no deviation
    with open(tmp_path / "split.csv") as file:
        assert len(list(csv.DictReader(file))) == 6
    # A run that is there is taken as it is.
    (tmp_path / "split.md").unlink()
    assert main([*words, "--budget", "0"]) == 0
    assert capsys.readouterr().out == page and (tmp_path / "split.md").read_text() in page
    assert main([*words[:-6], "--width", "9", *words[-4:]]) == 2
    assert "holds a run with other elements" in capsys.readouterr().err


def _cifar100(folder: Path) -> None:
    """Random images in CIFAR-100's binary form."""
    rng = np.random.default_rng(0)
    for name, count in (("train.bin", 24), ("test.bin", 30)):
        records = rng.integers(256, size=(count, 2 + 3072), dtype=np.uint8)
        records[:, 0], records[:, 1] = 0, np.arange(count) % 100
        (folder / name).write_bytes(records.tobytes())


def test_table2_prints_the_paper_beside_ours_and_continues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _cifar100(tmp_path)
    words = ["reproduce", "table2", "--size", "small", "--datasets", "cifar100", "--layers", "12", "--seeds", "1"]
    words += ["--data-dir", str(tmp_path), "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    assert main([*words, "--epochs", "1"]) == 0
    captured = capsys.readouterr()
    page = captured.out
    (ep_title,) = [line for line in captured.err.splitlines() if "; ep, " in line]
    assert "6 × convolutional-hopfield" in ep_title and len(ep_title) < 200
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if "| 12 |" in line]
    assert [row[:5] for row in rows] == [["cifar100", "12", "ep", "1", "1"], ["cifar100", "12", "bp", "1", "1"]]
    assert all(row[8:] == ["–"] * 3 for row in rows)
    assert all("±" not in row[5] + row[6] and float(row[6]) >= float(row[5]) for row in rows)
    with open(tmp_path / "out" / "table2.csv") as file:
        assert [row["method"] for row in csv.DictReader(file)] == ["ep", "bp"]
    # With no time left the stored runs are not begun again, and nothing new is.
    assert main([*words, "--epochs", "1", "--methods", "ep"]) == 0
    assert capsys.readouterr().out.count("| 12 |") == 1


def test_top_five_counts_labels_among_the_largest_outputs() -> None:
    chain = Chain([Linear(3, 12)], dtype=np.float64, seed=0)
    x = np.random.default_rng(1).normal(size=(50, 3))
    output, labels = chain.output(x), np.random.default_rng(2).integers(12, size=50)
    expected = np.mean([label in np.argsort(row)[-5:] for row, label in zip(output, labels)])
    assert chain.top(x, labels, 5) == expected
    assert chain.top(x, labels, 1) == chain.score(x, labels)
    assert chain.top(x, labels, 12) == 1.0
