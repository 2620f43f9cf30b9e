"""The protocol and the result of approximate methods. The engine and the certificate decide about the latter."""

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
        Super-node voltages, V; x[n] = 0.
    solver : str
        Name of the method.
    info : dict
        Counts of its work (sweeps, iterations …).
    slack : float
        Relative voltage difference allowed at the ends of a conducting diode.
    stopped : str
        Termination status of the method, for the message of a failed certificate.
    current : (d,) float array or None
        Currents of the diodes, A: the multipliers of the constraints, from methods that have them.
    """

    x: np.ndarray
    solver: str
    info: dict[str, object]
    slack: float
    stopped: str = ""
    current: np.ndarray | None = None


class Solver(Protocol):
    """A method: an immutable value that includes its tolerances."""

    def solve(self, program: QuadraticProgram, start: np.ndarray) -> Solution:
        """Minimise a feasible, bounded program from the feasible potentials ``start`` (n + 1,), V."""
        ...
