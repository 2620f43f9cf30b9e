"""What solvers share: their protocol, and what they hand back. Whether it is right is the certificate's business."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from circuitsim.program import QuadraticProgram


class Solution(NamedTuple):
    """Potentials of a program.

    Attributes
    ----------
    x : (n + 1,) float array
        Super-node potentials, V; x[n] = 0.
    solver : str
        Name of the method.
    info : dict
        Counts of its work (rounds, sweeps …).
    closed : (d,) bool array, optional
        Diodes whose ends an exact method holds equal (but for rounding).
    carrying : (d,) bool array, optional
        A choice of diodes, without loops, that can carry all the current.
    slack : float
        The ends of a conducting diode may differ by this share of their potentials (0 for exact methods).
    doubt : str
        Should the certificate fail: what to tell about how the method ended.
    """

    x: np.ndarray
    solver: str
    info: dict[str, object]
    closed: np.ndarray | None = None
    carrying: np.ndarray | None = None
    slack: float = 0.0
    doubt: str = ""


class Solver(Protocol):
    """A method: a frozen value with its tolerances inside."""

    def solve(self, program: QuadraticProgram, start: np.ndarray, on: np.ndarray | None = None) -> Solution:
        """Minimise a feasible, bounded program from the feasible potentials ``start`` (n + 1,).

        The diodes ``on`` (d,) are a guess at those that conduct, for methods that can use one.
        """
        ...
