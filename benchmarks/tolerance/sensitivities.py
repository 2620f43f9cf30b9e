"""All sensitivities of one voltage of a mesh, beside one solve.

``python benchmarks/tolerance/sensitivities.py --into benchmarks/results/sensitivities.md``
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from run import mesh

import circuitsim

ROUNDS = 9


def seconds(call: Callable[[], object]) -> float:
    """Processor time of a call."""
    begun = time.process_time()
    call()
    return time.process_time() - begun


def measured(side: int, diodes: int) -> str:
    """One row: medians of calls in turns."""
    c, output = mesh(side, diodes), f"v(n{side - 1}_{side - 1})"
    point = circuitsim.solve(c)
    calls = (lambda: circuitsim.solve(c), lambda: circuitsim.sensitivity(point, output))
    for call in calls:
        call()
    rounds = [[seconds(call) for call in calls] for _ in range(ROUNDS)]
    one, every = (1e3 * statistics.median(column) for column in zip(*rounds))
    ratio = statistics.median(b / a for a, b in rounds)
    return f"| {side * side:,} | {len(c):,} | {diodes:,} | {one:.1f} ms | {every:.1f} ms | {ratio:.2f} |"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", metavar="FILE")
    args = parser.parse_args()
    lines = [
        "# Sensitivities of one voltage to every value",
        "",
        f"`python benchmarks/tolerance/sensitivities.py`, {len(os.sched_getaffinity(0))} processors, load average "
        f"{os.getloadavg()[0]:.1f} at the start; medians of {ROUNDS} rounds in turns, processor time. The operating "
        "point is there already.",
        "",
        "| nodes | elements | diodes | one solve | all sensitivities | ratio |",
        "|---|---|---|---|---|---|",
        *(measured(side, diodes) for side, diodes in ((32, 0), (32, 300), (100, 0), (100, 300), (100, 3000))),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if args.into:
        Path(args.into).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
