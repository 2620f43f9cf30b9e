"""circuitsim beside every cvxpy backend and both forms of the problem, on the meshes of README's table.

    python benchmarks/cvxpy_backends.py [--sides 10,32,100] [--rounds 5] [--out benchmarks/results/cvxpy_backends.md]

The energy of the resistors is a sum of squares or written with the nodal matrix (`cvxpy_problem.Form`), source values
are constants or parameters. Each competitor is asked for its default tolerance, then for 1e-9, 1e-11, 1e-13, until
circuitsim's certificate finds an error of at most `BOUND` of local scales; the time is of that tolerance alone.
*Cold* is from a circuit in memory to node voltages (ours: to a certified operating point, its voltages read), with the
modelling in cvxpy; *new values* is a solve for other source values on what was built (every parametrised problem was
compiled by its cold solve). Medians of processor times over
rounds in which all competitors take their turn; set OPENBLAS_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from meshes import mesh, seconds

import circuitsim
from circuitsim.bench.competitors import CVXPY_BACKENDS, CVXPY_KINDS, OURS, NoAnswer, create, missing
from circuitsim.bench.measure import new_values
from circuitsim.bench.report import machine, times
from circuitsim.bench.verify import verified_error
from circuitsim.circuit.elements import RESISTOR
from circuitsim.engine.small.kernels import load
from circuitsim.errors import CircuitError
from circuitsim.program import analyse

BOUND = 1e-6
"""Largest verified error of an answer that counts."""
DENSE, LARGEST_DENSE = ("HIGHS", "DAQP"), 1200
"""Backends that factor dense matrices, and the most variables they are asked for."""
SLOW = 8.0
"""A solve that takes longer, s, is the only one of its kind."""


class Entry(NamedTuple):
    """One competitor on one circuit.

    Attributes
    ----------
    name : str
        Of `circuitsim.bench.competitors.TABLE`.
    error : float
        Verified, relative to local scales; infinite without an answer.
    tolerance : float or None
        What was asked for; None is the default.
    cold, fresh : list of float
        Seconds from the circuit, and for new source values.
    failure : str
        Why there are no times.
    """

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
    kinds = [kind for kind in CVXPY_KINDS if parametrised or not kind.endswith("dpp")]
    return [f"{kind}:{backend}" for backend in CVXPY_BACKENDS for kind in kinds if not missing(f"{kind}:{backend}")]


def too_dense(name: str, circuit: circuitsim.Circuit) -> str:
    """Why a dense backend is not asked; empty if it is."""
    kind, _, backend = name.partition(":")
    arrays = circuit.arrays()
    variables = arrays.n_nodes - 1 + (0 if "nodal" in kind else int((arrays.kind == RESISTOR).sum()))
    return f"dense, {variables:,} variables" if backend in DENSE and variables > LARGEST_DENSE else ""


def accurate(name: str, circuit: circuitsim.Circuit) -> tuple[Any, Entry]:
    """An adapter with the first of its tolerances that gives a verified error within `BOUND`, or else its last."""
    adapter, structure = create(name), analyse(circuit)
    reason, error, tolerance = too_dense(name, circuit), float("inf"), None
    if reason:
        return adapter, Entry(name, error, None, [], [], reason)
    for tolerance in adapter.tolerances:
        began = time.perf_counter()
        try:
            adapter.build(circuit, tolerance)
            voltages = adapter.solve()
        except (NoAnswer, CircuitError, ValueError, ArithmeticError) as problem:
            reason = str(problem).splitlines()[0][:80]
            continue
        took, reason = time.perf_counter() - began, ""
        error = verified_error(structure, circuit.arrays().value, voltages, 1e-12).error
        if error <= BOUND or took > SLOW:
            break
    return adapter, Entry(name, error, tolerance, [], [], reason)


def measured(circuit: circuitsim.Circuit, wanted: list[str], rounds: int, fresh: bool = True) -> list[Entry]:
    """Times of competitors, ours first, taken in turns; those without an answer have none."""
    found = [accurate(name, circuit) for name in (OURS, *wanted)]
    values = new_values(circuit)
    for _ in range(rounds):
        value = next(values)
        for adapter, entry in found:
            if entry.failure or (entry.cold and entry.cold[-1] > SLOW):
                continue
            entry.cold.append(_seconds(lambda adapter=adapter, entry=entry: _whole(adapter, circuit, entry.tolerance)))
            if fresh:
                entry.fresh.append(_seconds(lambda adapter=adapter, value=value: _again(adapter, value)))
    return [entry for _, entry in found]


def best(entries: list[Entry], pick: Callable[[Entry], list[float]]) -> Entry | None:
    """The fastest of those that count; where none does, the fastest that answered at all."""
    answered = [entry for entry in entries if entry.name != OURS and pick(entry)]
    counted = [entry for entry in answered if entry.good]
    return min(counted or answered, key=lambda entry: statistics.median(pick(entry)), default=None)


def cold_times(entry: Entry) -> list[float]:
    """Seconds from a circuit in memory."""
    return entry.cold


def fresh_times(entry: Entry) -> list[float]:
    """Seconds for new source values."""
    return entry.fresh


def _whole(adapter: Any, circuit: circuitsim.Circuit, tolerance: float | None) -> np.ndarray:
    adapter.build(circuit, tolerance)
    return adapter.solve()


def _again(adapter: Any, value: np.ndarray) -> np.ndarray:
    adapter.update(value)
    return adapter.solve()


def _seconds(action: Callable[[], object]) -> float:
    """Processor time, so that other work on the machine does not count; all are asked for one thread."""
    start = time.process_time()
    action()
    return time.process_time() - start


def lines(circuit: circuitsim.Circuit, entries: list[Entry]) -> list[str]:
    """A table of one circuit."""
    ours = entries[0]
    first, second = (best(entries, pick) for pick in (cold_times, fresh_times))
    found = [f"## {circuit.title}: {circuit.arrays().n_nodes - 1:,} nodes besides ground", ""]
    found += ["| solver | tolerance asked | verified error | cold | of ours | new values | of ours |", "|---" * 7 + "|"]
    for entry in entries:
        if entry.failure:
            found.append(f"| {entry.name} | – | – | {entry.failure} | – | – | – |")
            continue
        cells = [entry.name, "default" if entry.tolerance is None else f"{entry.tolerance:.0e}", f"{entry.error:.0e}"]
        for pick, fastest in ((cold_times, first), (fresh_times, second)):
            took = statistics.median(pick(entry))
            mark = "**" if entry is fastest else ""
            cells += [seconds(took), f"{mark}{times(took / statistics.median(pick(ours)))}{mark}"]
        found.append("| " + " | ".join(cells) + " |")
    return [*found, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", default="10,32,100")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "cvxpy_backends.md")
    options = parser.parse_args()
    load()  # compiled once for each installation
    page = ["# circuitsim beside the backends of cvxpy", "", machine(), ""]
    page += [
        f"Bold: the fastest whose verified error is at most {BOUND:.0e} (where none is, the fastest at all). Medians "
        f"of {options.rounds} rounds in turns; slower than {SLOW:g} s: one round.",
        "",
    ]
    for side in (int(word) for word in options.sides.split(",")):
        circuit = mesh(side)
        page += lines(circuit, measured(circuit, names(parametrised=True), options.rounds))
        print("\n".join(page[-30:]), flush=True)
    page.append(f"Load at the end {os.getloadavg()[0]:.1f}. Command: `python benchmarks/cvxpy_backends.py`.")
    options.out.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
