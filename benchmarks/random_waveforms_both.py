"""Random circuits of R, C, L, ideal diodes, switches and sources in time, by both methods.

    python benchmarks/random_waveforms_both.py [--count 1000] [--first 0] [--exact-only] [--accuracy 1e-5]
                                               [--workers 2] [--out FILE]

The circuits are the family `exact` of `tests/contract/corpus.py`. Each run is certified (Kirchhoff's laws and
laws of elements at each output time, energy balance) or an error. The states of both methods agree where their largest
difference is within 10 times the accuracy of the implicit method, of the largest capacitor voltage or inductor current.
Where it is larger (a steep flank after an event whose time is sensitive), the implicit run is repeated with a tenth of
the accuracy: methods that agree differ by a tenth then.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from circuitsim import loads
from circuitsim.errors import CircuitError, InfeasibleError, UnboundedError
from circuitsim.time_domain import TransientResult, transient

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "contract"))

from corpus import exact as deck_of  # noqa: E402

STOP, POINTS = 2.0, 41
FLOOR = 1e-3
"""Least scale of a state's error, of the largest voltage or current of all branches."""
WITHIN = 10.0
"""Accuracies of the implicit method within which states agree."""


class Run(NamedTuple):
    """Of one circuit by both methods: errors, events, energy balances, largest violation of a law, difference of
    states over the accuracy and the largest, what it falls by at a tenth of the accuracy (nan: within `WITHIN`),
    seconds of processor time."""

    seed: int
    errors: tuple[str, str]
    refused: bool
    events: tuple[int, int]
    energy: tuple[float, float]
    laws: float
    apart: float
    falls: float
    seconds: tuple[float, float]


def run(seed: int, accuracy: float) -> Run:
    """One circuit by both methods; by the exact one alone at an accuracy of 0."""
    deck = loads(deck_of(seed))
    found: list[TransientResult | None] = []
    errors: list[str] = []
    seconds, refused = [], False
    for method in ("exact", "implicit") if accuracy else ("exact",):
        began = time.process_time()
        try:
            asked = {"method": method, "accuracy": accuracy} if accuracy else {"method": method}
            found.append(transient(deck, STOP, points=POINTS, **asked))
            errors.append("")
        except CircuitError as error:
            found.append(None)
            errors.append(f"{type(error).__name__}: {error}")
            refused |= isinstance(error, (InfeasibleError, UnboundedError))
        seconds.append(time.process_time() - began)
    if not accuracy:
        found.append(None)
        errors.append("")
        seconds.append(math.nan)
    exact, implicit = found
    apart = falls = math.nan
    if exact is not None and implicit is not None:
        apart = difference(exact, implicit) / accuracy
        if not apart <= WITHIN:
            asked = {"method": "implicit", "accuracy": 0.1 * accuracy}
            finer = transient(deck, STOP, points=POINTS, **asked)
            falls = apart * accuracy / difference(exact, finer)
    done = [one for one in found if one is not None]
    laws = max((max(float(x) for x in tuple(one.certificate)[:5]) for one in done), default=math.nan)
    energy = [math.nan if one is None else float(one.energies.imbalance) for one in found]
    events = [0 if one is None else len(one.events) for one in found]
    return Run(
        seed,
        (errors[0], errors[1]),
        refused,
        (events[0], events[1]),
        (energy[0], energy[1]),
        laws,
        apart,
        falls,
        (seconds[0], seconds[1]),
    )


def difference(exact: TransientResult, implicit: TransientResult) -> float:
    """Largest difference of states, over the largest capacitor voltage or inductor current, at least `FLOOR` of the
    largest voltage or current of all elements: the scale of the implicit method's local error."""
    worst, waves = 0.0, exact.at(exact.times)
    for kind, pick in (("C", 0), ("L", 1)):
        own = [exact.circuit.element_index(name) for name in exact.circuit.names if name[0] == kind]
        if own:
            theirs = waves[pick][:, own]
            ours = implicit.at(implicit.times)[pick][:, own]
            scale = max(np.abs(theirs).max(), FLOOR * np.abs(waves[pick]).max())
            worst = max(worst, float(np.abs(ours - theirs).max() / scale) if scale else float(np.abs(ours).max()))
    return worst


def table(runs: list[Run], accuracy: float) -> list[str]:
    """The result in words."""
    methods = ("exact", "implicit") if accuracy else ("exact",)
    lines = [f"{len(runs):,} random circuits of R, C, L, ideal diodes and switches, {STOP:g} s"]
    for k, method in enumerate(methods):
        good = [one for one in runs if not one.errors[k]]
        named = sum(one.refused and bool(one.errors[k]) for one in runs)
        lines.append(
            f"{method}: {len(runs) - len(good)} errors ({named} of them infeasible times), "
            f"{sum(one.events[k] for one in good):,} events, energy balance at worst "
            f"{max(one.energy[k] for one in good):.1e}, median "
            f"{1e3 * statistics.median(one.seconds[k] for one in runs):.0f} ms a circuit"
        )
    lines.append(f"laws at output times at worst {max(one.laws for one in runs if not one.errors[0]):.1e}")
    if accuracy:
        both = [one for one in runs if not any(one.errors)]
        apart = sorted(one.apart for one in both)
        beyond = [one for one in both if not one.apart <= WITHIN]
        lines.append(
            f"agreement of the states, in accuracies of the implicit method ({accuracy:g}): median "
            f"{statistics.median(apart):.2f}, largest {apart[-1]:.2f}; beyond 10: {len(beyond)}"
        )
        lines += [
            f"    {one.seed}: {one.apart:.1f}, at accuracy / 10 {one.falls:.1f} times less, events {one.events}"
            for one in beyond
        ]
    lines += [
        f"    {one.seed}: {method}: {text}"
        for one in runs
        for method, text in zip(("exact", "implicit"), one.errors)
        if text
    ]
    return lines


def main() -> None:
    """Print the table and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--exact-only", action="store_true", help="no implicit method")
    parser.add_argument("--accuracy", type=float, default=1e-5, help="of the implicit method")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.count)
    accuracy = 0.0 if args.exact_only else args.accuracy
    with ProcessPoolExecutor(args.workers) as pool:
        runs = list(pool.map(run, seeds, itertools.repeat(accuracy), chunksize=4))
    lines = table(runs, accuracy)
    chosen = f"--accuracy {accuracy:g}" if accuracy else "--exact-only"
    lines.append(
        f"load {os.getloadavg()[0]:.1f}; command: python benchmarks/random_waveforms_both.py --count {args.count} "
        f"--first {args.first} {chosen}"
    )
    print("\n".join(lines))
    if args.out:
        args.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
