"""All measurements of a suite, one process each, appended to ``results.jsonl`` as they finish: a run can be resumed.

``python -m circuitsim.bench.runner '["FAMILY", UNKNOWNS, SEED, "COMPETITOR"]' BUDGET`` makes one measurement and prints
a line of JSON. Separate processes isolate memory, time limits and crashes of other solvers.

The error of another solver's answer is its distance from our certified node voltages, which are unique.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import timeit
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim import formats
from circuitsim._bundled import tables
from circuitsim._files import naming
from circuitsim._version import __version__
from circuitsim.analysis.solve import solve
from circuitsim.bench.competitors import NGSPICE, OURS, NoAnswer, create, missing, tolerances
from circuitsim.bench.families import FAMILIES, make
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, VOLTAGE
from circuitsim.errors import CircuitError, UsageError
from circuitsim.kernels import compile_at_once
from circuitsim.plotting.charts import Line, plot_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]
"""A measurement: case, competitor, times, errors."""

PACKAGES = ("numpy", "scipy", "numba", "cvxpy", "clarabel", "osqp", "piqp", "scs", "daqp", "highspy")

NOTES = """\
Times are medians in ms, one thread: *cold* is build and solve, *new values* a solve for new source values on what was
built, *batch* one of 1,000 samples solved together. Others have their time over ours in brackets. Best: among those
whose verified error is at most 1e-9. ngspice has nearly ideal diodes, a neighbouring problem: its solve is one `.op`
inside a running process, beside our new values; *off* is its largest difference of a potential against the largest
potential.

What is unfair. To the others: competitors are asked for the tightest tolerance they need, one after the other, but only
the successful one is timed; ours is compiled before the clock starts (a minute or two, once for each installation); the
problems are our trade: general solvers know nothing of networks; and next to diodes without current and voltage an
interior point has errors far above its residuals. To us: the error of a foreign answer is a fraction of the largest
voltage, ours is the worst residual of our certificate on local scales; and nothing is charged for the lack of a
certificate, which our times include. Every measurement is a process of its own with one thread."""


def markdown(rows: list[Row], settings: str) -> str:
    """The report of a run as Markdown."""

    def case(row: Row) -> tuple[Any, ...]:
        return row["family"], row["unknowns"], row["seed"]

    ordered = sorted(rows, key=lambda row: (*case(row), row["competitor"] != OURS))
    lines = ["# circuitsim beside other solvers", "", machine(), settings, ""]
    lines += formats.markdown([_compared(*group) for _, group in itertools.groupby(ordered, case)])
    failed = [row for row in rows if "failure" in row]
    lines += ["", NOTES, "", "Failures, never turned into a ratio:" if failed else "No failures.", ""]
    lines += [f"- {row['family']} {row['unknowns']:,}, {row['competitor']}: {row['failure']}" for row in failed]
    return "\n".join(lines) + "\n"


HEADS = ("diodes (conducting)", "ours: cold", "new values", "batch", "error")
OTHERS = ("best of cvxpy: cold", "best: new values", "ngspice", "off")


def _compared(ours: Row, *more: Row) -> dict[str, str]:
    """A row of the report: ours, the best of cvxpy for each kind of time, ngspice."""
    others = [row for row in more if "failure" not in row]
    found = {"family": ours["family"], "unknowns": f"{ours['unknowns']:,}", **dict.fromkeys(HEADS + OTHERS, "–")}
    if ours["competitor"] != OURS or "failure" in ours:
        return found | {HEADS[0]: f"ours failed: {ours.get('failure', 'not run')}"}
    found |= {HEADS[0]: f"{ours['diodes']:,} ({ours['conducting']:.0%})", "error": f"{ours['error']:.0e}"}
    kinds = dict(zip(("cold", "prepared", "batch"), HEADS[1:]))
    found |= {head: f"{1e3 * ours[kind]:.3g}" for kind, head in kinds.items() if kind in ours}
    for kind, head in zip(("cold", "prepared"), OTHERS):
        best = min((row for row in others if row["competitor"] != NGSPICE), key=lambda row: row[kind], default=None)
        found[head] = "none" if best is None else f"{_beside(best[kind], ours[kind])} {best['competitor']}"
    for spice in (row for row in others if row["competitor"] == NGSPICE):
        found |= {"ngspice": _beside(spice["inside"], ours["prepared"]), "off": f"{spice['off']:.1e}"}
    return found


def machine() -> str:
    """Machine, versions and load in one line."""
    found = [f"circuitsim {__version__}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    start = f"{platform.machine()}, {os.cpu_count()} processors, load {load}; Python {platform.python_version()}"
    return f"{start}, {', '.join(found)}."


def times(ratio: float) -> str:
    """A ratio with two or three digits."""
    return f"{ratio:.0f}×" if ratio >= 99.5 else f"{ratio:#.2g}×".replace(".×", "×")


def _beside(seconds: float, ours: float) -> str:
    return f"{1e3 * seconds:.3g} ({times(seconds / ours)})"


def draw(rows: list[Row]) -> Figure:
    """The cold times of every competitor over the number of nodes, one panel per family."""
    good = [row for row in rows if "failure" not in row]
    good.sort(key=lambda row: (row["competitor"] != OURS, row["competitor"], row["family"], row["nodes"]))
    lines, styles = [], {OURS: {"marker": ".", "color": "black", "linewidth": 2.0}}
    for (name, family), group in itertools.groupby(good, lambda row: (row["competitor"], row["family"])):
        style = styles.setdefault(name, {"marker": ".", "color": f"C{len(styles) - 1}"})
        nodes, times = zip(*((row["nodes"], row["cold"]) for row in group))
        lines.append(Line(family, name, nodes, times, style))
    return plot_lines(lines, {"xscale": "log", "yscale": "log", "xlabel": "nodes", "ylabel": "cold, s"})


def verified_error(circuit: Circuit, voltages: np.ndarray) -> float:
    """Largest difference of node voltages from those of our certified answer, as a fraction of the largest voltage.

    It is not less than the worst relative residual of our certificate, and infinite for an answer that is not finite.

    Parameters
    ----------
    circuit : Circuit
        With unique node voltages.
    voltages : (n_nodes,) float array
        The answer, V; any constant may be added.
    """
    point = solve(circuit)
    exact = point.voltages
    if voltages.shape != exact.shape or not np.isfinite(voltages).all():
        return float("inf")
    gap = np.abs((voltages - voltages[0]) - exact).max() / (np.abs(exact).max() or 1.0)
    return max(float(gap), point.certificate.worst)


RESULTS = "results.jsonl"

GOOD = 1e-9
"""Verified error at which answers count as equally accurate."""

SAMPLES, BATCH_NODES, BATCH_SECONDS = 1000, 1500, 2.0
"""Samples of a batch, maximum number of nodes for timing batches, and maximum time of one, s."""

SUITES: dict[str, dict[str, list[int]]] = tables("bench/bench.toml")["suites"]
"""Suite → family → numbers of unknowns."""


class Case(NamedTuple):
    """One measurement to make."""

    family: str
    unknowns: int
    seed: int
    competitor: str


def cases(suite: str, competitors: list[str], seed: int) -> Iterator[Case]:
    """The measurements of a suite, smallest circuits first; ours before the others'.

    Raises
    ------
    UsageError
        No such suite.
    """
    if suite not in SUITES:
        raise UsageError(f"no suite is called {suite!r}; there are {', '.join(SUITES)}")
    for size, family in sorted((size, family) for family, sizes in SUITES[suite].items() for size in sizes):
        for competitor in competitors:
            if competitor in (OURS, NGSPICE) or FAMILIES[family].convex_program:
                yield Case(family, size, seed, competitor)


# ---------------------------------------------------------------------- one measurement
def measure(case: Case, budget: float) -> Row:
    """Time a competitor on a circuit of a family, tightening its tolerance until the answer is verified or it fails.

    Parameters
    ----------
    case : Case
    budget : float
        Seconds to spend on repeats of each kind of time.

    Returns
    -------
    dict
        ``error`` (verified), ``tolerance``, the medians ``cold`` (build and solve) and ``prepared`` (new source values
        on what was built), s, ``memory`` (peak of the process, MB), ``nodes``, ``diodes``; ours only: ``conducting``
        (share) and ``batch`` (one of `SAMPLES` at once), s; of ngspice: ``off`` (largest difference of a potential
        against the largest potential) and ``inside`` (a solve without the program's start-up), s. Or ``failure``.
    """
    circuit = make(case.family, case.unknowns, case.seed)
    arrays, ours = circuit.arrays(), case.competitor == OURS
    diodes = arrays.kind == DIODE
    row = {**case._asdict(), "nodes": arrays.n_nodes, "diodes": int(diodes.sum()) + len(circuit.devices)}
    try:
        if ours:
            compile_at_once()
        build = create(case.competitor)
        for tolerance in tolerances(case.competitor):
            solver = build(circuit, tolerance)
            error = verified_error(circuit, solver(None))
            row |= {"error": error if math.isfinite(error) else None, "tolerance": tolerance}
            if error <= GOOD:
                break
        if case.competitor == NGSPICE and math.isfinite(error):
            # Enough to exceed the process start-up time, but not minutes.
            row |= {"off": error, "inside": solver.inside(max(3, 20_000 // arrays.n_nodes))}
        elif error > GOOD:
            return row | {"failure": f"verified error {error:.1e} at its tightest tolerance"}
        row |= _times(partial(build, circuit, row["tolerance"]), circuit, budget)
    except (NoAnswer, CircuitError, ValueError, ArithmeticError, MemoryError) as error:
        return row | {"failure": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
    if ours:
        point = solve(circuit)
        regions = map(point.region, circuit.devices)
        states = [*(point.currents[diodes] > 0.0), *(region.conducting for region in regions if region)]
        row["conducting"] = float(np.mean(states)) if states else 0.0
    return row | {"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def _times(build: Callable[[], Any], circuit: Circuit, budget: float) -> dict[str, float]:
    """Medians of repeated builds with a solve, and of solves for new source values; ours also of a batch; s."""
    values, solver = new_values(circuit), build()
    cold, new = _median(lambda: build()(None), budget), _median(lambda: solver(next(values)), budget)
    found, arrays = {"cold": cold, "prepared": new}, circuit.arrays()
    if hasattr(solver, "batch") and arrays.n_nodes <= BATCH_NODES:
        sources = (arrays.kind == VOLTAGE) | (arrays.kind == CURRENT)
        samples = np.array([next(values)[sources] for _ in range(SAMPLES)])
        call = solver.batch(samples[:16])
        call()
        # If a thousand would take longer than seconds, fewer are as informative.
        count = int(min(SAMPLES, max(16, BATCH_SECONDS * 16 / timeit.timeit(call, number=1))))
        found["batch"] = _median(solver.batch(samples[:count]), 0.0) / count
    return found


def new_values(circuit: Circuit) -> Iterator[np.ndarray]:
    """Value columns with every source between 0.9 and 1.1 times its value."""
    rng, arrays = np.random.default_rng(0), circuit.arrays()
    sources = (arrays.kind == VOLTAGE) | (arrays.kind == CURRENT)
    while True:
        yield np.where(sources, arrays.value * rng.uniform(0.9, 1.1, arrays.value.size), arrays.value)


def _median(action: Callable[[], object], budget: float) -> float:
    """Median time of at least three calls, and as many as fit a budget in seconds; of one call if it exceeds the
    budget."""
    timer = timeit.Timer(action)
    first = timer.timeit(1)
    if first > max(budget, 1.0):
        return first
    return statistics.median([first, *timer.repeat(int(min(max(2.0, budget / first), 199.0)), 1)])


# ---------------------------------------------------------------------- all of them
def finished(folder: Path) -> dict[Case, Row]:
    """The rows of an earlier run, without truncated or invalid lines, which are measured again."""
    path, rows = folder / RESULTS, dict[Case, Row]()
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []:
        with contextlib.suppress(ValueError, RecursionError, TypeError, KeyError):
            row = json.loads(line)
            if "failure" in row or {"nodes", "cold"} <= set(row):
                rows[Case(*(row[name] for name in Case._fields))] = row
    return rows


def run(wanted: list[Case], folder: Path, limit: float, budget: float, tell: Callable[[str], None]) -> list[Row]:
    """Make all measurements missing in ``folder``; returns all rows.

    Parameters
    ----------
    wanted : list of Case
    folder : Path
        Folder of ``results.jsonl``.
    limit : float
        Seconds after which a measurement is killed and counts as failed; those of circuitsim, which may compile
        kernels, have three minutes more.
    budget : float
        Seconds for the repeats of each kind of time.
    tell : callable
        Called with a line about each measurement.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows, beaten = finished(folder), set[tuple[str, str]]()
    for number, case in enumerate(wanted, 1):
        if case not in rows:
            if (case.family, case.competitor) in beaten and case.competitor != OURS:
                row = case._asdict() | {"failure": "not tried: out of time at a smaller size"}
            else:
                row = _measured(case, limit + 180.0 * (case.competitor == OURS), budget)
            with naming(folder / RESULTS), (folder / RESULTS).open("a", encoding="utf-8") as file:
                # A leading newline ends a line truncated by an earlier kill.
                file.write("\n" + json.dumps(row, allow_nan=False) + "\n")
                file.flush()
                os.fsync(file.fileno())
            rows[case] = row
        row = rows[case]
        if "time" in str(row.get("failure", "")):
            beaten.add((case.family, case.competitor))
        said = f"failed, {row['failure']}" if "failure" in row else f"{1e3 * row['cold']:.3g} ms cold"
        tell(f"[{number}/{len(wanted)}] {case.family} {case.unknowns}, {case.competitor}: {said}")
    return [rows[case] for case in wanted]


def _measured(case: Case, limit: float, budget: float) -> Row:
    absent = missing(case.competitor)
    if absent:
        return case._asdict() | {"failure": absent}
    command = [sys.executable, "-m", "circuitsim.bench.runner", json.dumps(case), str(budget)]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, check=False, env=os.environ | threads
        )
        return json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return case._asdict() | {"failure": f"out of time ({limit:g} s)"}
    except (IndexError, json.JSONDecodeError):
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return case._asdict() | {"failure": f"process ended with {done.returncode}: {last[:200]}"}


if __name__ == "__main__":
    print(json.dumps(measure(Case(*json.loads(sys.argv[1])), float(sys.argv[2])), allow_nan=False))
