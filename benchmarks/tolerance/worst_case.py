"""Proven worst cases against brute force over all corners and points inside, on random circuits.

``python benchmarks/tolerance/worst_case.py --count 250 --into benchmarks/results/worst_case.md``: so many circuits of
resistors and sources, as many with ideal diodes, up to 12 toleranced parts, 1 to 50 %. The exit status is 1 if any
quantity leaves its proven interval.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), *(str(ROOT / "tests" / folder) for folder in ("contract", "tolerance"))]

from brute_force import compare, draw  # noqa: E402

import circuitsim  # noqa: E402
from circuitsim import Circuit  # noqa: E402


def checked(count: int, start: int, diodes: bool) -> tuple[str, int]:
    """One row of the table of comparisons, and the quantities outside their intervals."""
    outside = exact = unbounded = quantities = systems = 0
    short, begun = 0.0, time.process_time()
    for seed in range(start, start + count):
        parts = int(np.random.default_rng(seed).integers(1, 13))
        found = compare(draw(seed, parts, diodes), budget=600)
        outside += found.outside
        exact += found.exact
        unbounded += found.unbounded
        quantities += found.quantities
        systems += found.systems
        short = max(short, found.short)
        if found.outside:
            print("outside", seed, parts, diodes)
    used = time.process_time() - begun
    kind = "with ideal diodes" if diodes else "resistors and sources"
    cells = (kind, count, quantities, outside, exact, unbounded, f"{short:.1e}", f"{systems / quantities:.0f}")
    return f"| {' | '.join(map(str, cells))} | {used:.0f} s |", outside


def timed(tolerance: int) -> str:
    """Every node of circuits of 20 toleranced resistors."""
    times, systems, exact, nodes = [], 0, 0, 14
    for seed in range(10):
        rng, c = np.random.default_rng(seed), Circuit("20 parts")
        for k in range(1, nodes + 1):
            c.resistor(f"R{k}", str(k), str(rng.integers(0, k)), 10.0 ** rng.uniform(2, 4))
        for k in range(nodes + 1, 20):
            a, b = rng.choice(nodes + 1, 2, replace=False)
            c.resistor(f"R{k}", str(a), str(b), 10.0 ** rng.uniform(2, 4))
        c.voltage_source("V1", "s", "0", 5.0)
        c.resistor("RS", "s", "3", 1e3)
        begun = time.process_time()
        found = circuitsim.worst_case(c, [f"R*={tolerance}%"], [f"v({k})" for k in range(1, nodes + 1)])
        times.append(time.process_time() - begun)
        systems += sum(r.systems for r in found.ranges)
        exact += sum(r.exact for r in found.ranges)
    cells = (f"{np.median(times):.3f} s", f"{max(times):.3f} s", f"{systems / 10:.0f}", f"{exact} of {10 * nodes}")
    return f"| ±{tolerance} % | {' | '.join(cells)} |"


def main() -> int:
    """Compare, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=250)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--into", metavar="FILE")
    args = parser.parse_args()
    load = os.getloadavg()[0]
    rows = [checked(args.count, args.start, diodes) for diodes in (False, True)]
    lines = [
        "# Worst cases with proof",
        "",
        f"`python benchmarks/tolerance/worst_case.py --count {args.count}`, load "
        f"average {load:.1f}; processor time. Up to 12 toleranced parts of 1 to 50 %, one time in four with a common "
        "share besides; brute force over all corners and 300 points inside; budget 600 linear systems a search.",
        "",
        "| circuits | number | quantities | outside the proven interval | exact | without a bound | search short of "
        "brute force, of the range | linear systems a quantity | time |",
        "|---|---|---|---|---|---|---|---|---|",
        *(row for row, _ in rows),
        "",
        "Every node (14) of circuits of 20 toleranced resistors, ten circuits:",
        "",
        "| tolerance | median | most | linear systems | exact |",
        "|---|---|---|---|---|",
        *(timed(tolerance) for tolerance in (1, 5, 20, 50)),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if args.into:
        Path(args.into).write_text(text, encoding="utf-8")
    return int(any(outside for _, outside in rows))


if __name__ == "__main__":
    sys.exit(main())
