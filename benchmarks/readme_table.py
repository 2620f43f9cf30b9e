"""The table in README.md: whole solves of meshes with diodes, beside a general QP solver and ngspice, in one run.

    python benchmarks/readme_table.py [--sides 10,32,100,316,1000] [--out benchmarks/results]

A mesh of side m has m² nodes; conductances exp(N(0, ½)) S; three edges in ten also carry an ideal diode of random
direction; 1 V drives the left side through 1 S, the right side is loaded with 1 S, and one node in twenty is fed up to
0.1 A. Times are medians of whole solves from a circuit in memory: ours with its certificate; Clarabel via cvxpy with
the modelling; ngspice as a process that reads the deck and prints one operating point with near-ideal diodes (its
start-up of a few milliseconds included). Errors are worst violations of Kirchhoff's and the diodes' laws against local
scales, by our certificate; for ngspice, whose diodes are not ideal, the largest difference of a node voltage.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import circuitsim
from circuitsim.analysis import OperatingPoint
from circuitsim.bench.report import times
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.compact.kernels import load as load_kernels

LIMIT = {"clarabel": 320 * 320, "ngspice": 110 * 110}
"""Largest numbers of nodes that each competitor finishes in minutes."""


def mesh(m: int, seed: int = 0) -> circuitsim.Circuit:
    """The mesh of side m described above."""
    rng = np.random.default_rng(seed)
    node = np.arange(m * m).reshape(m, m) + 2
    edges = np.concatenate([
        np.stack([node[:, :-1].ravel(), node[:, 1:].ravel()], 1), np.stack([node[:-1].ravel(), node[1:].ravel()], 1)
    ])  # fmt: skip
    diodes = edges[rng.random(len(edges)) < 0.3]
    turned = rng.random(len(diodes)) < 0.5
    diodes[turned] = diodes[turned][:, ::-1]
    fed = rng.integers(2, m * m + 2, m * m // 20)
    rows = [
        (RESISTOR, edges[:, 0], edges[:, 1], np.exp(-0.5 * rng.normal(size=len(edges)))),
        (DIODE, diodes[:, 0], diodes[:, 1], np.full(len(diodes), np.nan)),
        (VOLTAGE, np.array([1]), np.array([0]), np.array([1.0])),
        (RESISTOR, np.full(m, 1), node[:, 0], np.ones(m)),
        (RESISTOR, node[:, -1], np.zeros(m, dtype=int), np.ones(m)),
        (CURRENT, np.zeros(fed.size, dtype=int), fed, rng.uniform(-0.1, 0.1, fed.size)),
    ]
    kind = np.concatenate([np.full(len(first), code) for code, first, _, _ in rows])
    columns = [np.concatenate([row[k] for row in rows]) for k in (1, 2, 3)]
    return circuitsim.Circuit.from_arrays(kind, columns[0], columns[1], columns[2], m * m + 2, f"mesh {m} x {m}")


def median_seconds(action: Callable[[], object], budget: float = 20.0) -> float:
    """Median of up to 7 calls after one that warms up, within a budget of seconds."""
    action()
    times: list[float] = []
    while len(times) < 7 and (not times or sum(times) < budget):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def clarabel(circuit: circuitsim.Circuit) -> tuple[float, float]:
    """Seconds, and the worst violation that its answer has by our certificate."""
    def solve() -> OperatingPoint:
        return circuitsim.solve(circuit, solver="cvxpy:CLARABEL", tolerance=0.999)

    return median_seconds(solve, 30.0), solve().certificate.worst


def ngspice(circuit: circuitsim.Circuit, op: OperatingPoint) -> tuple[float, float]:
    """Seconds of a whole process, and the largest difference of a node voltage, V."""
    names = [name for name in circuit.node_names if name != "0"]
    with tempfile.TemporaryDirectory() as folder:
        deck = Path(folder) / "mesh.cir"
        text = circuitsim.dumps(circuit)
        control = ".control\nset width=200\nop\nprint all\n.endc\n.end\n"
        deck.write_text(re.sub(r"(?m)^\.op\n|^\.end\n?", "", text) + control)
        command = ["ngspice", "-b", str(deck)]

        def run() -> str:
            return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300).stdout

        seconds = median_seconds(run, 30.0)
        found = {k.lower(): float(v) for k, v in re.findall(r"(?m)^(\S+) = (\S+)\s*$", run()) if v[0] in "-0123456789"}
    if not all(name.lower() in found for name in names):
        return seconds, float("nan")
    return seconds, max(abs(found[name.lower()] - op[name]) for name in names)


def row(m: int) -> str:
    """One line of the table."""
    circuit = mesh(m)
    ours = median_seconds(lambda: circuitsim.solve(circuit), 30.0)
    op = circuitsim.solve(circuit)
    diodes = circuit.arrays().kind == DIODE
    share = float((op.currents[diodes] > 0.0).mean())
    count = f"{int(diodes.sum()):,} ({share:.0%} conduct)"
    cells = [f"{m * m:,}", count, f"{seconds(ours)}, {op.certificate.worst:.0e}"]
    for name, competitor in (("clarabel", lambda: clarabel(circuit)), ("ngspice", lambda: ngspice(circuit, op))):
        if m * m > LIMIT[name]:
            cells.append("not run")
            continue
        theirs, error = competitor()
        unit = " V" if name == "ngspice" else ""
        wrong = "no operating point" if np.isnan(error) else f"{error:.0e}{unit}"
        cells.append(f"{seconds(theirs)} ({times(theirs / ours)}), {wrong}")
    return "| " + " | ".join(cells) + " |"


def seconds(value: float) -> str:
    """A time in ms or s with three digits."""
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", default="10,32,100,316,1000")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    import clarabel as backend
    import cvxpy

    load_kernels()  # compiled once for each installation
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    lines = [
        "| nodes | ideal diodes | circuitsim: time, error | Clarabel via cvxpy: time, error | ngspice: time, off by |",
        "|---|---|---|---|---|",
    ]
    for m in (int(word) for word in options.sides.split(",")):
        lines.append(row(m))
        print(lines[-1], flush=True)
    lines += [
        "",
        f"{platform.machine()}, {os.cpu_count()} processors, load {load}; Python {platform.python_version()}, numpy "
        f"{np.__version__}, cvxpy {cvxpy.__version__}, Clarabel {backend.__version__}. "
        "Command: `python benchmarks/readme_table.py`. What is compared, and how: see its first lines.",
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "readme_table.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
