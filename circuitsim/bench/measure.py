"""One measurement, in a process of its own.

``python -m circuitsim.bench.measure FAMILY UNKNOWNS SEED COMPETITOR BUDGET``

A process can be killed, its memory is its own, and a crash of a foreign solver is a failure of that solver alone. The
result is one line of JSON on standard output.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from circuitsim.analysis import solve
from circuitsim.bench.competitors import OURS, NoAnswer, create
from circuitsim.bench.families import FAMILIES, make
from circuitsim.bench.verify import Verified, distance, verified_error
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, VOLTAGE
from circuitsim.engine.small.kernels import load
from circuitsim.errors import CircuitError
from circuitsim.program import analyse

GOOD = 1e-9
"""Verified error, relative to local scales, at which answers count as equally good."""
SAMPLES, BATCH_NODES = 1000, 1500
"""Samples of a batch, and the most nodes of a circuit for which batches are timed."""
FEW, BATCH_SECONDS = 16, 2.0
"""Samples of a trial batch, and how long a batch may take, s."""


def measure(family: str, unknowns: int, seed: int, competitor: str, budget: float) -> dict[str, Any]:
    """Time a competitor on a circuit of a family, its tolerance tightened until the answer is verified or it fails.

    Parameters
    ----------
    family, unknowns, seed
        See `circuitsim.bench.families.make`.
    competitor : str
        See `circuitsim.bench.competitors.TABLE`.
    budget : float
        Seconds to spend on repeats of each kind of time.

    Returns
    -------
    dict
        ``error`` (verified), ``default_error``, ``tolerance``, the medians ``cold`` (build and solve), ``build``,
        ``solve``, ``prepared`` (new source values on what was built), s, ``repeats``, ``memory`` (peak of the process,
        MB), ``nodes``, ``diodes``; ours only: ``conducting`` (share), ``warm`` (new source values from the diodes that
        conducted before) and ``batch`` (one of `SAMPLES` at once), s; of approximate competitors: ``off`` (largest
        difference of a potential against the largest potential) and ``inside`` (a solve without the program's
        start-up), s. Or ``failure`` with its reason.
    """
    if competitor == OURS:
        load()  # compiled kernels count as installed
    circuit = make(family, unknowns, seed)
    arrays = circuit.arrays()
    judge = _judge(circuit, FAMILIES[family].convex_program)
    row: dict[str, Any] = {
        "family": family,
        "unknowns": unknowns,
        "seed": seed,
        "competitor": competitor,
        "nodes": arrays.n_nodes,
        "diodes": int((arrays.kind == DIODE).sum()) + len(circuit.devices),
    }
    adapter = create(competitor)
    try:
        for tolerance in adapter.tolerances:
            adapter.build(circuit, tolerance)
            voltages = adapter.solve()
            found = judge(voltages)
            row.setdefault("default_error", _finite(found.error))
            row.update(error=_finite(found.error), equation=found.equation, tolerance=tolerance)
            if found.error <= GOOD:
                break
        approximate = getattr(adapter, "approximate", False) and np.isfinite(voltages).all()
        if approximate:
            row["off"] = distance(voltages, solve(circuit).voltages)
            row["inside"] = adapter.inside(_inside_repeats(arrays.n_nodes))
        elif found.error > GOOD:
            return row | {"failure": f"verified error {found.error:.1e} ({found.equation}) at its tightest tolerance"}
        row.update(_times(adapter, circuit, row["tolerance"], budget))
    except (NoAnswer, CircuitError, ValueError, ArithmeticError, MemoryError) as error:
        return row | {"failure": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
    if competitor == OURS:
        point = solve(circuit)
        states = [*(point.currents[arrays.kind == DIODE] > 0.0), *(r.conducting for r in point.regions.values())]
        row["conducting"] = float(np.mean(states)) if states else 0.0
    return row | {"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def _judge(circuit: Circuit, convex_program: bool) -> Callable[[np.ndarray], Verified]:
    """The error of node voltages: by the certificate of a quadratic program, else by the distance from our certified
    answer, in shares of the largest potential."""
    if not convex_program:
        exact = solve(circuit)
        worst = exact.certificate.worst
        return lambda voltages: Verified(max(worst, distance(voltages, exact.voltages)), "distance")
    structure, value = analyse(circuit), circuit.arrays().value
    return lambda voltages: verified_error(structure, value, voltages, GOOD)


def _times(adapter: Any, circuit: Circuit, tolerance: float | None, budget: float) -> dict[str, Any]:
    """Medians of repeated builds, solves and solves for new source values, in seconds."""
    builds: list[float] = []
    solves: list[float] = []
    start = time.perf_counter()
    while len(builds) < 3 or (time.perf_counter() - start < budget and len(builds) < 200):
        builds.append(_seconds(lambda: adapter.build(circuit, tolerance)))
        solves.append(_seconds(adapter.solve))
        if builds[-1] + solves[-1] > budget:
            break
    values = new_values(circuit)
    prepared: list[float] = []
    warm: list[float] = []
    start = time.perf_counter()
    while len(prepared) < 3 or (time.perf_counter() - start < budget and len(prepared) < 200):
        value = next(values)
        prepared.append(_seconds(lambda value=value: (adapter.update(value), adapter.solve())))  # type: ignore[misc]
        if hasattr(adapter, "solve_warm"):
            value = next(values)
            warm.append(_seconds(lambda value=value: (adapter.update(value), adapter.solve_warm())))  # type: ignore[misc]
        if prepared[-1] > budget:
            break
    cold = [build + solve for build, solve in zip(builds, solves)]
    medians = {"cold": cold, "build": builds, "solve": solves, "prepared": prepared, "warm": warm}
    found = {name: statistics.median(times) for name, times in medians.items() if times}
    return found | {"repeats": len(cold)} | _batch_time(adapter, circuit)


def new_values(circuit: Circuit) -> Iterator[np.ndarray]:
    """Value columns with every source between 0.9 and 1.1 times its value."""
    rng = np.random.default_rng(0)
    arrays = circuit.arrays()
    sources = (arrays.kind == VOLTAGE) | (arrays.kind == CURRENT)
    while True:
        yield np.where(sources, arrays.value * rng.uniform(0.9, 1.1, arrays.value.size), arrays.value)


def _batch_time(adapter: Any, circuit: Circuit) -> dict[str, float]:
    """Seconds a sample of a batch takes, where the adapter has batches and the circuit is small."""
    arrays = circuit.arrays()
    if not hasattr(adapter, "batch") or arrays.n_nodes > BATCH_NODES:
        return {}
    sources = (arrays.kind == VOLTAGE) | (arrays.kind == CURRENT)
    values = new_values(circuit)
    samples = np.array([next(values)[sources] for _ in range(SAMPLES)])
    call = adapter.batch(samples[:FEW])
    call()
    each = _seconds(call) / FEW
    # Where a thousand would take longer than seconds, fewer tell as much.
    count = int(min(SAMPLES, max(FEW, BATCH_SECONDS / each)))
    call = adapter.batch(samples[:count])
    return {"batch": min(_seconds(call) for _ in range(3)) / count}


def _inside_repeats(n_nodes: int) -> int:
    """So many that they take longer than a process's start, and not minutes."""
    return max(3, 20_000 // n_nodes)


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


if __name__ == "__main__":
    words = sys.argv[1:]
    print(json.dumps(measure(words[0], int(words[1]), int(words[2]), words[3], float(words[4])), allow_nan=False))
