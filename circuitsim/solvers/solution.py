"""What approximate methods share: their protocol, and their result. The engine and its certificate judge it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol

import numpy as np

from circuitsim.program import QuadraticProgram


class Exact(Enum):
    """Methods that need no approximate solution to start from."""

    ACTIVE_SET = "active-set"
    """The active-set engine (`circuitsim.engine`)."""


class Solution(NamedTuple):
    """Potentials of a program.

    Attributes
    ----------
    x : (n + 1,) float array
        Super-node potentials, V; x[n] = 0.
    solver : str
        Name of the method.
    info : dict
        Counts of its work (sweeps, iterations …).
    slack : float
        The ends of a conducting diode may differ by this share of their potentials.
    doubt : str
        The way the method ended, for the message of a failed certificate.
    """

    x: np.ndarray
    solver: str
    info: dict[str, object]
    slack: float
    doubt: str = ""


class Solver(Protocol):
    """A method: a frozen value with its tolerances inside."""

    def solve(self, program: QuadraticProgram, start: np.ndarray) -> Solution:
        """Minimise a feasible, bounded program from the feasible potentials ``start`` (n + 1,), V."""
        ...
