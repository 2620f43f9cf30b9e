"""Random circuits against exact oracles: how many answers are wrong, and the circuits that show it.

    python benchmarks/exactness/run.py --count 98000 --start 0 --nodes 2-20
    python benchmarks/exactness/run.py --count 2000 --start 0 --nodes 21-60 --regime decades
    python benchmarks/exactness/run.py --count 5000 --start 0 --repeats 4
    python benchmarks/exactness/run.py --kind ac --seconds 60

Seeds start … start + count − 1; without ``--regime`` seed s belongs to regime s mod 10. Processes with disjoint
ranges of seeds share the work. Kernels run compiled where a cache holds them (`circuitsim warm-up`), with the same
bits. With ``--repeats`` each circuit is prepared once and solved with so many sets of values, from earlier points and
as a batch. ``--kind ac`` compares AC analyses with dense nodal equations, refined in extended precision.
``--seconds`` ends a run early. The last lines count complaints by kind and circuits by regime; the exit status is 1 if
any circuit is wrong.
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
from corpus import FAMILIES, REGIMES  # noqa: E402
from repeated_checks import examine_batch, examine_starts  # noqa: E402

from circuitsim import UsageError, ac, dumps, loads  # noqa: E402

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
    parser.add_argument("--kind", choices=["points", "ac"], default="points", help="operating points, or AC analysis")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after this time")
    parser.add_argument("--quiet", action="store_true", help="counts only, no circuits")
    return parser.parse_args()


def complaints(sketch: Sketch, seed: int, repeats: int) -> list[Complaint]:
    """What is wrong with a circuit: solved once, or with ``repeats`` sets of values."""
    if not repeats:
        return examine(sketch)
    rng = np.random.default_rng([seed, repeats])
    return [*examine_starts(sketch, rng, repeats), *examine_batch(sketch, rng, repeats)]


def dense(text: str, hertz: float) -> dict[str, complex]:
    """Node voltages of a deck of R, C, L, K, V, I, E and G at one frequency, by modified nodal equations."""
    cards = [line.split() for line in text.splitlines()[1:] if line[0] not in ".K"]
    pairs = [line.split() for line in text.splitlines()[1:] if line[0] == "K"]
    nodes = sorted({name for card in cards for name in card[1:3]} - {"0"})
    place = {name: k for k, name in enumerate(nodes)} | {"0": -1}
    branches = {card[0]: len(nodes) + k for k, card in enumerate(c for c in cards if c[0][0] in "VEL")}
    size, s = len(nodes) + len(branches) + 1, 2j * np.pi * hertz
    matrix, right = np.zeros((size, size), np.clongdouble), np.zeros(size, np.clongdouble)  # the last row: ground
    henries = {card[0]: float(card[3]) for card in cards if card[0][0] == "L"}
    for name, first, second, *rest in cards:
        ends, letter = [place[first], place[second]], name[0]
        row = branches.get(name)
        if row is not None:
            matrix[row, ends] += [1, -1]
            matrix[ends, row] += [1, -1]
        if letter in "RC":
            matrix[np.ix_(ends, ends)] += np.array([[1, -1], [-1, 1]]) * (
                s * float(rest[0]) if letter == "C" else 1 / float(rest[0])
            )
        elif letter == "L":
            matrix[row, row] -= s * henries[name]
        elif letter == "V":
            right[row] = 1.0
        elif letter == "I":
            right[ends] += np.array([-1, 1]) * 1e-3 * np.exp(0.25j * np.pi)
        else:
            control, gain = [place[rest[0]], place[rest[1]]], float(rest[2])
            if letter == "E":
                matrix[row, control] -= [gain, -gain]
            else:
                matrix[np.ix_(ends, control)] += gain * np.array([[1, -1], [-1, 1]])
    for _, one, other, factor in pairs:
        mutual = s * float(factor) * np.sqrt(henries[one] * henries[other])
        matrix[branches[one], branches[other]] -= mutual
        matrix[branches[other], branches[one]] -= mutual
    matrix, right = matrix[:-1, :-1], right[:-1]
    inverse, found = np.linalg.inv(matrix.astype(complex)), np.zeros(size - 1, np.clongdouble)
    for _ in range(20):
        found += inverse @ (right - matrix @ found)
    return {name: complex(found[k]) for name, k in place.items() if k >= 0}


def over_frequency(options: argparse.Namespace) -> int:
    """Responses of the corpus without junctions; 1 if a voltage is off by more than 1e-9 of the largest."""
    began, wrong, done = time.perf_counter(), 0, 0
    for seed in range(options.start, options.start + options.count):
        if time.perf_counter() - began > options.seconds:
            break
        text = FAMILIES["ac"].deck(seed)
        if "\nD1 " in text:
            continue
        try:
            found, done = ac(loads(text)), done + 1
        except UsageError:  # of windings whose rounded factors store negative energy
            continue
        for k, hertz in enumerate(found.frequencies.tolist()):
            exact = dense(text, hertz)
            size = max(map(abs, exact.values()))
            off = max(abs(found[name][k] - value) for name, value in exact.items()) / size
            if not off <= 1e-9:
                wrong += 1
                print(f"* seed {seed} at {hertz:g} Hz: off by {off:.1e}", *([] if options.quiet else [text]), sep="\n")
                break
    print(f"{wrong} of {done} circuits wrong")
    return int(wrong > 0)


def main() -> int:
    """Run the circuits; 1 if any is wrong."""
    options = arguments()
    if options.kind == "ac":
        return over_frequency(options)
    drawn: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    began = time.perf_counter()
    for done, seed in enumerate(range(options.start, options.start + options.count), 1):
        if time.perf_counter() - began > options.seconds:
            break
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
