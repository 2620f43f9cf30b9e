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
ACCURACY = 1e-13
"""What they leave of the injected currents."""
CORRECTION = 1e-6
"""What they leave where a solution is only being corrected."""
ROUGH = 1e-4
"""What they leave while it is still open which diodes conduct: enough to tell most of them."""
KEPT = 20_000_000
"""Largest factor, in doubles, that a prepared circuit keeps for new values."""


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
        Where the pattern's analysis is kept, and the latest factor.
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
        unit, scaled = _scaled(g, memo)
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

    @property
    def lasting(self) -> bool:
        """Whether there are factors, of a size that is worth keeping."""
        return not self.iterative and (self.symbolic is None or bool(self.symbolic.stored <= KEPT))

    def keep(self, factored: Factored) -> None:
        """Leave a factor to the next solve of this pattern, which repeats only what differs."""
        if self.memo is not None and self.lasting and not factored.raw.spent:
            self.memo["factor"] = factored.raw

    def kept(self) -> Factored | None:
        """The factor left by `keep`, now the caller's alone: its memory will be used up."""
        raw = None if self.memo is None else self.memo.pop("factor", None)
        return None if raw is None else Factored(self, raw)

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

    def solve(self, current: np.ndarray, guess: np.ndarray | None = None, accuracy: float = ACCURACY) -> np.ndarray:
        """Potentials (n + 1,), V, for injected ``current`` (n,), A.

        In a part without a path to earth one node is held at 0 V.

        Parameters
        ----------
        current : (n,) float array
        guess : (n + 1,) float array, optional
            Potentials that methods of repeated approximation start from, V; otherwise 0.
        accuracy : float
            What such methods leave of the injected currents.

        Raises
        ------
        ConvergenceError
            Conjugate gradients were the wrong choice.
        """
        scaled = current / self.laplacian.unit
        if self.laplacian.iterative:
            potentials: np.ndarray = self.laplacian.iterative.solve(self.raw, scaled, guess, accuracy)[0]
            return potentials
        if self.laplacian.symbolic is None:
            return dense.solve(self.raw, scaled)
        from circuitsim.solvers import laplacian

        return np.append(laplacian.solve(self.raw, scaled)[0], 0.0)


    def correct(self, current: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """A correction (n + 1,), V, for ``current`` (n,), A, of which the first digits are enough, and what it leaves.

        The latter, A, is of every node's group (n,), and of methods of repeated approximation alone.
        """
        iterative = self.laplacian.iterative
        if not iterative:
            return self.solve(current), None
        x, missing = iterative.solve(self.raw, current / self.laplacian.unit, None, CORRECTION)
        return x, self.laplacian.unit * iterative.at_nodes(self.raw, missing)[:-1]


def _scaled(g: np.ndarray, memo: dict[str, Any]) -> tuple[float, np.ndarray]:
    """The largest conductance, S, and all as shares of it."""
    kept = memo.get("scaled")
    if kept is None or kept[0] is not g:
        unit = float(g.max()) if g.size else 1.0
        kept = memo["scaled"] = g, unit, g / unit
    return kept[1], kept[2]


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
