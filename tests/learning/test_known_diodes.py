"""Samples that begin with the diodes of the nearest sample before."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from random_circuits import random_case

import circuitsim
from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.errors import UsageError
from circuitsim.learning.function import evaluate
from circuitsim.learning.known_diodes import KnownDiodes


def test_the_nearest_and_latest_of_the_remembered_ones() -> None:
    circuit = circuitsim.loads("one\nV1 a 0 1\nR1 a 0 1\n.end")
    known = KnownDiodes(circuit, most=5)
    rng = np.random.default_rng(0)
    assert known.start(np.zeros((2, 3))) is None
    x, closed = rng.normal(size=(7, 3)), rng.random((7, 11)) < 0.5
    for k in (0, 3, 4):
        known.add(x[k : k + 3], closed[k : k + 3])
    remembered = [4, 5, 6]  # the last five rows of 0 1 2, 3 4 5, 4 5 6
    assert len(known) == 5
    near = rng.normal(size=(20, 3))
    nearest = [min(remembered, key=lambda k: float(((x[k] - row) ** 2).sum())) for row in near]
    found = known.start(near)
    assert found is not None and np.array_equal(found.solution.closed, closed[nearest])
    known.add(x[6:], ~closed[6:])
    again = known.start(x[6:])
    assert again is not None and np.array_equal(again.solution.closed, ~closed[6:])
    for copied in (copy.deepcopy(known), pickle.loads(pickle.dumps(known))):
        assert len(copied) == 0 and copied.most == 5


@pytest.mark.parametrize("seed", range(3))
def test_results_are_the_same_in_fewer_linear_circuits(seed: int) -> None:
    case = random_case(seed)
    block = CircuitBlock(case.circuit, case.roles)
    known = KnownDiodes(block.circuit)
    x = np.random.default_rng(seed).normal(size=(40, block.n_inputs))
    cold = evaluate(block, x, block.parameters)
    cotangent = np.ones_like(cold.output)
    for rows in (np.arange(40), np.random.default_rng(1).permutation(40)):
        warm = evaluate(block, x[rows], block.parameters, known)
        assert warm.output == pytest.approx(cold.output[rows], rel=1e-11, abs=1e-12)
        for one, other in zip(warm.pullback(cotangent)[0].values(), cold.pullback(cotangent)[0].values(), strict=True):
            assert one == pytest.approx(other, rel=1e-9, abs=1e-11)
    assert len(known) == 80
    solved = warm.state.solution.iterations
    assert (solved == 1).all() and cold.state.solution.iterations.sum() > 40


def test_layers_remember_and_other_circuits_are_refused() -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    import torch

    from circuitsim.torch import CircuitLayer

    layer = CircuitLayer("netlists/learn-divider.cir", warm_start=True, dtype=torch.float64)
    cold = CircuitLayer("netlists/learn-divider.cir", dtype=torch.float64)
    x = torch.tensor([[2.0], [-1.0]], dtype=torch.float64)
    for _ in range(2):
        torch.testing.assert_close(layer(x), cold(x), rtol=1e-12, atol=0)
    assert len(layer._known) == 4 and len(copy.deepcopy(layer)._known) == 0
    smooth = circuitsim.loads("smooth\nV1 a 0 1\nR1 a b 1k\nD1 b 0 dm\n.model dm D(is=1e-14)\n.end")
    with pytest.raises(UsageError, match="warm_start needs a circuit of resistors, ideal diodes and sources"):
        CircuitLayer(smooth, "V1", "v(b)", "R1 min=1 max=1e6", warm_start=True)
