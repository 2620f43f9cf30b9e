"""Random circuits against the exact oracle: how many operating points are wrong, and the circuits that show it.

    python benchmarks/exactness/run.py --count 98000 --start 0 --nodes 2-20
    python benchmarks/exactness/run.py --count 2000 --start 0 --nodes 21-60 --regime decades
    python benchmarks/exactness/run.py --count 5000 --start 0 --repeats 4

Seeds start … start + count − 1; without ``--regime`` seed s belongs to regime s mod 10. Processes with disjoint
ranges of seeds share the work. Kernels run compiled where a cache holds them (`circuitsim warm-up`), with the same
bits. With ``--repeats`` each circuit is prepared once and solved with so many sets of values, from earlier points and
as a batch. The last lines count complaints by kind and circuits by regime; the exit status is 1 if any circuit is
wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), *(str(ROOT / "tests" / folder) for folder in ("", "contract", "properties"))]

from branch_checks import Complaint, examine  # noqa: E402
from circuits import Sketch, draw  # noqa: E402
from corpus import REGIMES  # noqa: E402
from repeated_checks import examine_batch, examine_starts  # noqa: E402

from circuitsim import dumps  # noqa: E402

NAMES = {regime.__name__: regime for regime in REGIMES}


def node_range(text: str) -> tuple[int, int]:
    """``2-20`` as (2, 20)."""
    low, high = text.split("-")
    return int(low), int(high)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="number of circuits")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    parser.add_argument("--nodes", type=node_range, default=(2, 20), help="range of nodes, ground included: 2-20")
    parser.add_argument("--regime", choices=[*NAMES], help="one regime only")
    parser.add_argument(
        "--repeats",
        type=int,
        default=0,
        help="sets of values of each circuit: solved from earlier points, then as a batch, on one prepared circuit",
    )
    parser.add_argument("--quiet", action="store_true", help="counts only, no circuits")
    return parser.parse_args()


def complaints(sketch: Sketch, seed: int, repeats: int) -> list[Complaint]:
    """What is wrong with a circuit: solved once, or with ``repeats`` sets of values."""
    if not repeats:
        return examine(sketch)
    rng = np.random.default_rng([seed, repeats])
    return [*examine_starts(sketch, rng, repeats), *examine_batch(sketch, rng, repeats)]


def main() -> int:
    """Run the circuits; 1 if any is wrong."""
    options = arguments()
    drawn: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    began = time.perf_counter()
    for done, seed in enumerate(range(options.start, options.start + options.count), 1):
        regime = options.regime or list(NAMES)[seed % len(NAMES)]
        sketch = draw(NAMES[regime], seed, options.nodes)
        found = complaints(sketch, seed, options.repeats)
        drawn[regime] += 1
        wrong[regime] += bool(found)
        kinds.update({complaint.kind.value for complaint in found})
        if found and not options.quiet:
            print(f"* {regime} seed {seed}: {len(found)} complaints")
            print(*(f"*   {complaint.sentence}" for complaint in found[:5]), dumps(sketch.circuit()), sep="\n")
        if done % 100 == 0 or done == options.count:
            seconds = time.perf_counter() - began
            print(f"{done} of {options.count}, {wrong.total()} wrong, {seconds:.0f} s", file=sys.stderr, flush=True)
    print(f"{wrong.total()} of {drawn.total()} circuits wrong")
    for kind, count in kinds.most_common():
        print(f"  {count:6d} with: {kind}")
    for regime in drawn:
        print(f"  {wrong[regime]:6d} of {drawn[regime]:6d} in {regime}: {NAMES[regime].__doc__}")
    return int(wrong.total() > 0)


if __name__ == "__main__":
    sys.exit(main())
