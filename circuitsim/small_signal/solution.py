"""One complex linear system, solved to about 30 digits, with an estimate of the remaining error.

The factors of the matrix in doubles, or where these fail in pairs of doubles, are corrected with residuals that are
exact except for one rounding (iterative refinement in extended precision: Demmel et al., 2006). Whether corrections
converge to *the* solution is measured on a known vector: their initial relative error there applies to any solution.
For a singular matrix the null vector is lost, for any right-hand side.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from circuitsim.controlled.linear import Scaled, scales
from circuitsim.program.precise import PairFactor, Pairs
from circuitsim.small_signal.equations import Formulation

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix

TURN = Pairs(np.array(6.283185307179586), np.array(2.4492935982947064e-16))
"""2π to 32 digits: the nearest double, and the double nearest to its error."""
CONTRACTION = 1e-2
"""Largest relative error of a first correction on a known vector: each further one gains two digits or more."""
CORRECTIONS = 20
"""Maximum number of corrections: at 1e-2 each, 16 reach the 32 digits of pairs of doubles."""
ROUNDING = 2.0**-103
"""Relative error of a sum of products of pairs of doubles, relative to its terms: some units of 2⁻¹⁰⁵."""
DENSE = 200
"""Maximum number of unknowns for factors in pairs of doubles, which take two seconds at 200."""
GOLDEN = 0.5 * (5.0**0.5 - 1.0)
"""Fraction of a turn whose multiples have scattered cosines."""


class Solution:
    """The solution of (A₀ + s A₁) x = b for any b, at s = growth + 2πj hertz.

    Parameters
    ----------
    made : Formulation
    hertz, growth : float
        Hz, 1/s.
    dense : bool
        Whether factors in pairs of doubles are an alternative.

    Raises
    ------
    ArithmeticError
        The matrix is singular to the precision of the arithmetic used for its size.
    """

    def __init__(self, made: Formulation, hertz: float, growth: float = 0.0, dense: bool = True) -> None:
        self.made, self.size, self.growth = made, made.size, growth
        self._turn = TURN.times(Pairs.of(np.array(hertz)))
        self.matrix = made.matrix(complex(growth, float(self._turn.high)))
        self._rough: Callable[[Pairs], Pairs] | None
        with np.errstate(all="ignore"):
            self._rough, left, self.scale = _factored(self.matrix)
            if self._rough is None or not self.missed() <= CONTRACTION:
                if not dense or self.size > DENSE:
                    raise ArithmeticError("singular")
                self._rough = self._in_pairs(left)
                if not self.missed() <= CONTRACTION:
                    raise ArithmeticError("singular")

    def _approximate(self, right: Pairs) -> Pairs:
        assert self._rough is not None
        return self._rough(right)

    def _residual(self, x: Pairs, right: Pairs) -> Pairs:
        """The residual."""
        stored = self.made.stored.times(x)
        turned = Pairs(1j * stored.high, 1j * stored.low).times(self._turn)
        left = right.minus(self.made.fixed.times(x)).minus(turned)
        if self.growth:
            left = left.minus(stored.times(Pairs.of(np.array(self.growth))))
        if not np.isfinite(left.high).all():
            raise ArithmeticError("singular")
        return left

    def missed(self) -> float:
        """The largest relative error of a first solution for a known vector, times the number of unknowns."""
        known = self.scale * _scattered(self.size, np.cos, 1)
        try:
            found = self._approximate(self._residual(Pairs.of(known), Pairs.of(np.zeros(known.size, complex))))
        except ArithmeticError:
            return np.inf
        left = Pairs.of(known).plus(found).high
        return float(np.abs(left.view(float) / known.view(float)).max(initial=0.0)) * self.size

    def of(self, b: Pairs) -> tuple[Pairs, list[Pairs]]:
        """The solution (size,) for b (size,), and its error contributions.

        These are the corrections for the remaining residual, and for its rounding.

        Raises
        ------
        ArithmeticError
            Overflow.
        """
        with np.errstate(all="ignore"):
            x, before = self._approximate(b), np.inf
            for _ in range(CORRECTIONS):
                left = self._approximate(self._residual(x, b))
                size = float(np.abs(left.high / self.scale).max(initial=0.0))
                if not size < 0.5 * before:
                    break
                x, before = x.plus(left), size
            s = complex(self.growth, float(self._turn.high))
            terms = self.made.fixed.magnitudes(x.high) + abs(s) * self.made.stored.magnitudes(x.high)
            rounding = ROUNDING * (terms + np.abs(b.high))
            probes = (Pairs.of(rounding * _scattered(self.size, wave, 0)) for wave in (np.cos, np.sin))
            return x, [left, *map(self._approximate, probes)]

    def _in_pairs(self, left: np.ndarray) -> Callable[[Pairs], Pairs]:
        """Solutions from dense factors in pairs of doubles, of real and imaginary parts.

        Raises
        ------
        ArithmeticError
            A pivot is zero.
        """
        fixed, stored = self.made.fixed.dense(), self.made.stored.dense()
        turned, real = stored.times(self._turn), fixed.plus(stored.times(Pairs.of(np.array(self.growth))))
        rows, columns = np.tile(left, 2), np.tile(self.scale, 2)
        factor = PairFactor(
            Pairs(*(rows[:, None] * np.block([[a, -c], [c, a]]) * columns for a, c in zip(real, turned)))
        )

        def solved(right: Pairs) -> Pairs:
            found = factor.solve(Pairs(*(rows * np.append(part.real, part.imag) for part in right)))
            parts = (np.split(columns * part, 2) for part in found)
            return Pairs(*(real + 1j * imaginary for real, imaginary in parts))

        return solved


def _scattered(size: int, wave: Callable[[np.ndarray], np.ndarray], first: int) -> np.ndarray:
    """Complex numbers with parts scattered between −1 and 1."""
    real, imaginary = np.split(wave(2.0 * np.pi * GOLDEN * np.arange(first, 2 * size + first)), 2)
    return real + 1j * imaginary


def _factored(
    matrix: csc_matrix | np.ndarray,
) -> tuple[Callable[[Pairs], Pairs] | None, np.ndarray, np.ndarray]:
    """A solver in doubles, None where a pivot is zero or overflows, and the scales of rows and columns."""
    from scipy.linalg import lapack
    from scipy.sparse import diags
    from scipy.sparse.csgraph import structural_rank
    from scipy.sparse.linalg import MatrixRankWarning, splu

    if isinstance(matrix, np.ndarray):
        scaled, left, right = Scaled.of(matrix)
        lu, pivot, info = lapack.zgetrf(scaled) if np.isfinite(scaled).all() else (None, None, 1)
        solve = (lambda b: lapack.zgetrs(lu, pivot, b)[0]) if info == 0 else None
        return _scaled(solve, left, right), left, right
    left, right = scales(matrix.tocsr())
    scaled = (diags(left) @ matrix @ diags(right)).tocsc()
    scaled.eliminate_zeros()
    if not np.isfinite(scaled.data).all() or structural_rank(scaled) < scaled.shape[0]:
        return None, left, right  # SuperLU may abort the process here
    with warnings.catch_warnings():
        warnings.simplefilter("error", MatrixRankWarning)
        try:
            return _scaled(splu(scaled).solve, left, right), left, right
        except (RuntimeError, MatrixRankWarning):
            return None, left, right


def _scaled(
    solve: Callable[[np.ndarray], np.ndarray] | None, left: np.ndarray, right: np.ndarray
) -> Callable[[Pairs], Pairs] | None:
    """A solver for a matrix, from that of the matrix with scaled rows and columns."""
    return None if solve is None else lambda b: Pairs.of(right * solve(left * b.high))


__all__ = ["DENSE", "Solution"]
