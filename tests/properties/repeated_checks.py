"""One prepared circuit with several sets of values against the exact oracle: starts from other points, and batches.

All solves of a prepared circuit share one workspace, and so do the samples of a batch: what an earlier one has left
there must not show. `benchmarks/campaign.py values` draws circuits for it.
"""

from collections.abc import Sequence

import numpy as np
from branch_checks import complaints, examine
from circuits import Sketch

import circuitsim
from circuitsim.errors import CircuitError

DECADES = 3.0
"""Resistances and sources change by so many decades at most."""


def revalued(sketch: Sketch, rng: np.random.Generator, ohms: bool) -> Sketch:
    """The same elements with other values of sources, and with ``ohms`` of resistances.

    Voltages of sources get one factor, so that their loops stay closed; each current one of its own, which is 0, −1 or
    some power of ten.
    """
    volts = float(rng.choice([-1.0, 0.5, 2.0, -0.25]))
    parts = []
    for letter, a, b, value in sketch.parts:
        if letter == "V":
            value *= volts
        elif letter == "I":
            kind = int(rng.integers(6))
            value *= (1.0, -1.0, 0.0, -2.0, 0.5)[kind] if kind < 5 else 10.0 ** rng.uniform(-DECADES, DECADES)
        elif letter == "R" and ohms and rng.random() < 0.5:
            value *= 2.0 ** int(rng.integers(-10, 11)) if rng.random() < 0.5 else 10.0 ** rng.uniform(-DECADES, DECADES)
        parts.append((letter, a, b, value))
    return sketch._replace(parts=parts)


def values_of(sketch: Sketch) -> np.ndarray:
    """Values of all elements, Ω, V, A (m,); NaN for diodes."""
    return np.array([np.nan if letter == "D" else value for letter, _, _, value in sketch.parts])


def examine_starts(sketch: Sketch, rng: np.random.Generator, count: int) -> list[str]:
    """Solve ``count`` sets of values of one prepared circuit, each from an earlier point, and compare all outcomes."""
    ready, points, wrong, now = circuitsim.prepared(sketch.circuit()), [], [], sketch

    def again() -> circuitsim.OperatingPoint:
        start = points[int(rng.integers(len(points)))] if points and rng.random() < 0.9 else None
        points.append(ready.solve(values_of(now), start=start))
        return points[-1]

    for k in range(count):
        if k > 0:
            now = revalued(sketch, rng, ohms=k % 3 == 2)
        wrong += examine(now, again)
    return wrong


def examine_batch(sketch: Sketch, more: np.random.Generator | Sequence[Sketch], count: int = 0) -> list[str]:
    """Solve samples of one circuit as a batch, ``count`` random ones or those given, and compare currents, potentials
    and drops of the certified ones."""
    circuit, inputs = sketch.circuit(), [k for k, part in enumerate(sketch.parts) if part[0] in "VI"]
    random = isinstance(more, np.random.Generator)
    samples = [sketch, *((revalued(sketch, more, ohms=False) for _ in range(count - 1)) if random else more)]
    try:
        solver = circuitsim.batched(circuit, [circuit.names[k] for k in inputs])
        batch = solver.solve(np.array([values_of(sample)[inputs] for sample in samples]), threads=1)
    except CircuitError:
        return []
    wrong = []
    for s in np.flatnonzero(batch.certified).tolist():
        wrong += complaints(samples[s], as_point(samples[s], batch.voltages[s], batch.currents[s]), sample=True)
    return wrong


def as_point(sketch: Sketch, voltages: np.ndarray, currents: np.ndarray) -> circuitsim.OperatingPoint:
    """A sample as an operating point, its drops those of Ohm's law."""
    circuit = sketch.circuit()
    drops = np.array(
        [
            value * i if letter == "R" else voltages[a] - voltages[b]
            for (letter, a, b, value), i in zip(sketch.parts, currents.tolist())
        ]
    )
    every = np.ones(currents.size, dtype=bool)
    return circuitsim.OperatingPoint(circuit, voltages, currents, {}, every, None, {}, (), drops)
