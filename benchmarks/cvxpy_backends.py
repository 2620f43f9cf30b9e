"""circuitsim beside every cvxpy backend and both forms of the problem, on the meshes of README's table.

    python benchmarks/cvxpy_backends.py [--sides 10,32,100] [--rounds 5] [--out benchmarks/results/cvxpy_backends.md]

The energy of the resistors is a sum of squares or written with the nodal matrix; source values are constants or
parameters. Each competitor is asked for its default tolerance, then for 1e-9, 1e-11, 1e-13, until its node voltages
differ from circuitsim's certified ones by at most `BOUND` of the largest; the time is of that tolerance alone. *Cold*
is from a circuit in memory to node voltages (ours: to a certified operating point, its voltages read), with the
modelling in cvxpy; *new values* is a solve for other source values on what was built. Medians of processor times over
rounds in which all take their turn; set OPENBLAS_NUM_THREADS=1. Kernels are compiled before (`circuitsim warm-up`).
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import circuits

import circuitsim
from circuitsim.bench.runner import (
    CVXPY_BACKENDS,
    CVXPY_KINDS,
    OURS,
    NoAnswer,
    create,
    machine,
    missing,
    new_values,
    times,
    tolerances,
    verified_error,
)
from circuitsim.errors import CircuitError

BOUND = 1e-6
"""Largest verified error of an answer that counts."""
DENSE, LARGEST_DENSE = ("HIGHS", "DAQP"), 1200
"""Backends that factor dense matrices, and the most elements of a circuit they are asked for."""
SLOW = 8.0
"""A solve that takes longer, s, is the only one of its kind."""


class Entry(NamedTuple):
    """One competitor on one circuit: its verified error (infinite without an answer), the tolerance asked for (None:
    the default), seconds from the circuit and for new source values, why there are none."""

    name: str
    error: float
    tolerance: float | None
    cold: list[float]
    fresh: list[float]
    failure: str = ""

    @property
    def good(self) -> bool:
        """Whether its answer counts."""
        return self.error <= BOUND and not self.failure


def names(parametrised: bool) -> list[str]:
    """The competitors through cvxpy that are installed."""
    kinds = [kind for kind, (_, parameters) in CVXPY_KINDS.items() if parametrised or not parameters]
    return [f"{kind}:{backend}" for backend in CVXPY_BACKENDS for kind in kinds if not missing(f"{kind}:{backend}")]


def accurate(name: str, circuit: circuitsim.Circuit) -> tuple[Any, Entry]:
    """A competitor's model with the first of its tolerances that gives a verified error within `BOUND`, or else its
    last."""
    solver: Any = None
    reason, error, tolerance = "", float("inf"), None
    if name.partition(":")[2] in DENSE and len(circuit) > LARGEST_DENSE:
        return solver, Entry(name, error, None, [], [], "dense")
    for tolerance in tolerances(name):
        began = time.perf_counter()
        try:
            solver = create(name)(circuit, tolerance)
            voltages = solver()
        except (NoAnswer, CircuitError, ValueError, ArithmeticError) as problem:
            reason = str(problem).splitlines()[0][:80]
            continue
        took, reason = time.perf_counter() - began, ""
        error = verified_error(circuit, voltages)
        if error <= BOUND or took > SLOW:
            break
    return solver, Entry(name, error, tolerance, [], [], reason)


def measured(circuit: circuitsim.Circuit, wanted: list[str], rounds: int, fresh: bool = True) -> list[Entry]:
    """Times of competitors, ours first, taken in turns; those without an answer have none."""
    load(circuit)
    found, values = [accurate(name, circuit) for name in (OURS, *wanted)], new_values(circuit)
    for _ in range(rounds):
        value = next(values)
        for solver, entry in found:
            if entry.failure or (entry.cold and entry.cold[-1] > SLOW):
                continue
            entry.cold.append(seconds(lambda e=entry: create(e.name)(circuit, e.tolerance)()))
            if fresh:
                entry.fresh.append(seconds(lambda s=solver, value=value: s(value)))
    return [entry for _, entry in found]


def load(circuit: circuitsim.Circuit) -> None:
    """Solve for a second of processor time: kernels are loaded by then."""
    began = time.process_time()
    while time.process_time() - began < 1.0:
        circuitsim.solve(circuit)


def best(entries: list[Entry], kind: str) -> Entry | None:
    """The fastest of those that count by a kind of time; where none does, the fastest that answered at all."""
    answered = [entry for entry in entries if entry.name != OURS and getattr(entry, kind)]
    counted = [entry for entry in answered if entry.good]
    return min(counted or answered, key=lambda entry: statistics.median(getattr(entry, kind)), default=None)


def seconds(action: Callable[[], object]) -> float:
    """Processor time, so that other work on the machine does not count; all are asked for one thread."""
    start = time.process_time()
    action()
    return time.process_time() - start


def written(value: float) -> str:
    """A time in ms or s with three digits."""
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"


def lines(circuit: circuitsim.Circuit, entries: list[Entry]) -> list[str]:
    """A table of one circuit."""
    ours, kinds = entries[0], ("cold", "fresh")
    found = [f"## {circuit.title}: {len(circuit.node_names) - 1:,} nodes besides ground", ""]
    found += ["| solver | tolerance asked | verified error | cold | of ours | new values | of ours |", "|---" * 7 + "|"]
    for entry in entries:
        if entry.failure:
            found.append(f"| {entry.name} | – | – | {entry.failure} | – | – | – |")
            continue
        cells = [entry.name, "default" if entry.tolerance is None else f"{entry.tolerance:.0e}", f"{entry.error:.0e}"]
        for kind in kinds:
            took, own = (statistics.median(getattr(one, kind)) for one in (entry, ours))
            mark = "**" if entry is best(entries, kind) else ""
            cells += [written(took), f"{mark}{times(took / own)}{mark}"]
        found.append("| " + " | ".join(cells) + " |")
    return [*found, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", default="10,32,100")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "cvxpy_backends.md")
    options = parser.parse_args()
    page = ["# circuitsim beside the backends of cvxpy", "", machine(), ""]
    page += [
        f"Bold: the fastest whose verified error is at most {BOUND:.0e} (where none is, the fastest at all). Medians "
        f"of {options.rounds} rounds in turns; slower than {SLOW:g} s: one round.",
        "",
    ]
    for side in map(int, options.sides.split(",")):
        circuit = circuitsim.loads(circuits.mesh(side))
        page += lines(circuit, measured(circuit, names(parametrised=True), options.rounds))
        print("\n".join(page[-30:]), flush=True)
    page.append(f"Load at the end {os.getloadavg()[0]:.1f}. Command: `python benchmarks/cvxpy_backends.py`.")
    options.out.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
