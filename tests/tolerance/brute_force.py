"""Random circuits with tolerances, and their extremes over all corners and many points inside."""

import itertools
from typing import NamedTuple

import numpy as np
from corpus import tolerances

import circuitsim
from circuitsim import Circuit
from circuitsim.tolerance import parse_tolerance
from circuitsim.tolerance.montecarlo import Job, Worker
from circuitsim.tolerance.spread import spread_of


class Case(NamedTuple):
    """A circuit, its tolerances, what is observed."""

    circuit: Circuit
    tolerances: list[str]
    observe: str


def draw(seed: int, parts: int, diodes: bool) -> Case:
    """A circuit of the contract's family, ``parts`` toleranced resistors and sources of 1 to 50 %, one time in four
    with a common share."""
    rng = np.random.default_rng([seed, parts, diodes])
    c = circuitsim.loads(tolerances(4 * seed + 2 * diodes)).circuit
    names = [e.name for e in c if e.kind != "ideal diode"]
    chosen = rng.choice(names, min(parts, len(names)), replace=False)
    found = [f"{name}={rng.choice([1, 5, 20, 50])}%" for name in chosen]
    return Case(c, [*found, *(["R*=10%,lot"] if rng.random() < 0.25 else [])], "v(1) v(2,1) i(RS)")


def extremes(case: Case, inside: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest values over corners and points inside, by solving each."""
    spread = spread_of(case.circuit, [parse_tolerance(t) for t in case.tolerances])
    worker = Worker(Job(case.circuit, spread.names, case.observe, 1e-9))
    v = len(spread.variables)
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=v)))
    points = np.random.default_rng(0).uniform(-1.0, 1.0, (inside, v))
    found = worker.solve(spread.values(np.concatenate([corners, points]) * spread.amount))[0]
    return np.nanmin(found, axis=0), np.nanmax(found, axis=0)


class Outcome(NamedTuple):
    """Of one circuit: quantities whose brute-force extremes lie outside the proven interval, those that are proven
    exactly, those without any bound, quantities, and by how much search fell short of brute force at most, of the
    range."""

    outside: int
    exact: int
    unbounded: int
    quantities: int
    short: float
    systems: int


def compare(case: Case, budget: int = 2000) -> Outcome:
    """The proven interval against brute force."""
    low, high = extremes(case)
    ranges = circuitsim.worst_case(case.circuit, case.tolerances, case.observe, budget=budget).ranges
    outside = exact = unbounded = systems = 0
    short = 0.0
    for q, found in enumerate(ranges):
        rounding = 1e-9 * max(abs(low[q]), abs(high[q]), abs(found.nominal), 1e-6)
        outside += bool(low[q] < found.least.bound - rounding or high[q] > found.most.bound + rounding)
        assert found.least.value >= found.least.bound - rounding
        exact += found.exact
        unbounded += not np.isfinite(found.most.gap + found.least.gap)
        width = max(high[q] - low[q], rounding)
        short = max(short, (found.least.value - low[q]) / width, (high[q] - found.most.value) / width)
        systems += found.systems
    return Outcome(outside, exact, unbounded, len(ranges), short, systems)
