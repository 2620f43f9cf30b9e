"""Methods that approximate the steady state, one file each, and the choice of a method by name."""

from __future__ import annotations

from circuitsim.errors import UsageError
from circuitsim.program.structure import Solution, Solver

METHODS = ("auto", "active-set", "coordinate-descent", "cvxpy:NAME")
"""Values of ``--solver``."""


def choose(name: str) -> Solver | None:
    """The method called ``name``; None for the active-set engine, which needs no approximate solution to start from.

    Raises
    ------
    UsageError
        No such method.
    """
    if name in ("auto", "active-set"):
        return None
    if name == "coordinate-descent":
        from circuitsim.solvers.coordinate_descent import CoordinateDescent

        return CoordinateDescent()
    backend = name.partition(":")[2]
    if name.lower().startswith("cvxpy:") and backend:
        from circuitsim.solvers.reference import Reference

        return Reference(backend.upper())
    raise UsageError(f"no solver is called {name!r}; choose among {', '.join(METHODS)}")


__all__ = ["METHODS", "Solution", "Solver", "choose"]
