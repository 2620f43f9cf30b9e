"""Gradients of EP beside implicit differentiation on 6 blocks, 15 layers; curves of sweeps; the five best classes."""

import numpy as np
import pytest

from circuitsim.blocks.hopfield import DeepHopfieldBlock, Sweeps
from circuitsim.blocks.layered import ResistiveBlock
from circuitsim.cli.reproduce import figure_chain
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


def test_top_five_counts_labels_among_the_largest_outputs() -> None:
    chain = Chain([Linear(3, 24)], dtype=np.float64, seed=0)
    x = np.random.default_rng(1).normal(size=(50, 3))
    output, labels = chain.output(x), np.random.default_rng(2).integers(24, size=50)
    expected = np.mean([label in np.argsort(row)[-5:] for row, label in zip(output, labels)])
    assert 0.0 < expected < 1.0 and chain.evaluate(x, labels)["top5_error"] == pytest.approx(1.0 - expected)
