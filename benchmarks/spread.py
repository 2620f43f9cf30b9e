"""Large circuits whose resistances spread over 24 decades: time, linear circuits, and whether they are certified.

    python benchmarks/spread.py [--out benchmarks/results/spread.txt]

The 1D1R crossbar of 7,960 unknowns and the mesh of 20,000 of `circuitsim.families`, every resistance multiplied
by 10^U(−12, 12). Processor time of one cold solve from a circuit in memory, kernels compiled before (`circuitsim
warm-up`).
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np

import circuitsim
from circuitsim.elements import RESISTOR
from circuitsim.families import make

CIRCUITS = (("crossbar-1d1r", 8_000), ("grid", 20_000))
"""Family and unknowns asked for."""
DECADES = 12.0
"""Resistances are multiplied by 10^U(−DECADES, DECADES)."""


def spread(family: str, unknowns: int, seed: int = 0) -> circuitsim.Circuit:
    """A circuit of a family with its resistances spread."""
    circuit = make(family, unknowns, seed)
    kind, value = circuit.arrays().kind, circuit.arrays().value
    factor = 10.0 ** np.random.default_rng(seed).uniform(-DECADES, DECADES, value.size)
    return circuit.with_column(np.where(kind == RESISTOR, value * factor, value))


def row(family: str, unknowns: int) -> str:
    """A line of the table."""
    circuit = spread(family, unknowns)
    began = time.process_time()
    try:
        point = circuitsim.solve(circuit)
    except circuitsim.CircuitError as error:
        return f"{family:16} {circuit.arrays().n_nodes:8,}  {time.process_time() - began:8.2f} s  {error}"
    took = time.process_time() - began
    certified = "certified" if point.certificate.certified else "not certified"
    count, worst = point.solver["iterations"], point.certificate.worst
    nodes = circuit.arrays().n_nodes
    return f"{family:16} {nodes:8,}  {took:8.2f} s  {count:4} linear circuits  {certified} ({worst:.0e})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the table to a file too")
    options = parser.parse_args()
    for family, _ in CIRCUITS:
        circuitsim.solve(spread(family, 1_000))
        circuitsim.solve(make(family, 6_000, 0))
    lines = ["family              nodes  processor time", *(row(*circuit) for circuit in CIRCUITS)]
    lines.append(f"load {os.getloadavg()[0]:.1f}; command: python benchmarks/spread.py")
    print("\n".join(lines))
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
