"""Monte Carlo of a mesh of 100 nodes: certified samples a second, beside a loop of single solves.

``python benchmarks/tolerance/run.py --samples 1000000 --into benchmarks/results/tolerance.md``
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np

import circuitsim
from circuitsim import Circuit
from circuitsim.engine.small.kernels import load


def mesh(side: int, diodes: int) -> Circuit:
    """A square mesh of resistors with a source, a load and diodes between random nodes."""
    rng, c = np.random.default_rng(1), Circuit(f"mesh of {side * side} nodes, {diodes} diodes")
    for i in range(side):
        for j in range(side):
            for di, dj in ((1, 0), (0, 1)):
                if i + di < side and j + dj < side:
                    name = f"R{i}_{j}_{di}"
                    c.resistor(name, f"n{i}_{j}", f"n{i + di}_{j + dj}", rng.uniform(500.0, 2000.0))
    c.voltage_source("V1", "n0_0", "0", 5.0)
    c.resistor("RL", f"n{side - 1}_{side - 1}", "0", 1e3)
    for k in range(diodes):
        a, b = rng.choice(side * side, 2, replace=False)
        c.diode(f"D{k}", f"n{a // side}_{a % side}", f"n{b // side}_{b % side}")
    return c


def measured(c: Circuit, samples: int) -> str:
    """One row of the table."""
    processors = len(os.sched_getaffinity(0))
    begun, used = time.perf_counter(), time.process_time()
    found = circuitsim.montecarlo(c, ["R*=1%"], "v(n9_9) v(n5_5)", samples, ["1<v(n9_9)<1.1"])
    wall, cpu = time.perf_counter() - begun, time.process_time() - used
    ready, value = circuitsim.prepared(c), c.arrays().value
    rows = value * np.random.default_rng(0).uniform(0.99, 1.01, (3000, value.size))
    rows[:, c.arrays().kind == 2] = 5.0
    start = ready.solve()
    begun = time.process_time()
    for row in rows:
        ready.solve(row, start)["n9_9"]
    single = (time.process_time() - begun) / len(rows) * samples
    return (
        f"| {c.title} | {samples:,} | {wall:.1f} s | {cpu:.1f} s | {cpu / processors:.1f} s | {single / cpu:.2f} | "
        f"{found.worst:.1e} |"
    )


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--into", metavar="FILE")
    args = parser.parse_args()
    load()
    circuitsim.montecarlo(mesh(10, 10), ["R*=1%"], "v(n9_9)", 2000)
    lines = [
        "# Monte Carlo",
        "",
        f"`python benchmarks/tolerance/run.py --samples {args.samples}`, {len(os.sched_getaffinity(0))} processors, "
        f"load average {os.getloadavg()[0]:.1f} at the start. Every resistance deviates by 1 %, every sample is "
        "certified.",
        "",
        "| circuit | samples | wall clock | processor time | that by the processors | loop of single solves, ratio | "
        "worst relative violation |",
        "|---|---|---|---|---|---|---|",
        *(measured(mesh(10, diodes), args.samples) for diodes in (0, 10)),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if args.into:
        Path(args.into).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
