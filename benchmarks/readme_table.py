"""The table in README.md: whole solves of meshes with diodes, beside the best of cvxpy and ngspice, in one run.

    python benchmarks/readme_table.py [--sides 10,32,100,316,1000] [--out benchmarks/results]

The meshes are `circuits.mesh`: m² nodes, an ideal diode beside three edges in ten. Times are medians of the processor
time (one thread) of whole solves from a circuit in memory: ours with its certificate; cvxpy's with the modelling;
ngspice as a process that reads the deck and prints one operating point with near-ideal diodes (its start-up of a few
milliseconds included). Our error is the worst residual of the certificate, on local scales; cvxpy's the largest
difference of a node voltage from ours, as a fraction of the largest; ngspice's, whose diodes are not ideal, that in V.

Of cvxpy every installed backend is asked with the energy as a sum of squares and with the nodal matrix
(``cvxpy-nodal``), first at its default tolerance, then at 1e-9, 1e-11, 1e-13. The best is the fastest whose verified
error is at most 1e-6; where none is, the fastest answer at all, marked (!). Its ratio is against our times in the
same rounds; all of them: `cvxpy_backends.py`. Beyond `ALL_CVXPY` nodes only the best of the row before is asked, in
one round. Kernels are compiled before (`circuitsim warm-up`).
"""

from __future__ import annotations

import argparse
import os
import statistics
from pathlib import Path

import circuits
import numpy as np
from cvxpy_backends import best, load, measured, names, seconds, written

import circuitsim
from circuitsim.bench.runner import NGSPICE, NoAnswer, create, machine, missing, times

ALL_CVXPY, LARGEST_CVXPY, LARGEST_NGSPICE = 110 * 110, 320 * 320, 110 * 110
"""Largest numbers of nodes that all backends of cvxpy, the best of them, and ngspice finish in minutes."""
ROUNDS = 5
"""Rounds in which circuitsim and all backends of cvxpy take their turn."""


def spice(circuit: circuitsim.Circuit, voltages: np.ndarray, ours: float) -> str:
    """A cell: processor time of a whole process, and the largest difference of a node voltage, V."""
    if missing(NGSPICE):
        return missing(NGSPICE)
    solver, found = create(NGSPICE)(circuit, None), []
    for _ in range(4 if len(circuit) < 20_000 else 1):
        before = os.times()
        try:
            answer = solver()
        except NoAnswer:
            return "no operating point"
        after = os.times()
        found.append(after.children_user + after.children_system - before.children_user - before.children_system)
    took = statistics.median(found)
    return f"{written(took)} ({times(took / ours)}), {np.abs(answer - voltages).max():.0e} V"


def row(m: int, backends: list[str]) -> tuple[str, list[str]]:
    """One line of the table, and the best backend of cvxpy; ``backends`` are asked beyond `ALL_CVXPY` nodes."""
    circuit, nodes = circuitsim.loads(circuits.mesh(m)), m * m
    load(circuit)
    point = circuitsim.solve(circuit)
    ours = statistics.median(seconds(lambda: circuitsim.solve(circuit)) for _ in range(7 if m < 500 else 3))
    diodes = np.array([name[0] == "D" for name in circuit.names])
    share = float((point.currents[diodes] > 0.0).mean())
    cells = [
        f"{nodes:,}",
        f"{int(diodes.sum()):,} ({share:.0%} conduct)",
        f"{written(ours)}, {point.certificate.worst:.0e}",
    ]
    cell = "not run"
    if nodes <= LARGEST_CVXPY:
        every = nodes <= ALL_CVXPY
        entries = measured(
            circuit, names(parametrised=False) if every else backends, ROUNDS if every else 1, fresh=False
        )
        found = best(entries, "cold")
        cell = "no answer"
        if found is not None:
            theirs, own = (statistics.median(entry.cold) for entry in (found, entries[0]))
            mark = "" if found.good else " (!)"
            cell = f"{written(theirs)} ({times(theirs / own)}), {found.error:.0e}{mark}, {found.name}"
            backends = [found.name]
    cells += [cell, spice(circuit, point.voltages, ours) if nodes <= LARGEST_NGSPICE else "not run"]
    return "| " + " | ".join(cells) + " |", backends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", default="10,32,100,316,1000")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    heads = [
        "nodes",
        "ideal diodes",
        "circuitsim: time, error",
        "best of cvxpy: time, error, backend",
        "ngspice: time, off by",
    ]
    lines = ["| " + " | ".join(heads) + " |", "|---|---|---|---|---|"]
    backends = ["cvxpy-nodal:PIQP"]
    for m in map(int, options.sides.split(",")):
        line, backends = row(m, backends)
        lines.append(line)
        print(lines[-1], flush=True)
    command = "Command: `python benchmarks/readme_table.py`. What is compared, and how: see its first lines."
    lines += ["", f"{machine()} Load before {load}. {command}"]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "readme_table.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
