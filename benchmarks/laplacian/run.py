"""Measure the Laplacian factorisation against other sparse factorisations; prints Markdown.

    python benchmarks/laplacian/run.py [--families NAME ...] [--repeats 5] > benchmarks/laplacian/results.md

Competitors that are not installed are listed as absent. One thread each (set OPENBLAS_NUM_THREADS=1).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import sys
from fractions import Fraction

import numpy as np
from families import FAMILIES, Graph, bad_grid, grid
from methods import METHODS, ours

HEADERS = ("order", "symbolic", "numeric", "again", "0.1 %", "solve", "solve, of 16", "nnz(L)", "residual")
STEPS = ("order", "symbolic", "numeric", "again", "some", "solve", "batch")


def backward_error(graph: Graph, rhs: np.ndarray, x: np.ndarray) -> float:
    """Largest |r_k| / (Σ w (|x_k| + |x_j|) + |b_k|), summed in extended precision."""
    n, a, b, w = graph
    full = np.append(x, 0.0).astype(np.longdouble)
    missing, scale = np.append(rhs, 0.0).astype(np.longdouble), np.append(np.abs(rhs), 0.0).astype(np.longdouble)
    flow, size = w * (full[a] - full[b]), w * (np.abs(full[a]) + np.abs(full[b]))
    np.add.at(missing, a, -flow)
    np.add.at(missing, b, flow)
    np.add.at(scale, a, size)
    np.add.at(scale, b, size)
    good = scale[:n] > 0
    return float(np.max(np.abs(missing[:n][good]) / scale[:n][good]))


def exact(graph: Graph, rhs: np.ndarray) -> np.ndarray:
    """Solution in rational arithmetic (dense; small graphs only)."""
    n, a, b, w = graph
    rows = [[Fraction(0)] * n + [Fraction(float(v))] for v in rhs]
    for i, j, weight in zip(a, b, w):
        value = Fraction(float(weight))
        for p, q in ((int(i), int(j)), (int(j), int(i))):
            if p < n and i != j:
                rows[p][p] += value
                if q < n:
                    rows[p][q] -= value
    for k in range(n):
        for i in range(k + 1, n):
            if rows[i][k]:
                ratio = rows[i][k] / rows[k][k]
                rows[i] = [u - ratio * v if v else u for u, v in zip(rows[i], rows[k])]
    x = [Fraction(0)] * n
    for k in range(n - 1, -1, -1):
        x[k] = (rows[k][n] - sum(rows[k][j] * x[j] for j in range(k + 1, n))) / rows[k][k]
    return np.array([float(v) for v in x])


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds:.3g} s" if seconds >= 0.1 else f"{1e3 * seconds:.3g} ms"


def machine() -> list[str]:
    versions = []
    for name in ("numpy", "scipy", "numba", "pymetis", "qdldl", "cholespy"):
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"{name} absent")
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")
    load = os.getloadavg()[0]
    return [
        f"- {cpu}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.2f} at the start",
        f"- {', '.join(versions)}",
    ]


def accuracy(size: int) -> None:
    print("\n## Accuracy on small badly scaled meshes, against rational arithmetic\n")
    print("Largest relative error over the potentials; `one sign`: all currents flow in, `mixed`: both signs.\n")
    print("| weights | method | one sign | mixed |\n|---|---|---|---|")
    for name, graph in (("10^U(−9, 3)", bad_grid(size)), ("10^U(−27, 9)", _stretched(bad_grid(size)))):
        n = graph[0]
        rng = np.random.default_rng(2)
        cases = [rng.uniform(0, 1, n), rng.normal(size=n)]
        truth = [exact(graph, rhs) for rhs in cases]
        for label, method in METHODS.items():
            if "METIS" in label:
                continue
            errors = []
            for rhs, best in zip(cases, truth):
                try:
                    x = method(graph, rhs, 1)["x"]
                    errors.append(f"{np.max(np.abs(x - best) / np.abs(best)):.1e}")
                except Exception as error:  # a competitor that fails is a result, not a reason to stop
                    errors.append(f"failed: {type(error).__name__}")
            print(f"| {name} | {label} | {errors[0]} | {errors[1]} |", flush=True)


def _stretched(graph: Graph) -> Graph:
    n, a, b, w = graph
    return n, a, b, w**3


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    small = grid(9)
    ours(small, np.ones(small[0]), 1)  # compile
    print("# Sparse factorisation of grounded Laplacians\n")
    print("\n".join(machine()))
    print(f"- processor time, medians of {options.repeats} (one run beyond 5e5 nodes), one thread, kernels compiled")
    print("- `again`: all weights new, same pattern, memory reused; `0.1 %`: so many weights changed; `solve, of 16`:")
    print("  per right-hand side of sixteen. `residual`: largest |r_k| / (Σ w(|x_k| + |x_j|) + |b_k|).")
    print("- What is unfair: most others do all steps within `numeric`, so compare with our sum; SuperLU, CHOLMOD")
    print("  here offer no refactorisation; theirs is ordinary backward stability, ours accuracy entry by entry.")
    accuracy(10)
    for name in options.families:
        graph = FAMILIES[name]()
        n = graph[0]
        rhs = np.random.default_rng(0).normal(size=n)
        repeats = options.repeats if n < 500_000 else 1
        print(f"\n## {name}: {n} nodes, {graph[1].size} edges\n")
        print(f"| method | {' | '.join(HEADERS)} |\n|---|{'---|' * len(HEADERS)}")
        for label, method in METHODS.items():
            if n > 1_500_000 and "circuitsim" not in label:
                continue
            try:
                r = method(graph, rhs, repeats)
            except ImportError:
                print(f"| {label} | absent |")
                continue
            except Exception as error:  # a competitor that fails is a result
                print(f"| {label} | failed: {type(error).__name__}: {error} |")
                continue
            cells = [duration(r.get(key)) for key in STEPS]
            cells.append(f"{r['nnz'] / 1e6:.3g}M" if "nnz" in r else "–")
            cells.append(f"{backward_error(graph, rhs, r['x']):.1e}")
            print(f"| {label} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
