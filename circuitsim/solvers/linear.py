"""The one place where the way of solving the network's linear circuits is chosen, by size and shape."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from circuitsim.solvers import dense

DENSE = 120
"""Up to this many unknowns plain numpy solves in milliseconds, before a compiled kernel has even been loaded."""
ITERATIVE = 2000
"""From this many unknowns conjugate gradients beat the factors of graphs without thin separators."""
EVEN = 1e4
"""They are for networks whose conductances differ by at most this factor."""
CORRECTION = 1e-6
"""What they leave of the currents that a correction is for."""


class Laplacian(NamedTuple):
    """The network's Laplacian in one pattern: resistors of fixed conductance, and diodes that are shorts or absent.

    Attributes
    ----------
    n : int
        Number of unknowns; index n is earth.
    a, b : (r + d,) int arrays
        Ends of the resistors, then of the diodes.
    g : (r,) float array
        Conductances scaled by ``unit``.
    unit : float
        The largest conductance, S.
    order : (n + 1,) int array
        The nodes in their order of elimination; earth is last.
    symbolic : circuitsim.solvers.laplacian.Symbolic or None
        Analysis of the pattern for the compiled kernels; None where numpy or conjugate gradients do it.
    iterative : module or None
        The kind of conjugate gradients that does it: `circuitsim.solvers.conjugate` or `circuitsim.solvers.spanning`.
    memo : dict or None
        Where the pattern's analysis is kept.
    """

    n: int
    a: np.ndarray
    b: np.ndarray
    g: np.ndarray
    unit: float
    order: np.ndarray
    symbolic: Any
    iterative: Any = None
    memo: dict[str, Any] | None = None

    @classmethod
    def analyse(
        cls, n: int, a: np.ndarray, b: np.ndarray, g: np.ndarray, grounded: bool, memo: dict[str, Any] | None = None
    ) -> Laplacian:
        """Prepare the pattern a–b, of which the first ``g.size`` edges are resistors of conductance g (S).

        ``grounded`` allows conjugate gradients: the resistors alone lead from every node to earth. What the pattern
        tells is looked for, and left, in ``memo``.
        """
        memo = {} if memo is None else memo
        unit = float(g.max(initial=0.0)) or 1.0
        scaled = g / unit
        if n <= DENSE:
            return cls(n, a, b, scaled, unit, np.arange(n + 1), None)
        iterative = _iterative(n, a[: g.size], b[: g.size], g, memo) if grounded and n >= ITERATIVE else None
        if iterative is not None:
            return cls(n, a, b, scaled, unit, np.arange(n + 1), None, iterative, memo)
        from circuitsim.solvers import laplacian

        symbolic = memo.get("symbolic")
        if symbolic is None:
            symbolic = memo["symbolic"] = laplacian.analyse(n, a, b)
        return cls(n, a, b, scaled, unit, np.append(symbolic.pattern.order, n), symbolic, memo=memo)

    @property
    def way(self) -> str:
        """What solves it, for people."""
        if self.iterative is not None:
            return str(self.iterative.NAME)
        return "dense factors" if self.symbolic is None else "sparse factors"

    def factor(self, closed: np.ndarray, previous: Factored | None = None) -> Factored:
        """Factor with the edges ``closed`` as shorts and all other diodes absent.

        Parameters
        ----------
        closed : int array
            Positions in the pattern: resistors 0…r−1, diodes from r.
        previous : Factored, optional
            Of this Laplacian: only what differs is computed again, in the memory of ``previous``, which is used up.
        """
        r = self.g.size
        if self.iterative:
            return Factored(self, _merged(self, closed))
        if self.symbolic is None:
            a, b = np.append(self.a[:r], self.a[closed]), np.append(self.b[:r], self.b[closed])
            w = np.append(self.g, np.full(closed.size, dense.SHORT))
            return Factored(self, dense.factor(self.n, a, b, w))
        from circuitsim.solvers import laplacian

        w = np.zeros(self.a.size)
        w[:r] = self.g
        w[closed] = laplacian.SHORT
        before = None if previous is None else previous.raw
        return Factored(self, laplacian.factor(self.symbolic, w, before, recycle=before is not None))


class Factored(NamedTuple):
    """A factored `Laplacian`."""

    laplacian: Laplacian
    raw: Any

    def correct(self, current: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """A correction (n + 1,), V, for ``current`` (n,), A, of which the first digits are enough, and what it leaves.

        The latter, A, is of every node's group (n,), and of methods of repeated approximation alone.
        """
        scaled = current / self.laplacian.unit
        if self.laplacian.iterative:
            x, missing = self.laplacian.iterative.solve(self.raw, scaled, None, CORRECTION)
            return x, self.laplacian.unit * self.laplacian.iterative.at_nodes(self.raw, missing)[:-1]
        if self.laplacian.symbolic is None:
            return dense.solve(self.raw, scaled), None
        from circuitsim.solvers import laplacian

        return np.append(laplacian.solve(self.raw, scaled)[0], 0.0), None


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one is other or np.array_equal(one, other)


def _merged(laplacian: Laplacian, closed: np.ndarray) -> Any:
    """The network with the edges ``closed`` as shorts, for conjugate gradients; the latest one is kept."""
    n, a, b, g = laplacian[:4]
    memo = {} if laplacian.memo is None else laplacian.memo
    kept = memo.get("merged")
    if kept is None or not (np.array_equal(kept[0], closed) and _same(kept[1], g)):
        merged = laplacian.iterative.merge(n, a[: g.size], b[: g.size], g, a[closed], b[closed])
        kept = memo["merged"] = closed, g, merged
    return kept[2]


def _iterative(n: int, a: np.ndarray, b: np.ndarray, g: np.ndarray, memo: dict[str, Any]) -> Any:
    """The kind of conjugate gradients that suits resistors of conductance g between a–b, or None."""
    from circuitsim.solvers import conjugate, spanning

    kept = memo.get("iterative")
    if kept is None or not _same(kept[0], g):
        if g.min() * EVEN >= g.max():
            from circuitsim.solvers.laplacian.graph import adjacency

            if "spreads" not in memo:
                ptr, idx = adjacency(n, a, b)
                memo["spreads"] = bool(conjugate.spreads(ptr, idx, conjugate.LEVELS, conjugate.WIDEST))
            kind = conjugate if memo["spreads"] else None
        else:
            kind = spanning if spanning.suits(n, a, b, g) else None
        kept = memo["iterative"] = g, kind
    return kept[1]
