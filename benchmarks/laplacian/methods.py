"""One adapter a method: how long it takes to order, factor, factor again and solve, and the solution it gives.

An adapter returns a dictionary of seconds (``order``, ``symbolic``, ``numeric``, ``again``, ``some``, ``solve``), the
stored entries ``nnz`` and the solution ``x``; a step a method does not offer apart is missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from circuitsim.solvers import laplacian
from circuitsim.solvers.laplacian.graph import adjacency as adjacency_of

Graph = tuple[int, np.ndarray, np.ndarray, np.ndarray]


def timed(action: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    """Result and median processor time; all methods run on one thread, and other programs do not count."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        result = action()
        times.append(time.process_time() - begin)
    return result, float(np.median(times))


def matrix(graph: Graph) -> sp.csc_matrix:
    """The grounded Laplacian, summed the ordinary way (diagonals are rounded sums)."""
    n, a, b, w = graph
    rows, columns, values = [], [], []
    for p, q in ((a, b), (b, a)):
        inner = (p < n) & (a != b)
        rows.append(p[inner])
        columns.append(p[inner])
        values.append(w[inner])
        both = inner & (q < n)
        rows.append(p[both])
        columns.append(q[both])
        values.append(-w[both])
    data = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sp.csc_matrix(sp.coo_matrix(data, shape=(n, n)))


def ours(
    graph: Graph, rhs: np.ndarray, repeats: int, ordering: Callable[[Graph], Any] = lambda graph: "auto"
) -> dict[str, Any]:
    """This package."""
    n, a, b, w = graph
    pattern, order = timed(lambda: laplacian.predict(n, a, b, ordering(graph)), repeats)
    symbolic, panels = timed(lambda: laplacian.panels(pattern), repeats)
    held, numeric = timed(lambda: laplacian.factor(symbolic, w), repeats)
    rng = np.random.default_rng(1)
    state = {"factor": held}

    def again(weights: np.ndarray) -> None:
        state["factor"] = laplacian.factor(symbolic, weights, previous=state["factor"], recycle=True)

    flip = iter(range(1, 100))
    _, refactor = timed(lambda: again(w * (1.0 + next(flip))), repeats)
    again(w)

    def some() -> None:
        changed = w.copy()
        changed[rng.choice(w.size, max(1, w.size // 1000), replace=False)] *= 2.0
        again(changed)

    _, partial = timed(some, repeats)
    again(w)
    (x, _), solve = timed(lambda: laplacian.solve(state["factor"], rhs), repeats)
    many = np.repeat(rhs[:, None], 16, axis=1)
    _, batch = timed(lambda: laplacian.solve(state["factor"], many), repeats)
    return {
        "order": order,
        "symbolic": panels,
        "numeric": numeric,
        "again": refactor,
        "some": partial,
        "solve": solve,
        "batch": batch / 16,
        "nnz": pattern.fill,
        "stored": symbolic.stored,
        "x": x,
    }


def metis(graph: Graph, rhs: np.ndarray, repeats: int) -> dict[str, Any]:
    """This package, ordered by METIS."""
    import pymetis

    def dissection(graph: Graph) -> np.ndarray:
        adjacency = adjacency_of(*graph[:3])
        return np.asarray(pymetis.nested_dissection(pymetis.CSRAdjacency(*adjacency))[0], dtype=np.int64)

    return ours(graph, rhs, repeats, dissection)


def superlu(graph: Graph, rhs: np.ndarray, repeats: int) -> dict[str, Any]:
    """scipy's SuperLU in symmetric mode, minimum degree on A + Aᵀ."""
    from scipy.sparse.linalg import splu

    h = matrix(graph)

    def make() -> Any:
        return splu(h, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})

    lu, numeric = timed(make, repeats)
    x, solve = timed(lambda: lu.solve(rhs), repeats)
    return {"numeric": numeric, "again": numeric, "solve": solve, "nnz": lu.L.nnz, "x": x}


def qdldl(graph: Graph, rhs: np.ndarray, repeats: int) -> dict[str, Any]:
    """QDLDL (AMD, simplicial, same-pattern update)."""
    import qdldl as package

    h = sp.csc_matrix(sp.triu(matrix(graph)))
    solver, numeric = timed(lambda: package.Solver(h, upper=True), repeats)
    _, again = timed(lambda: solver.update(h, upper=True), repeats)
    x, solve = timed(lambda: solver.solve(rhs), repeats)
    return {"numeric": numeric, "again": again, "solve": solve, "nnz": solver.factors()[0].nnz + rhs.size, "x": x}


def cholmod(graph: Graph, rhs: np.ndarray, repeats: int) -> dict[str, Any]:
    """CHOLMOD as cholespy ships it (AMD/METIS by its own choice, no refactorisation)."""
    import cholespy

    h = sp.coo_matrix(matrix(graph))
    n = rhs.size

    def make() -> Any:
        return cholespy.CholeskySolverD(n, h.row, h.col, h.data, cholespy.MatrixType.COO)

    solver, numeric = timed(make, repeats)
    x = np.zeros(n)
    _, solve = timed(lambda: solver.solve(rhs, x), repeats)
    return {"numeric": numeric, "again": numeric, "solve": solve, "x": x}


METHODS: dict[str, Callable[..., dict[str, Any]]] = {
    "circuitsim": ours,
    "circuitsim, METIS order": metis,
    "SuperLU (scipy)": superlu,
    "QDLDL": qdldl,
    "CHOLMOD (cholespy)": cholmod,
}
