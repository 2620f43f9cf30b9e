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
        f"{number}.{name}" for number, element in enumerate(chain.elements) if element in blocks
        for name in element.parameters
    }  # fmt: skip
    assert max(curve.deviation.max() for curve in curves) < 1e-9
    for curve in curves:
        assert curve.ep.shape == (6, 5)
        assert curve.deviation.shape == (6,)


def test_curves_of_dense_blocks() -> None:
    """Hopfield and resistive blocks in one chain; the first sweep differs from the last: there is something to see."""
    sweeps = Sweeps(800, 8)
    chain = Chain(
        [Linear(5, 6), DeepHopfieldBlock([6, 5, 4], clamped=False, bias=0.5, sweeps=sweeps), Linear(4, 3),
         ResistiveBlock([6, 4, 3], inputs=3, sweeps=sweeps), Readout(3, 2)],
        dtype=np.float64, chaining=Chaining(beta=1e-4), seed=3,
    )  # fmt: skip
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
    assert "6 blocks, 15 layers" in capsys.readouterr().out
    for suffix in ("md", "csv", "png"):
        assert (tmp_path / f"{study}.{suffix}").stat().st_size > 500


def test_splitting_study_keeps_what_it_has_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["reproduce", "split", "--seeds", "1", "--layers", "6", "--epochs", "1", "--width", "8"]
    words += ["--out", str(tmp_path)]
    assert main(words) == 0
    page = capsys.readouterr().out
    assert [page.count(f"| 6 | {size} | 1 |") for size in (6, 3, 2)] == [1, 1, 1]
    ours = [line.split("|")[4:6] for line in page.splitlines() if line.startswith("| 6 |")]
    assert "±" not in str(ours)  # one run has no deviation
    with open(tmp_path / "split.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6
    # A run that is there is taken as it is.
    text = (tmp_path / "split.csv").read_text().replace(rows[0]["accuracy"], "12.5", 1)
    (tmp_path / "split.csv").write_text(text)
    (tmp_path / "split.md").unlink()
    assert main(words) == 0
    page = capsys.readouterr().out
    assert "12.50" in page and (tmp_path / "split.md").read_text() in page
    assert main([*words[:-4], "--width", "9", "--out", str(tmp_path)]) == 2
    assert "choose another --out" in capsys.readouterr().err
