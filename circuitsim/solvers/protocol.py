"""The interface of methods for the linear systems of the nodal matrix; `circuitsim.solvers.linear` chooses one."""

from __future__ import annotations

from typing import Protocol

import numpy as np

ACCURACY = 1e-9
"""Relative residual of a solve by conjugate gradients."""


class Factored(Protocol):
    """The nodal matrix at one set of conducting diodes."""

    @property
    def closed(self) -> np.ndarray:
        """Positions of these diodes in the pattern."""

    def solve(self, current: np.ndarray, accuracy: float = ACCURACY) -> np.ndarray:
        """Potentials, V, with some correct digits; refinement supplies the others.

        Parameters
        ----------
        current : (n,) or (n, k) float array
            Injected currents, A, one column a case.
        accuracy : float
            Largest relative residual of iterative methods; direct ones reach about 1e-15.

        Returns
        -------
        (n + 1,) or (n + 1, k) float array
            Potentials, V, that of ground, 0 V, last.
        """


class LinearSolver(Protocol):
    """A method for the linear circuits of a pattern at given conductances."""

    @property
    def method_name(self) -> str:
        """Name shown to users."""

    @property
    def direct(self) -> bool:
        """Whether it is direct, so that it always succeeds."""

    @property
    def order(self) -> np.ndarray:
        """The nodes (n + 1,) in their order of elimination, ground last."""

    def factor(self, closed: np.ndarray, previous: Factored | None = None) -> Factored:
        """The nodal matrix with the edges ``closed`` (positions in the pattern) as shorts and all other diodes absent.

        ``previous``, a result for another set, saves work and changes no bits; it cannot be used afterwards.
        """


def unit_of(g: np.ndarray) -> float:
    """The largest conductance, S, by which the others are scaled."""
    return float(g.max(initial=0.0)) or 1.0
