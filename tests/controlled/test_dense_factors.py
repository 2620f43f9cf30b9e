"""Dense factors of small systems: several right-hand sides, the transposed system, singular matrices."""

from __future__ import annotations

import numpy as np
import pytest

from circuitsim.controlled.linear import FEW, _DenseLU


@pytest.mark.parametrize("columns", [0, 1, 2, FEW, FEW + 1, 20])
@pytest.mark.parametrize("trans", ["N", "T"])
def test_solutions(columns: int, trans: str) -> None:
    rng = np.random.default_rng(columns)
    matrix, right = rng.normal(size=(12, 12)), rng.normal(size=(12, columns))
    found = _DenseLU(matrix.copy()).solve(right, trans)
    assert found.shape == right.shape
    assert np.abs((matrix if trans == "N" else matrix.T) @ found - right).max(initial=0.0) < 1e-11


def test_a_singular_matrix_is_named() -> None:
    with pytest.raises(ArithmeticError, match="singular"):
        _DenseLU(np.zeros((2, 2)))
