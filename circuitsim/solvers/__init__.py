"""Methods that solve a program, one file each; kernels know arrays only."""

from __future__ import annotations

from circuitsim.errors import UsageError
from circuitsim.program import Structure
from circuitsim.solvers.solution import Solution, Solver

METHODS = ("auto", "active-set", "coordinate-descent", "cvxpy:NAME")
"""What ``--solver`` takes."""


def choose(name: str, structure: Structure) -> Solver:
    """The method called ``name``; ``auto`` picks one for the structure.

    Raises
    ------
    UsageError
        No such method.
    """
    if name in ("auto", "active-set"):
        from circuitsim.solvers.active_set import ActiveSet

        return ActiveSet()
    if name == "coordinate-descent":
        from circuitsim.solvers.coordinate_descent import CoordinateDescent

        return CoordinateDescent()
    backend = name.partition(":")[2]
    if name.lower().startswith("cvxpy:") and backend:
        from circuitsim.solvers.reference import Reference

        return Reference(backend.upper())
    raise UsageError(f"no solver is called {name!r}; choose among {', '.join(METHODS)}")


__all__ = ["METHODS", "Solution", "Solver", "choose"]
