"""Random circuits against independent answers: one program for every kind, with seeds and a limit of time.

    python benchmarks/campaign.py --seconds 60
    python benchmarks/campaign.py points --count 100000 --start 8000000 --processes 2
    python benchmarks/campaign.py points --start 3 --step 10          # one regime: that of seed 3
    python benchmarks/campaign.py --seconds 36000 --record benchmarks/results/campaigns.md

Without a kind all of them run, each for an equal part of the time. A circuit is a function of its kind and seed alone.
Each wrong answer is printed with its circuit as soon as it is found; the table at the end counts the others by kind.
The exit status is 1 if any answer is wrong. Compile the kernels before: `circuitsim warm-up`.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
FOLDERS = ("", "contract", "properties", "controlled", "tolerance")
sys.path[:0] = [str(ROOT), *(str(ROOT / "tests" / folder) for folder in FOLDERS)]

from branch_checks import examine  # noqa: E402
from brute_force import compare  # noqa: E402
from brute_force import draw as toleranced  # noqa: E402
from circuits import LARGE, SMALL, draw  # noqa: E402
from corpus import FAMILIES, REGIMES, controlled, piecewise_model  # noqa: E402
from hard_circuits import hard_circuit  # noqa: E402
from judge import Answer, judged  # noqa: E402
from level_tables import level_table  # noqa: E402
from repeated_checks import examine_batch, examine_starts  # noqa: E402

from circuitsim import Circuit, ac, dumps, loads, solve, transient  # noqa: E402
from circuitsim.errors import CircuitError, InfeasibleError, UnboundedError, UsageError  # noqa: E402
from circuitsim.time_domain import TransientResult  # noqa: E402


class Outcome(NamedTuple):
    """Of one circuit: the answer in a word or two, what is wrong with it, and the deck that shows it."""

    answer: str
    wrong: list[str]
    deck: str = ""


def _points(seed: int, nodes: tuple[int, int] = SMALL, repeats: int = 0) -> Outcome:
    """A circuit of the regime seed mod 10, solved once, or with sets of values from earlier points and as a batch."""
    regime = REGIMES[seed % len(REGIMES)]
    sketch, rng = draw(regime, seed, nodes), np.random.default_rng([seed, repeats])
    found = (
        [*examine_starts(sketch, rng, repeats), *examine_batch(sketch, rng, repeats)] if repeats else examine(sketch)
    )
    return Outcome(regime.__name__, found, dumps(sketch.circuit()) if found else "")


def _devices(seed: int) -> Outcome:
    """A circuit of all kinds of devices, one of four with controlled sources."""
    deck = FAMILIES["smooth"].deck(seed + seed // 3)
    try:
        steps = int(str(solve(loads(deck)).solver.get("newton_steps", 0)))
    except CircuitError as error:
        return Outcome("error", [f"{type(error).__name__}: {error}"], deck)
    return Outcome(f"certified, {'at most 10' if steps <= 10 else 'up to 25' if steps <= 25 else 'more'} steps", [])


def _judged(circuit: Circuit, amplifiers: bool = False) -> Outcome:
    """With ``amplifiers``, of circuits people have, the only operating point must be found; elsewhere it may be missed
    where nothing is claimed."""
    try:
        answer = judged(circuit)
        if amplifiers and answer is Answer.MISSED:
            solve(circuit)
    except (AssertionError, CircuitError) as error:
        return Outcome("wrong", [str(error)], dumps(circuit))
    return Outcome(answer.value, [])


def _controlled(seed: int) -> Outcome:
    return _judged(loads(FAMILIES["controlled"].deck(seed)).circuit, amplifiers=True)


def _tables(seed: int) -> Outcome:
    """Tables with level pieces in circuits of the one kind or the other."""
    if seed % 2:
        return _judged(loads(controlled(seed, piecewise_model)).circuit, amplifiers=True)
    return _judged(hard_circuit(seed, 6, 3, level_table))


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


def _over_frequency(seed: int) -> Outcome:
    """Responses of the corpus without junctions, to 1e-9 of the largest voltage."""
    deck = FAMILIES["ac"].deck(seed)
    if "\nD1 " in deck:
        return Outcome("with a junction: left out", [])
    try:
        found = ac(loads(deck))
    except UsageError:
        return Outcome("refused: rounded factors of windings store negative energy", [])
    for k, hertz in enumerate(found.frequencies.tolist()):
        exact = dense(deck, hertz)
        off = max(abs(found[name][k] - value) for name, value in exact.items()) / max(map(abs, exact.values()))
        if not off <= 1e-9:
            return Outcome("wrong", [f"off by {off:.1e} at {hertz:g} Hz"], deck)
    return Outcome("equal", [])


ACCURACY = 1e-4
"""Of the implicit method, beside the exact one."""
WITHIN = 10.0
"""Accuracies within which the states of two methods agree."""
FLOOR = 1e-3
"""Least scale of a state's error, of the largest voltage or current of all branches."""


def _over_time(seed: int) -> Outcome:
    """Two methods over 2 s. Where states are further apart than `WITHIN` (a steep flank after an event whose time is
    sensitive), a tenth of the accuracy leaves at most half of the difference."""
    deck = FAMILIES["exact"].deck(seed)
    given = loads(deck)

    def run(**asked: object) -> TransientResult | CircuitError:
        try:
            return transient(given, 2.0, points=41, **asked)
        except CircuitError as error:
            return error

    exact, implicit = run(method="exact"), run(method="implicit", accuracy=ACCURACY)
    if isinstance(exact, CircuitError):
        refused = isinstance(exact, (InfeasibleError, UnboundedError)) and isinstance(implicit, type(exact))
        return Outcome("refused by both", [] if refused else [f"{type(exact).__name__}: {exact}"], deck)
    if isinstance(implicit, CircuitError):
        return Outcome(f"exact alone ({type(implicit).__name__})", [])
    apart = difference(exact, implicit, deck)
    if apart <= WITHIN * ACCURACY:
        return Outcome("equal", [])
    finer = run(method="implicit", accuracy=0.1 * ACCURACY)
    if not isinstance(finer, CircuitError) and difference(exact, finer, deck) <= 0.5 * apart:
        return Outcome("equal in the limit", [])
    return Outcome("wrong", [f"methods are {apart:.1e} apart, and as much at a tenth of the accuracy"], deck)


def difference(exact: TransientResult, implicit: TransientResult, deck: str) -> float:
    """Largest difference of capacitor voltages and of flux linkages (currents of windings with a factor of 1 may be
    open), over the largest of them, at least `FLOOR` of what the largest voltage or current of all elements makes."""
    circuit, worst = exact.circuit, 0.0
    coupled = [line.split() for line in deck.splitlines()[1:] if line[0] == "K"]
    for kind, mine, other in zip("CL", exact.at(exact.times), implicit.at(exact.times)):
        names = [name for name in circuit.names if name[0] == kind]
        if not names:
            continue
        own = [circuit.element_index(name) for name in names]
        henries = circuit.arrays().value[own]
        states = np.eye(len(own)) if kind == "C" else np.diag(henries)
        for _, one, two, factor in coupled if kind == "L" else ():
            k, j = names.index(one), names.index(two)
            states[k, j] = states[j, k] = float(factor) * np.sqrt(henries[k] * henries[j])
        found, scale = mine[:, own] @ states, FLOOR * np.abs(mine).max() * states.max()
        worst = max(
            worst, float(np.abs(other[:, own] @ states - found).max() / (max(np.abs(found).max(), scale) or 1.0))
        )
    return worst


def _tolerances(seed: int) -> Outcome:
    """Proven worst cases, with and without ideal diodes, beside all corners and 300 points inside."""
    parts = int(np.random.default_rng(seed).integers(1, 13))
    case = toleranced(seed, parts, bool(seed % 2))
    found = compare(case, budget=600)
    wrong = [f"{found.outside} of {found.quantities} quantities outside: {case.tolerances}"] if found.outside else []
    answer = "exact" if found.exact == found.quantities else "without a bound" if found.unbounded else "an interval"
    return Outcome(answer, wrong, dumps(case.circuit) if wrong else "")


class Kind(NamedTuple):
    """What answers are held against, and the examination of a seed."""

    against: str
    examine: Callable[[int], Outcome]


KINDS = {
    "points": Kind("every branch in rational arithmetic, 2 to 20 nodes", _points),
    "large": Kind("the same, 21 to 60 nodes", lambda seed: _points(seed, LARGE)),
    "values": Kind("the same, new values from earlier points and as a batch", lambda seed: _points(seed, repeats=4)),
    "devices": Kind("a certificate for each circuit", _devices),
    "controlled": Kind("all states in rational arithmetic", _controlled),
    "tables": Kind("the same, devices with level pieces", _tables),
    "hard": Kind("the same, circuits that nothing makes well posed", lambda seed: _judged(hard_circuit(seed))),
    "waveforms": Kind("the exact method beside the implicit one", _over_time),
    "ac": Kind("dense nodal equations in extended precision", _over_frequency),
    "tolerances": Kind("all corners and 300 points inside", _tolerances),
}


class Found(NamedTuple):
    """Of a range of seeds: how often each answer came, and wrong outcomes by seed."""

    answers: Counter[str]
    wrong: dict[int, Outcome]
    seconds: float

    def row(self, kind: str, start: int) -> str:
        """The row of the table."""
        answers = ", ".join(f"{answer} {count:,}" for answer, count in self.answers.most_common())
        cells = (kind, KINDS[kind].against, f"{start:,} …", f"{self.answers.total():,}", len(self.wrong), answers)
        return f"| {' | '.join(map(str, cells))} | {self.seconds:.0f} s |"


HEADER = "| kind | answers beside | seeds | circuits | wrong | answers | time |\n|---|---|---|--:|--:|---|--:|"


def _one(kind: str, seed: int) -> tuple[int, Outcome]:
    return seed, KINDS[kind].examine(seed)


def run(kind: str, seeds: range, seconds: float = float("inf"), processes: int = 1) -> Found:
    """Examine circuits of one kind until the seeds or the seconds are over."""
    began, found = time.perf_counter(), Found(Counter(), {}, 0.0)

    def in_time() -> Iterator[int]:
        return itertools.takewhile(lambda _: time.perf_counter() - began < seconds, seeds)

    def outcomes() -> Iterator[tuple[int, Outcome]]:
        if processes == 1:
            yield from (_one(kind, seed) for seed in in_time())
            return
        with ProcessPoolExecutor(processes) as pool:
            waiting = in_time()
            while block := list(itertools.islice(waiting, 64 * processes)):
                yield from pool.map(_one, itertools.repeat(kind), block, chunksize=8)

    for seed, outcome in outcomes():
        found.answers[outcome.answer] += 1
        if outcome.wrong:
            found.wrong[seed] = outcome
            print(f"* {kind}, seed {seed}:", *(f"*   {one}" for one in outcome.wrong[:5]), outcome.deck, sep="\n")
    return found._replace(seconds=time.perf_counter() - began)


def main() -> int:
    """Run the kinds and print the table; 1 if any answer is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; all of them if none is named")
    parser.add_argument("--start", type=int, default=0, help="first seed (default 0)")
    parser.add_argument("--step", type=int, default=1, help="distance of the seeds (default 1)")
    parser.add_argument("--count", type=int, help="circuits of each kind (default 1000, or what --seconds allows)")
    parser.add_argument("--seconds", type=float, help="end after this time, all kinds together")
    parser.add_argument("--processes", type=int, default=1, help="processes that share the work (default 1)")
    parser.add_argument("--record", type=Path, metavar="FILE", help="add the table to a file")
    options = parser.parse_args()
    kinds = options.kinds or list(KINDS)
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        parser.error(f"no kind {unknown[0]!r}: choose from {', '.join(KINDS)}")
    count = options.count or (1000 if options.seconds is None else sys.maxsize // options.step - options.start)
    seeds = range(options.start, options.start + count * options.step, options.step)
    limit = float("inf") if options.seconds is None else options.seconds / len(kinds)
    load, rows, wrong = os.getloadavg()[0], [], 0
    print(HEADER)
    for kind in kinds:
        found = run(kind, seeds, limit, options.processes)
        rows.append(found.row(kind, options.start))
        wrong += len(found.wrong)
        print(rows[-1], flush=True)
    if options.record:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
        title = f"\nCommit {commit.stdout.strip()}, load {load:.1f}: `python {' '.join(sys.argv)}`\n\n"
        with options.record.open("a", encoding="utf-8") as file:
            file.write("\n".join([title + HEADER, *rows]) + "\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
