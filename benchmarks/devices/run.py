"""Random circuits of devices: how many have a certified operating point, and how many steps Newton's method takes.

    python benchmarks/devices/run.py --count 10000 --start 0

Seeds start … start + count − 1; processes with disjoint ranges share the work. Circuits without a certified operating
point are listed; the exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "contract")]

import numpy as np  # noqa: E402
from corpus import smooth  # noqa: E402

import circuitsim  # noqa: E402
from circuitsim.errors import CircuitError  # noqa: E402


def main() -> int:
    """Solve the circuits; 1 if any has no certified operating point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="number of circuits")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    options = parser.parse_args()
    steps, worst, errors = [], 0.0, Counter()
    began = time.process_time()
    for seed in range(options.start, options.start + options.count):
        circuit = circuitsim.loads(smooth(seed + seed // 3))  # of four, one has controlled sources
        try:
            point = circuitsim.solve(circuit)
        except CircuitError as error:
            errors[type(error).__name__] += 1
            print(f"seed {seed}: {circuit!r}: {type(error).__name__}: {error}", flush=True)
            continue
        steps.append(int(str(point.solver.get("newton_steps", 0))))
        worst = max(worst, point.certificate.worst)
    spent = time.process_time() - began
    print(f"{options.count} circuits, {len(steps)} certified (worst {worst:.1e}), errors {dict(errors)}")
    middle, most, all_ = np.percentile(steps, [50, 99, 100])
    print(f"Newton steps: median {middle:.0f}, 99 % at most {most:.0f}, all at most {all_:.0f}; {spent:.0f} s")
    return int(bool(errors))


if __name__ == "__main__":
    sys.exit(main())
