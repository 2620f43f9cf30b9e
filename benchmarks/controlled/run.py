"""Random circuits with controlled sources against enumeration in exact arithmetic.

    python benchmarks/controlled/run.py --count 5000
    python benchmarks/controlled/run.py --count 3500 --hard --nodes 8 --diodes 5

The lines count answers by kind; a wrong answer (a missed operating point with a proof that there is none, a false
``unique`` or ``several``, an operating point that exact arithmetic does not have) is printed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), *(str(ROOT / "tests" / folder) for folder in ("", "contract", "controlled"))]

from corpus import controlled  # noqa: E402
from hard_circuits import hard_circuit  # noqa: E402
from judge import judged  # noqa: E402

import circuitsim  # noqa: E402


def main() -> int:
    """Run the circuits; 1 if any answer is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=0, help="number of random circuits")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    parser.add_argument("--nodes", type=int, default=8, help="most nodes of --hard")
    parser.add_argument("--diodes", type=int, default=5, help="most diodes of --hard")
    parser.add_argument("--hard", action="store_true", help="circuits that nothing makes well posed")
    options = parser.parse_args()
    found: Counter[str] = Counter()
    wrong = 0
    for seed in range(options.start, options.start + options.count):
        if options.hard:
            circuit = hard_circuit(seed, options.nodes, options.diodes)
        else:
            circuit = circuitsim.loads(controlled(seed)).circuit
        try:
            found[judged(circuit).value] += 1
        except AssertionError as error:
            wrong += 1
            print(f"seed {seed}: {error}")
    for answer, count in found.most_common():
        print(f"  {count:6d} {answer}")
    if options.count:
        print(f"{wrong} of {options.count} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
