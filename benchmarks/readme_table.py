"""The table in README.md: whole solves of meshes with diodes, beside the best of cvxpy and ngspice, in one run.

    python benchmarks/readme_table.py [--sides 10,32,100,316,1000] [--out benchmarks/results]

A mesh of side m has m² nodes; conductances exp(N(0, ½)) S; three edges in ten also carry an ideal diode of random
direction; 1 V drives the left side through 1 S, the right side is loaded with 1 S, and one node in twenty is fed up to
0.1 A. Times are medians of the processor time (one
thread) of whole solves from a circuit in memory: ours with its certificate; cvxpy's with the
modelling; ngspice as a process that reads the deck and prints one operating point with near-ideal diodes (its start-up
of a few milliseconds included). Errors are worst violations of Kirchhoff's and the diodes' laws against local scales,
by our certificate; for ngspice, whose diodes are not ideal, the largest difference of a node voltage.

Of cvxpy every installed backend (PIQP, OSQP, Clarabel, SCS, HiGHS, DAQP) is asked with the energy as a sum of squares
and with the nodal matrix (``cvxpy-nodal``), first at its default tolerance, then at 1e-9, 1e-11, 1e-13. The best is
the fastest whose verified error is at most 1e-6; where none is, the fastest answer at all, marked (!). Its ratio is
against our times in the same rounds; all of them: `cvxpy_backends.py`. Beyond `ALL_CVXPY` nodes only the best of the
row before is asked, in one round.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from cvxpy_backends import best, cold_times, measured, names
from meshes import mesh, seconds

import circuitsim
from circuitsim.analysis import OperatingPoint
from circuitsim.bench.competitors import missing
from circuitsim.bench.report import machine, times
from circuitsim.circuit.elements import DIODE
from circuitsim.engine.small.kernels import load as load_kernels

ALL_CVXPY, LARGEST_CVXPY, LARGEST_NGSPICE = 110 * 110, 320 * 320, 110 * 110
"""Largest numbers of nodes that all backends of cvxpy, the best of them, and ngspice finish in minutes."""
BEST = "cvxpy-nodal:PIQP"
"""The backend that is asked for a first row of more nodes than `ALL_CVXPY`."""
ROUNDS = 5
"""Rounds in which circuitsim and all backends of cvxpy take their turn."""


def children_seconds() -> float:
    """Processor time of the processes that this one has waited for, in ticks of 10 ms."""
    taken = os.times()
    return taken.children_user + taken.children_system


def median_seconds(
    action: Callable[[], object], budget: float = 20.0, clock: Callable[[], float] = time.process_time, repeats: int = 1
) -> float:
    """Median of up to 7 times after one call that warms up, within a budget of seconds; each of so many calls."""
    action()
    times: list[float] = []
    while len(times) < 7 and (not times or repeats * sum(times) < budget):
        start = clock()
        for _ in range(repeats):
            action()
        times.append((clock() - start) / repeats)
    return statistics.median(times)


def cvxpy_best(circuit: circuitsim.Circuit, wanted: list[str], rounds: int) -> tuple[str, list[str]]:
    """A cell: time of the best backend through cvxpy among those ``wanted``, and of ours beside it, the error it has,
    its name; then that name alone."""
    ours, *others = measured(circuit, wanted, rounds, fresh=False)
    found = best([ours, *others], cold_times)
    if found is None:
        return "no answer", wanted
    theirs = statistics.median(found.cold)
    ratio = times(theirs / statistics.median(ours.cold))
    cell = f"{seconds(theirs)} ({ratio}), {found.error:.0e}{'' if found.good else ' (!)'}, {found.name}"
    return cell, [found.name]


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

        seconds = median_seconds(run, 10.0, children_seconds, 10 if circuit.arrays().n_nodes < 2000 else 1)
        found = {k.lower(): float(v) for k, v in re.findall(r"(?m)^(\S+) = (\S+)\s*$", run()) if v[0] in "-0123456789"}
    if not all(name.lower() in found for name in names):
        return seconds, float("nan")
    return seconds, max(abs(found[name.lower()] - op[name]) for name in names)


def row(m: int, backends: list[str]) -> tuple[str, list[str]]:
    """One line of the table, and the best backend of cvxpy; ``backends`` are asked beyond `ALL_CVXPY` nodes."""
    circuit = mesh(m)
    ours = median_seconds(lambda: circuitsim.solve(circuit), 30.0)
    op = circuitsim.solve(circuit)
    diodes = circuit.arrays().kind == DIODE
    share = float((op.currents[diodes] > 0.0).mean())
    count = f"{int(diodes.sum()):,} ({share:.0%} conduct)"
    cells = [f"{m * m:,}", count, f"{seconds(ours)}, {op.certificate.worst:.0e}"]
    if m * m > LARGEST_CVXPY:
        cells.append("not run")
    else:
        every = m * m <= ALL_CVXPY
        cell, backends = cvxpy_best(circuit, names(parametrised=False) if every else backends, ROUNDS if every else 1)
        cells.append(cell)
    if m * m > LARGEST_NGSPICE or missing("ngspice"):
        cells.append(missing("ngspice") or "not run")
    else:
        theirs, error = ngspice(circuit, op)
        wrong = "no operating point" if np.isnan(error) else f"{error:.0e} V"
        cells.append(f"{seconds(theirs)} ({times(theirs / ours)}), {wrong}")
    return "| " + " | ".join(cells) + " |", backends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", default="10,32,100,316,1000")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    load_kernels()  # compiled once for each installation
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    lines = [
        "| nodes | ideal diodes | circuitsim: time, error | best of cvxpy: time, error, backend "
        "| ngspice: time, off by |",
        "|---|---|---|---|---|",
    ]
    backends = [BEST]
    for m in (int(word) for word in options.sides.split(",")):
        line, backends = row(m, backends)
        lines.append(line)
        print(lines[-1], flush=True)
    lines += [
        "",
        f"{machine()} Load before {load}. "
        "Command: `python benchmarks/readme_table.py`. What is compared, and how: see its first lines.",
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "readme_table.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
