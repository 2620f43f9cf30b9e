"""Methods that approximate the steady state, and the choice of one by name.

The convex program in cvxpy is what a user would write, for comparison and as a check.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.program.structure import QuadraticProgram, Solution, Solver


class Reference(NamedTuple):
    """A cvxpy backend.

    Attributes
    ----------
    backend : str
        A name of ``cvxpy.installed_solvers()`` that takes quadratic programs: ``CLARABEL``, ``OSQP``, ``SCS``, …
    slack : float
        Relative voltage difference allowed at the ends of a conducting diode, which such solvers reach.
    """

    backend: str
    slack: float = 1e-6

    def solve(self, program: QuadraticProgram, start: np.ndarray) -> Solution:
        """Minimise with the backend's default tolerances; the certificate decides about the result.

        Raises
        ------
        UsageError
            The backend is not installed.
        ConvergenceError
            The backend failed.
        """
        import cvxpy

        name = f"cvxpy:{self.backend}"
        if self.backend not in cvxpy.installed_solvers():
            known = ", ".join(sorted(cvxpy.installed_solvers()))
            raise UsageError(f"cvxpy has no solver {self.backend} here; installed: {known}")
        if not program.n:
            return Solution(start.copy(), name, {}, slack=self.slack)
        problem, potentials = build(program)
        try:
            problem.solve(solver=self.backend)
        except cvxpy.error.SolverError as error:
            raise ConvergenceError(f"{name} failed: {error}; use --solver auto") from error
        if potentials.value is None:
            raise ConvergenceError(f"{name} stopped with status {problem.status}; use --solver auto")
        info = {"status": problem.status, "backend iterations": problem.solver_stats.num_iters}
        current = problem.constraints[0].dual_value if problem.constraints else None
        return Solution(np.append(potentials.value, 0.0), name, info, slack=self.slack, current=current)


def incidence(first: np.ndarray, second: np.ndarray, n_nodes: int):
    """Sparse (branches, nodes): +1 at the first node of a branch, −1 at its second."""
    from scipy.sparse import coo_matrix

    rows, entries = np.arange(first.size), np.repeat([1.0, -1.0], first.size)
    where = np.concatenate([rows, rows]), np.concatenate([first, second])
    return coo_matrix((entries, where), shape=(first.size, n_nodes)).tocsc()


def build(program: QuadraticProgram):
    """The cvxpy problem of a program, and its variable (the n free potentials)."""
    import cvxpy

    n = program.n
    x = cvxpy.Variable(n)
    energy = -program.c[:n] @ x
    if program.g.size:
        drops = incidence(program.a, program.b, n + 1)[:, :n] @ x + program.e
        energy = energy + 0.5 * cvxpy.sum_squares(cvxpy.multiply(np.sqrt(program.g), drops))
    constraints = []
    if program.bound.size:
        constraints = [incidence(program.tail, program.head, n + 1)[:, :n] @ x <= program.bound]
    return cvxpy.Problem(cvxpy.Minimize(energy), constraints), x


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
        return Reference(backend.upper())
    raise UsageError(f"no solver is called {name!r}; choose among {', '.join(METHODS)}")


__all__ = ["METHODS", "Solution", "Solver", "choose"]
