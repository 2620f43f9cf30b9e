"""Times of one version of circuitsim, whichever PYTHONPATH names: started by `versions.py`, in a process of its own.

    python benchmarks/version_worker.py TREE BUDGET CASE CASE…

A case is FAMILY:UNKNOWNS, or ``layered:NAME``. Only public names are used. One line of JSON a case on standard output:
medians of processor time in s (which a loaded machine disturbs least), or a failure with its text.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from version_circuits import Cards, make

TOLERANCE = 1e-9
"""Largest relative violation of a law that counts as solved: the certificate's own name for this has changed."""
LAYERED = {"xs": (112, 4), "2h": (512, 512, 4)}
"""Name → units of the hidden layers, and how many hundreds of samples."""
BATCH, MOST_BATCHED = 100, 1_500
"""Samples of a batch, and the most unknowns of a circuit for which batches are timed."""
FEWEST, MOST, SHORT = 5, 200, 3e-4
"""Repeats of one time, and the seconds below which several calls are timed at once."""


def median_seconds(action: Callable[[], object], budget: float) -> float:
    """Median processor time of repeated calls within a budget of seconds, after one that is not counted."""
    began = time.process_time()
    action()
    # The clock takes a microsecond: short calls are timed several at once.
    count = 1 + int(SHORT / max(time.process_time() - began, 1e-6))
    found: list[float] = []
    while len(found) < FEWEST or (count * sum(found) < budget and len(found) < MOST):
        began = time.process_time()
        for _ in range(count):
            action()
        found.append((time.process_time() - began) / count)
    return statistics.median(found)


def new_values(cards: Cards) -> Iterator[np.ndarray]:
    """Sources between 0.9 and 1.1 times their values, without end."""
    rng = np.random.default_rng(1)
    while True:
        yield np.where(cards.source, cards.value * rng.uniform(0.9, 1.1, cards.value.size), cards.value)


def read(point: Any) -> Any:
    """What a user reads of a point, which may be made only then."""
    if not point.certificate.worst <= TOLERANCE:
        raise ArithmeticError("no certificate")
    point.voltages, point.currents  # noqa: B018
    return point


def circuit_times(family: str, unknowns: int, budget: float) -> dict[str, float]:
    """Seconds of a cold solve, of new values, of those from the point before, and of one sample of a batch."""
    import circuitsim

    cards = make(family, unknowns)
    circuit = circuitsim.loads(cards.text)
    if list(circuit.names) != cards.names:
        raise ValueError("the order of elements differs from that of the cards")
    found = {"cold": median_seconds(lambda: read(circuitsim.prepared(circuit).solve()), budget)}
    solver, values = circuitsim.prepared(circuit), new_values(cards)
    last = [read(solver.solve())]

    def again() -> None:
        last[0] = read(solver.solve(next(values), start=last[0]))

    found["values"] = median_seconds(lambda: read(solver.solve(next(values))), budget)
    found["start"] = median_seconds(again, budget)
    if unknowns <= MOST_BATCHED:
        names = [name for name, source in zip(cards.names, cards.source.tolist()) if source]
        samples = np.array([next(values)[cards.source] for _ in range(BATCH)])
        batch = circuitsim.batched(circuit, names)
        found["batch"] = median_seconds(lambda: batch.solve(samples, threads=1), budget) / BATCH
        if not (batch.solve(samples, threads=1).relative <= TOLERANCE).all():
            raise ArithmeticError("samples of a batch without a certificate")
    return found


def layered_times(name: str, budget: float) -> dict[str, float]:
    """Seconds of one training step of four samples of a layered network, 784 inputs, 10 classes."""
    from circuitsim.layered import DRNClassifier

    *hidden, hundreds = LAYERED[name]
    rng = np.random.default_rng(2)
    X = (rng.random((100 * hundreds, 784)) * (rng.random((100 * hundreds, 784)) < 0.2)).astype(np.float32)
    y = rng.integers(0, 10, len(X))
    y[:10] = np.arange(10)

    def fit(epochs: int) -> float:
        model = DRNClassifier(hidden=tuple(hidden), random_state=0)
        # Versions of before 2026-11-23 say epochs.
        model.set_params(**{"max_iter" if "max_iter" in model.get_params() else "epochs": epochs})
        began = time.process_time()
        model.fit(X, y)
        return time.process_time() - began

    fit(1)
    # Two lengths of training differ by two epochs and nothing else.
    steps = 2 * len(X) / 4
    return {"training step": statistics.median((fit(3) - fit(1)) / steps for _ in range(FEWEST))}


def warm_up() -> None:
    """Enough work for a process to use compiled kernels from here on, whatever its first case."""
    import circuitsim

    circuitsim.prepared(circuitsim.loads(make("grid", 1000).text)).solve()


def main() -> None:
    """Time the cases."""
    tree, budget, *cases = sys.argv[1:]
    import circuitsim

    home = Path(circuitsim.__file__).resolve()
    if Path(tree).resolve() not in home.parents:
        raise SystemExit(f"circuitsim was imported from {home}, not from {tree}")
    warm_up()
    for case in cases:
        group, _, what = case.partition(":")
        row: dict[str, Any] = {"case": case}
        try:
            layered = group == "layered"
            row["times"] = (
                layered_times(what, float(budget)) if layered else (circuit_times(group, int(what), float(budget)))
            )
        except Exception as error:  # whatever one version raises is a result of that version
            row["failure"] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
