"""Matrices of circuits with controlled elements: one linear circuit, and proofs about its matrix.

Sparse unsymmetric LU factors, and iterative refinement: residuals are accumulated in pairs of doubles (`corrected`, a
kernel), so that solutions have about 30 digits if the factors have a few: small currents next to large ones keep their
own digits.

A matrix of doubles with bounded errors is proven to be regular, or a P-matrix. A linear complementarity problem has a
unique solution for every constant iff its matrix is a P-matrix (Samelson, Thrall & Wesler 1958). Bounds include the
rounding of the tests themselves (Rump 2010), so there is no margin to choose. A failed test proves nothing; small
matrices are then decided in rational arithmetic (`circuitsim.controlled.rational`).
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim.controlled.equations import Equations
from circuitsim.kernels import kernel
from circuitsim.program.precise import two_product, two_sum

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from scipy.sparse.linalg import SuperLU

BEYOND = 1e300
"""Terms above this bound may overflow: there is no residual."""


def corrected(value, column, ends, right, change, high, low, residual):
    """Add a change to the solution high + low, and fill in right − matrix · (high + low).

    Parameters
    ----------
    value : (nnz,) float array
        Terms of the matrix, sorted by row.
    column : (nnz,) int array
    ends : (size + 1,) int array
        Start of each row, and end of the last one.
    right, change : (size,) float arrays
    high, low : (size,) float arrays
        Updated.
    residual : (size,) float array
        Overwritten; nan where a term may overflow.

    Returns
    -------
    share, largest, most : float
        The largest |change| relative to the unknown before, in absolute value, and the largest |unknown| before.
    """
    share = largest = most = 0.0
    for k in range(high.size):
        before, new = high[k], change[k]
        size, own = abs(new), abs(before)
        most, largest = max(most, own), max(largest, size)
        if size > 0.0:
            share = max(share, size / max(own, 1e-300))
        total, error = two_sum(before, new)
        error += low[k]
        high[k] = total + error
        low[k] = error - (high[k] - total)
    for row in range(residual.size):
        total, rest, reach = right[row], 0.0, abs(right[row])
        for t in range(ends[row], ends[row + 1]):
            a, x = -value[t], high[column[t]]
            product, error = two_product(a, x)
            total, lost = two_sum(total, product)
            rest += lost + (error + a * low[column[t]])
            reach = max(reach, abs(product))
        residual[row] = total + rest if reach < BEYOND else np.nan
    return share, largest, most


FEW = 4
"""Maximum number of right-hand sides that a dense factor solves one by one."""
DENSE = 100
"""Maximum number of unknowns of a matrix that is factored densely."""

CORRECTIONS = 12
"""Maximum number of corrections of one solution."""

FINE = 2.0**-90
"""A correction below this fraction of every unknown ends the refinement."""

RESOLVED = 4
"""Number of corrections after which one that does not shrink is rounding of unknowns that vanish: each divides errors,
relative to the largest unknown, by 1 / `POOR` at least, and small unknowns shrink only once these are below them."""

POOR = 1e-3
"""Relative size of the first correction above which the matrix is singular to working precision."""


def refined(corrections, share, first, before, fine):
    """Whether a number of corrections suffices: the last one, the first and the one before it are these fractions of
    the unknowns, of which ``fine`` is negligible."""
    return corrections > 0 and (share <= fine or share * first <= fine or (corrections > RESOLVED and share >= before))


class Pattern:
    """The matrix for any states of the diodes.

    Parameters
    ----------
    eq : Equations
    """

    def __init__(self, eq: Equations) -> None:
        self.eq = eq
        d = eq.diode.size
        rows = eq.own[eq.diode]
        row = np.concatenate([eq.row, rows, rows, rows])
        column = np.concatenate([eq.column, eq.plus, eq.minus, rows])
        order = np.argsort(row, kind="stable")
        self._order = order[column[order] >= 0]
        self._row, self._column, self._d = row[self._order], column[self._order], d
        self._ends = np.searchsorted(self._row, np.arange(eq.size + 1))

    def terms(self, conducting: np.ndarray | None, values: np.ndarray | None = None) -> Terms:
        """The terms of its rows for diodes that conduct (d,) or block; for ``None`` all are loaded. ``values`` (nnz,)
        are in place of those of the equations."""
        eq, d = self.eq, self._d
        v = np.ones(d) if conducting is None else conducting.astype(float)
        i = -eq.load if conducting is None else np.where(conducting, 0.0, 1.0)
        values = eq.value if values is None else values
        value, share = (np.concatenate([part, v, -v, i])[self._order] for part in (values, eq.share))
        gain, under = (np.append(part, np.full(3 * d, -1))[self._order] for part in (eq.gain, eq.under))
        return Terms(value, self._column, self._row, self._ends, share, gain, under)


class Terms(NamedTuple):
    """A matrix as unsummed terms of its rows, because sums of conductances at a node round.

    Attributes
    ----------
    value, column, row : (nnz,) arrays
        Sorted by row.
    ends : (size + 1,) int array
        Start of each row, and end of the last one.
    share, gain, under : (nnz,) arrays
        As in `Equations`.
    """

    value: np.ndarray
    column: np.ndarray
    row: np.ndarray
    ends: np.ndarray
    share: np.ndarray
    gain: np.ndarray
    under: np.ndarray

    def plus(self, row: np.ndarray, column: np.ndarray, value: np.ndarray) -> Terms:
        """With further terms (k,)."""
        rows = np.concatenate([self.row, row])
        order = np.argsort(rows, kind="stable")
        none, ends = np.full(row.size, -1), np.searchsorted(rows[order], np.arange(self.ends.size))
        values, columns, share, gain, under = (
            np.append(own, more)[order]
            for own, more in (
                (self.value, value),
                (self.column, column),
                (self.share, value),
                (self.gain, none),
                (self.under, none),
            )
        )
        return Terms(values, columns, rows[order], ends, share, gain, under)

    def matrix(self) -> csr_matrix:
        """The matrix in double precision."""
        from scipy.sparse import csr_matrix

        size = self.ends.size - 1
        return csr_matrix((self.value, (self.row, self.column)), shape=(size, size))

    def dense(self) -> np.ndarray:
        """The matrix as an array (size, size)."""
        size = self.ends.size - 1
        return np.bincount(self.row * size + self.column, self.value, size * size).reshape(size, size)


class Pair(NamedTuple):
    """A vector as an unevaluated sum of doubles."""

    high: np.ndarray
    low: np.ndarray


def scaled(matrix: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """A matrix, dense or sparse, with rows and columns scaled by powers of two to largest entries of about one, and
    these (size,)."""
    from scipy.sparse import diags

    dense = isinstance(matrix, np.ndarray)
    row, column = matrix.nonzero() if dense else matrix.tocoo().coords
    entry, (left, right) = np.abs(matrix[row, column] if dense else matrix.tocoo().data), np.ones((2, matrix.shape[0]))
    for _ in range(3):
        for own, at in ((left, row), (right, column)):
            high = np.zeros(own.size)
            np.maximum.at(high, at, entry * left[row] * right[column])
            own /= np.sqrt(np.where(high > 0.0, high, 1.0))
    left, right = (np.exp2(np.round(np.log2(own))) for own in (left, right))
    return matrix * left[:, None] * right if dense else (diags(left) @ matrix @ diags(right)).tocsc(), left, right


def factored(matrix: Any) -> SuperLU | DenseLU:
    """LU factors of a matrix scaled before.

    Raises
    ------
    ArithmeticError
        It is singular, or beyond the range of doubles.
    """
    from scipy.sparse.csgraph import structural_rank
    from scipy.sparse.linalg import splu

    dense = isinstance(matrix, np.ndarray)
    if not np.isfinite(matrix if dense else matrix.data).all():
        raise ArithmeticError("beyond the range of doubles")
    if dense:
        return DenseLU(matrix)
    matrix.eliminate_zeros()
    if structural_rank(matrix) < matrix.shape[0]:
        raise ArithmeticError("singular")  # SuperLU may abort the process here
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return splu(matrix)
        except RuntimeError as error:
            raise ArithmeticError("singular") from error


class DenseLU:
    """LU factors of a dense matrix, with the interface of `scipy.sparse.linalg.SuperLU`."""

    def __init__(self, matrix: np.ndarray) -> None:
        from scipy.linalg import get_lapack_funcs

        getrf, self._getrs = get_lapack_funcs(("getrf", "getrs"), (matrix,))
        self._lu, self._pivot, info = getrf(matrix, overwrite_a=True)
        if info != 0:
            raise ArithmeticError("singular")

    def solve(self, right: np.ndarray, trans: str = "N") -> np.ndarray:
        """The solution for right-hand sides (size,) or (size, k); of the transposed system with ``trans="T"``.

        A few columns are solved one by one: OpenBLAS would use two threads even for two columns of ten numbers (on a
        loaded machine a hundred times slower).
        """
        if right.ndim == 2 and right.shape[1] <= FEW:
            found = np.empty(right.shape)
            for k in range(right.shape[1]):
                found[:, k] = self.solve(right[:, k], trans)
            return found
        return np.asarray(self._getrs(self._lu, self._pivot, right, trans=int(trans == "T"))[0])


class Factor:
    """LU factors of one matrix.

    Parameters
    ----------
    terms : Terms
    quick : bool
        Whether to factor a matrix of up to `DENSE` unknowns densely: faster, but rounding hides zero pivots, so that a
        solution does not prove the matrix regular.

    Attributes
    ----------
    matrix : (size, size) float array or csr_matrix

    Raises
    ------
    ArithmeticError
        It is singular.
    """

    def __init__(self, terms: Terms, quick: bool = False) -> None:
        self.terms, self.matrix = terms, terms.dense() if quick and terms.ends.size <= DENSE + 1 else terms.matrix()
        matrix, self.left, self.right = scaled(self.matrix)
        self.lu = factored(matrix)

    def rough(self, right: np.ndarray) -> np.ndarray:
        """The solution in double precision; columns are right-hand sides."""
        return np.asarray((self.right * self.lu.solve((self.left * right.T).T).T).T)

    def transposed(self, right: np.ndarray) -> np.ndarray:
        """The solution of the transposed system, in double precision."""
        return self.left * self.lu.solve(self.right * right, trans="T")

    def solve(self, right: np.ndarray, rough: np.ndarray | None = None) -> Pair:
        """The refined solution for a right-hand side and its rounding errors (2, size); ``rough`` is that in double
        precision, if available.

        Raises
        ------
        ArithmeticError
            The matrix is singular to working precision.
        """
        terms, (right, beyond) = self.terms, right
        high, low, residual = np.zeros(right.size), np.zeros(right.size), np.empty(right.size)
        correct = kernel(corrected, terms.value.size)
        change = self.rough(right) if rough is None else rough
        first = before = math.inf
        for corrections in range(CORRECTIONS + 1):
            if not np.isfinite(change).all():
                raise ArithmeticError("singular")
            share, largest, most = correct(terms.value, terms.column, terms.ends, right, change, high, low, residual)
            if corrections == 1:
                first = share
                if largest > POOR * most:
                    raise ArithmeticError("singular")
            if refined(corrections, share, first, before, FINE):
                break
            before = share if corrections > 0 else math.inf
            change = self.rough(residual + beyond)
        return Pair(high, low)

    def determined(self, x: np.ndarray) -> bool:
        """Whether rounding of the matrix's entries changes a solution ``x`` by less than `POOR` of its largest
        component.

        A matrix that is singular to rounding has a solution, but that of the exact decimals is far from it.
        """
        rounding = np.finfo(float).eps * (abs(self.matrix) @ np.abs(x))
        signs = np.sign(np.random.default_rng(0).standard_normal((x.size, 3)))
        moved = self.rough(rounding[:, None] * signs)
        return bool(np.abs(moved).max(initial=0.0) <= POOR * np.abs(x).max(initial=0.0))


EPS = float(np.finfo(float).eps)


def inverse_error(a: np.ndarray, da: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """Bounds on the differences between ``inverse`` and the inverse of any matrix within ``da`` of ``a``.

    Infinite unless all of these are proven regular.

    Parameters
    ----------
    a, da, inverse : (…, n, n) float arrays
        With largest entries of rows and columns of about one, so that norms are meaningful.
    """
    n = a.shape[-1]
    size = np.abs(inverse)
    left = np.abs(np.eye(n) - inverse @ a) + size @ ((n + 3) * EPS * np.abs(a) + da)
    left *= 1.0 + 2 * n * EPS
    norm = left.sum(axis=-1).max(axis=-1, initial=0.0)[..., None, None]
    once = (left @ size) * (1.0 + 2 * n * EPS)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = once + norm / (1.0 - norm) * once.max(axis=-2, keepdims=True, initial=0.0)
    return np.asarray(np.where((norm < 1.0) & np.isfinite(error), error * (1.0 + 8 * EPS), np.inf))


def equilibrated(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Powers of two for rows (…, n, 1) and columns (…, 1, n) that scale largest entries to about one; 1 for zeros."""
    size = np.abs(a)
    left = _power(size.max(axis=-1, keepdims=True, initial=0.0))
    return left, _power((size * left).max(axis=-2, keepdims=True, initial=0.0))


def _power(largest: np.ndarray) -> np.ndarray:
    known = (largest > 0.0) & (largest < np.inf)
    return np.exp2(-np.round(np.log2(np.where(known, largest, 1.0))))


def inverted(a: np.ndarray, da: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inverses of matrices (…, n, n), zero for singular ones, and error bounds (`inverse_error`), infinite for matrices
    that may be singular."""
    left, right = equilibrated(a)
    scaled = a * left * right
    good = np.isfinite(scaled).all(axis=(-2, -1)) & (np.linalg.det(scaled) != 0.0)
    scaled = np.where(good[..., None, None], scaled, np.eye(a.shape[-1]))
    try:
        found = np.linalg.inv(scaled)
    except np.linalg.LinAlgError:
        return np.zeros_like(a), np.full_like(a, np.inf)
    error = inverse_error(scaled, da * left * right, found)
    back = right.swapaxes(-1, -2) * left.swapaxes(-1, -2)
    good = good[..., None, None]
    return np.where(good, found * back, 0.0), np.where(good, error * back, np.inf)


def positive_definite(m: np.ndarray, dm: np.ndarray) -> bool:
    """Whether the symmetric parts of all matrices within ``dm`` of ``m`` are proven positive definite."""
    diagonal = m.diagonal()
    if not (diagonal > dm.diagonal()).all():
        return False
    root = np.sqrt(diagonal)
    scaled = m / root[:, None] / root
    off = dm / root[:, None] / root + 4 * EPS * np.abs(scaled)
    if not (np.isfinite(scaled).all() and np.isfinite(off).all()):
        return False
    symmetric, error = 0.5 * (scaled + scaled.T), (0.5 * (off + off.T)).sum(axis=1).max()
    rounding = 8 * len(m) * EPS * np.linalg.norm(symmetric)  # of LAPACK's eigenvalues
    return bool(np.linalg.eigvalsh(symmetric).min() > error + rounding)


def in_watts(m: np.ndarray, load: np.ndarray) -> np.ndarray:
    """The matrix of ports with voltages and currents multiplied by √(1/ρ) and √ρ, ρ = ``load`` (d,) in Ω, not by 1 and
    ρ.

    Products v i are then powers.
    """
    root = np.sqrt(load)
    return np.asarray(m * root / root[:, None])
