"""One complex linear system, solved to about 30 digits, with an estimate of what is left of the error.

The factors of the matrix in doubles, or where these say nothing in pairs of doubles, are corrected with residuals that
are exact but for one rounding (iterative refinement in extended precision: Demmel et al., 2006). Whether corrections
lead to *the* solution is measured on a vector that is known: what they miss of it at first, they miss of any solution.
A singular matrix loses its null vector there, however its right-hand side lies.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from circuitsim.controlled.linear import Scaled, scales
from circuitsim.program.precise import PairFactor, Pairs
from circuitsim.small_signal.formulation import Coefficients

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix

CONTRACTION = 1e-2
"""Largest share of a known vector that a first correction may miss: each further one gains two digits or more."""
CORRECTIONS = 20
"""Most corrections: at 1e-2 each, 16 reach the 32 digits of pairs of doubles."""
ROUNDING = 2.0**-103
"""Share of its terms that a sum of products of pairs of doubles may be off by: some units of 2⁻¹⁰⁵."""
DENSE = 200
"""Most unknowns of factors in pairs of doubles: of 200 they take two seconds."""
GOLDEN = 0.5 * (5.0**0.5 - 1.0)
"""Of a turn: the cosines of its multiples are scattered."""


class Solution:
    """The solution of (A₀ + s A₁) x = b for any b.

    Parameters
    ----------
    coefficients : Coefficients
    dense : bool
        Whether factors in pairs of doubles are an alternative.

    Raises
    ------
    ArithmeticError
        The matrix is singular, as far as the arithmetic that fits its size can tell.
    """

    def __init__(self, coefficients: Coefficients, dense: bool = True) -> None:
        self.coefficients, self.size = coefficients, coefficients.matrix.shape[0]
        with np.errstate(all="ignore"):
            self._factor: _Doubles | _PairFactor | None
            self._factor, left, self.scale = _factored(coefficients.matrix)
            if self._factor is None or not self.missed() <= CONTRACTION:
                if not dense or self.size > DENSE:
                    raise ArithmeticError("singular")
                self._factor = _PairFactor(coefficients, np.tile(left, 2), np.tile(self.scale, 2))
                if not self.missed() <= CONTRACTION:
                    raise ArithmeticError("singular")

    def _rough(self, right: Pairs) -> Pairs:
        """An approximate solution."""
        assert self._factor is not None
        return self._factor.solve(right)

    def _residual(self, x: Pairs, right: Pairs) -> Pairs:
        """What the equations miss."""
        left = self.coefficients.left_over(x, right)
        if not np.isfinite(left.high).all():
            raise ArithmeticError("singular")
        return left

    def missed(self) -> float:
        """The largest share of any unknown that a first solution misses of a known vector, times their number."""
        known = np.tile(self.scale, 2) * np.cos(2.0 * np.pi * GOLDEN * np.arange(1, 2 * self.size + 1))
        try:
            found = self._rough(self._residual(Pairs.of(known), Pairs.of(np.zeros(known.size))))
        except ArithmeticError:
            return np.inf
        left = Pairs.of(known).plus(found).high
        return float(np.abs(left / known).max(initial=0.0)) * self.size

    def of(self, b: Pairs) -> tuple[Pairs, list[Pairs]]:
        """The solution (size,) for b (2 size,), and what it may be off by.

        These are corrections for what the equations still miss, and for rounding of that, as complex numbers.

        Raises
        ------
        ArithmeticError
            Numbers beyond the range of doubles.
        """
        scale = np.tile(self.scale, 2)
        with np.errstate(all="ignore"):
            x, before = self._rough(b), np.inf
            for _ in range(CORRECTIONS):
                left = self._rough(self._residual(x, b))
                size = float(np.abs(left.high / scale).max(initial=0.0))
                if not size < 0.5 * before:
                    break
                x, before = x.plus(left), size
            own = self.coefficients
            terms = np.abs(own.value.high * x.high[own.column])
            rounding = ROUNDING * (np.bincount(own.row, terms, b.high.size) + np.abs(b.high))
            turn = 2.0 * np.pi * GOLDEN * np.arange(b.high.size)
            off = [left, *(self._rough(Pairs.of(rounding * scattered)) for scattered in (np.cos(turn), np.sin(turn)))]
        return self._joined(x), [self._joined(part) for part in off]

    def _joined(self, x: Pairs) -> Pairs:
        n = self.size
        return Pairs(x.high[:n] + 1j * x.high[n:], x.low[:n] + 1j * x.low[n:])


def _factored(matrix: csc_matrix | np.ndarray) -> tuple[_Doubles | None, np.ndarray, np.ndarray]:
    """Factors in doubles, None where a pivot is zero or beyond the range of doubles, and scales of rows and columns."""
    from scipy.linalg import lapack
    from scipy.sparse import diags
    from scipy.sparse.csgraph import structural_rank
    from scipy.sparse.linalg import MatrixRankWarning, splu

    if isinstance(matrix, np.ndarray):
        scaled, left, right = Scaled.of(matrix)
        lu, pivot, info = lapack.zgetrf(scaled) if np.isfinite(scaled).all() else (None, None, 1)
        return (_Doubles(lambda b: lapack.zgetrs(lu, pivot, b)[0], left, right) if info == 0 else None), left, right
    left, right = scales(matrix.tocsr())
    scaled = (diags(left) @ matrix @ diags(right)).tocsc()
    scaled.eliminate_zeros()
    if not np.isfinite(scaled.data).all() or structural_rank(scaled) < scaled.shape[0]:
        return None, left, right  # SuperLU may end the process here
    with warnings.catch_warnings():
        warnings.simplefilter("error", MatrixRankWarning)
        try:
            return _Doubles(splu(scaled).solve, left, right), left, right
        except (RuntimeError, MatrixRankWarning):
            return None, left, right


class _Doubles:
    """Factors in doubles."""

    def __init__(self, solve: Callable[[np.ndarray], np.ndarray], left: np.ndarray, right: np.ndarray) -> None:
        self._solve, self.left, self.right = solve, left, right

    def solve(self, right: Pairs) -> Pairs:
        """A solution in doubles."""
        n = self.left.size
        found = self.right * self._solve(self.left * (right.high[:n] + 1j * right.high[n:]))
        return Pairs.of(np.concatenate([found.real, found.imag]))


class _PairFactor:
    """Dense factors in pairs of doubles.

    Raises
    ------
    ArithmeticError
        A pivot is zero.
    """

    def __init__(self, coefficients: Coefficients, left: np.ndarray, right: np.ndarray) -> None:
        (_, row, column, values, _), self.left, self.right = coefficients, left, right
        matrix = Pairs(np.zeros((left.size, left.size)), np.zeros((left.size, left.size)))
        key = row * left.size + column
        order = np.argsort(key, kind="stable")
        first = np.r_[True, np.diff(key[order]) != 0]
        rank = np.arange(order.size) - np.maximum.accumulate(np.where(first, np.arange(order.size), 0))
        for turn in range(int(rank.max(initial=-1)) + 1):
            own = order[rank == turn]
            place = (row[own], column[own])
            scale = left[place[0]] * right[place[1]]
            total = matrix.at(place).plus(Pairs(scale * values.high[own], scale * values.low[own]))
            matrix.high[place], matrix.low[place] = total
        self.factor = PairFactor(matrix)

    def solve(self, right: Pairs) -> Pairs:
        """A solution in pairs of doubles."""
        found = self.factor.solve(Pairs(self.left * right.high, self.left * right.low))
        return Pairs(self.right * found.high, self.right * found.low)


__all__ = ["DENSE", "Solution"]
