"""All measurements of a suite, one process each, appended to ``results.jsonl`` as they finish: a run can be resumed.

``python -m circuitsim.bench.runner FAMILY UNKNOWNS SEED COMPETITOR BUDGET`` makes one measurement and prints a line of
JSON. Separate processes isolate memory, time limits and crashes of other solvers.

The error of another solver's answer is that of our certificate, with branch currents from its node voltages and
Kirchhoff's laws.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim._files import naming
from circuitsim._version import __version__
from circuitsim.analysis.solve import solve
from circuitsim.bench.competitors import NGSPICE, OURS, NoAnswer, create, missing
from circuitsim.bench.families import FAMILIES, make
from circuitsim.certificate import EQUATIONS, worst_violations
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.errors import CircuitError, UsageError
from circuitsim.formats import columns
from circuitsim.kernels import compile_at_once, kernel
from circuitsim.plotting.curves import Line, plot_lines
from circuitsim.program import Structure, analyse
from circuitsim.program.components import component_labels, forest_flow, on_cycles, spanning_forest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PACKAGES = ("numpy", "scipy", "numba", "cvxpy", "clarabel", "osqp", "piqp", "scs", "daqp", "highspy")

NOTES = """\
Times are medians in ms, one thread: *cold* is build and solve, *new values* a solve for new source values on what was
built, *batch* one of 1,000 samples solved together. Others have their time over ours in brackets. Best: among those
whose verified error is at most 1e-9. ngspice has nearly ideal diodes, a neighbouring problem: its solve is one `.op`
inside a running process, beside our new values; *off* is its largest difference of a potential against the largest
potential.

What is unfair. To the others: competitors are asked for the tightest tolerance they need, one after the other, but only
the successful one is timed; ours is compiled before the clock starts (a minute or two, once for each installation), and
the problems are our trade: general solvers know nothing of networks. To us: a foreign answer is judged by whichever
tolerance for "equal ends" of a diode makes it look best, ends so close are made equal, and nothing is charged for its
lack of a certificate, which our times include. Every measurement is a process of its own with one thread."""


def markdown(rows: list[dict[str, Any]], settings: str) -> str:
    """The report of a run as Markdown."""
    heads = "family", "unknowns", "diodes (conducting)", "ours: cold", "new values", "batch", "error"
    others = "best of cvxpy: cold", "best: new values", "ngspice", "off"
    lines = ["# circuitsim beside other solvers", "", machine(), settings, ""]
    lines += columns.markdown([dict(zip((*heads, *others), _cells(case))) for case in _cases(rows)])
    failed = [row for row in rows if "failure" in row]
    lines += ["", NOTES, "", "Failures, never turned into a ratio:" if failed else "No failures.", ""]
    lines += [f"- {row['family']} {row['unknowns']:,}, {row['competitor']}: {row['failure']}" for row in failed]
    return "\n".join(lines) + "\n"


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


def _cases(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows by case, sorted by family and size; ours comes first."""

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["family"], row["unknowns"], row["seed"]

    ordered = sorted(rows, key=lambda row: (*key(row), row["competitor"] != OURS))
    return [list(group) for _, group in itertools.groupby(ordered, key)]


def _cells(case: list[dict[str, Any]]) -> list[str]:
    """One table row: ours, the best of cvxpy for each kind of time, ngspice."""
    ours, others = case[0], [row for row in case[1:] if "failure" not in row]
    cells = [ours["family"], f"{ours['unknowns']:,}"]
    if ours["competitor"] != OURS or "failure" in ours:
        return [*cells, f"ours failed: {ours.get('failure', 'not run')}", *["–"] * 8]
    cells.append(f"{ours['diodes']:,} ({ours['conducting']:.0%})")
    cells += [f"{1e3 * ours[kind]:.3g}" if kind in ours else "–" for kind in ("cold", "prepared", "batch")]
    cells.append(f"{ours['error']:.0e}")
    for kind in ("cold", "prepared"):
        best = min((row for row in others if row["competitor"] != NGSPICE), key=lambda row: row[kind], default=None)
        cells.append("none" if best is None else f"{_beside(best[kind], ours[kind])} {best['competitor']}")
    spice = next((row for row in others if row["competitor"] == NGSPICE), None)
    return cells + (
        ["–", "–"] if spice is None else [_beside(spice["inside"], ours["prepared"]), f"{spice['off']:.1e}"]
    )


def times(ratio: float) -> str:
    """A ratio with two or three digits."""
    return f"{ratio:.0f}×" if ratio >= 99.5 else f"{ratio:#.2g}×".replace(".×", "×")


def _beside(seconds: float, ours: float) -> str:
    return f"{1e3 * seconds:.3g} ({times(seconds / ours)})"


def draw(rows: list[dict[str, Any]]) -> Figure:
    """The cold times of every competitor over the number of nodes, one panel per family."""
    good = sorted((row for row in rows if "failure" not in row), key=lambda row: (row["family"], row["nodes"]))
    lines = []
    for k, name in enumerate([OURS, *sorted({row["competitor"] for row in good} - {OURS})]):
        style = {"marker": ".", "color": f"C{k - 1}"} if k else {"marker": ".", "color": "black", "linewidth": 2.0}
        own = [row for row in good if row["competitor"] == name]
        for family, group in itertools.groupby(own, lambda row: row["family"]):
            nodes, times = zip(*((row["nodes"], row["cold"]) for row in group))
            lines.append(Line(family, name, nodes, times, style))
    return plot_lines(lines, {"xscale": "log", "yscale": "log", "xlabel": "nodes", "ylabel": "cold, s"})


SLACKS = (1e-12, 1e-10, 1e-9, 1e-8, 1e-6, 1e-4, 1e-2)
"""Tolerances for the voltage of a conducting diode, of which the most favourable counts."""

MOVES = (1e-12, 1e-10, 1e-9)
"""Largest voltages, as fractions of the largest potential, that are set to zero: at most the tolerance of the
answer."""

EQUAL = 1e-12
"""Equalised ends differ by less than this fraction of their potentials."""

LEAK = 1e15
"""Resistance, Ω, that carries the current imbalance of an approximate answer in loops of 1 Ω wires."""


class Verified(NamedTuple):
    """Worst relative violation of the circuit's equations, and its equation."""

    error: float
    equation: str


def verified_error(circuit: Circuit, voltages: np.ndarray, good: float = 0.0) -> Verified:
    """The certificate's worst relative violation at given node voltages.

    Another solver's answer does not say which diodes conduct, and the ends of conducting ones are rarely exactly equal,
    as local scales require. The most favourable interpretation therefore counts: ends of diodes closer than some
    fraction of their potentials count as equal (`SLACKS`), or are made equal if they are closer than a small fraction
    of the largest potential (`MOVES`).

    Parameters
    ----------
    circuit : Circuit
    voltages : (n_nodes,) float array
        The answer, V; any constant may be added.
    good : float
        Error at which the search for a better slack stops.
    """
    structure, value = analyse(circuit), circuit.arrays().value
    best = Verified(float("inf"), "not finite")
    if voltages.shape != (structure.arrays.n_nodes,) or not np.isfinite(voltages).all():
        return best
    voltages = voltages - voltages[0]
    views = itertools.chain(
        ((voltages, slack) for slack in SLACKS),
        ((_with_equal_ends(structure, voltages, move), EQUAL) for move in MOVES),
    )
    for answer, tight in views:
        best = min(best, _judged(structure, value, answer, tight))
        if best.error <= good:
            break
    return best


def _judged(structure: Structure, value: np.ndarray, voltages: np.ndarray, tight: float) -> Verified:
    """The certificate of an answer if diodes with ends as close as ``tight`` may conduct."""
    kind, first, second, resistance_pattern, n_nodes = structure.arrays
    worst, relative = np.empty(len(EQUATIONS)), np.empty(len(EQUATIONS))
    with np.errstate(all="ignore"):
        current = _currents(structure, value, voltages, tight)
        kernel(worst_violations, n_nodes)(
            kind,
            first,
            second,
            resistance_pattern,
            value,
            voltages,
            np.zeros(n_nodes),
            np.zeros(n_nodes, dtype=bool),
            current,
            np.empty((2, n_nodes)),
            worst,
            relative,
        )
    k = int(np.argmax(relative))
    return Verified(float(relative[k]), EQUATIONS[k])


def _currents(structure: Structure, value: np.ndarray, voltages: np.ndarray, tight: float) -> np.ndarray:
    """Branch currents (m,), A, at node voltages: Ohm's law in resistors, Kirchhoff's current law elsewhere.

    Sources, shorts and diodes with ends as close as ``tight`` carry the currents missing at the nodes, on a
    spanning forest; the others carry the currents of 1 Ω wires.
    """
    kind, first, second, _, n_nodes = structure.arrays
    current = np.where(kind == CURRENT, value, 0.0)
    r, d = structure.resistors, structure.diodes
    current[r] = (voltages[first[r]] - voltages[second[r]]) / value[r]
    at_anode, at_cathode = voltages[first[d]], voltages[second[d]]
    closed = at_anode - at_cathode >= -tight * np.maximum(np.abs(at_anode), np.abs(at_cathode))
    edges = np.concatenate([structure.voltage_edges, d[closed]])
    edges = edges[first[edges] != second[edges]]
    tree = spanning_forest(n_nodes - 1, first, second, edges)
    if tree.size < edges.size:
        shared = _shared(first[edges], second[edges], kind[edges] == DIODE, _missing(structure, current))
        tree = spanning_forest(n_nodes - 1, first, second, edges[np.argsort(-np.abs(shared), kind="stable")])
        current[edges] = shared
        current[tree] = 0.0
    size = np.bincount(first, np.abs(current), n_nodes) + np.bincount(second, np.abs(current), n_nodes)
    missing = _missing(structure, current)
    current[tree] = forest_flow(first[tree], second[tree], missing, size)
    return current


def _missing(structure: Structure, current: np.ndarray) -> np.ndarray:
    """Net current into each node (n_nodes,), A."""
    _, first, second, _, n_nodes = structure.arrays
    return np.bincount(second, current, n_nodes) - np.bincount(first, current, n_nodes)


def _shared(first: np.ndarray, second: np.ndarray, one_way: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Currents (e,), A, of 1 Ω edges that drain ``missing`` (n_nodes,), A; one-way edges have a diode each.

    Zero where they cannot be found.
    """
    nodes, ends = np.unique(np.concatenate([first, second]), return_inverse=True)
    m, n, d = first.size, nodes.size, np.flatnonzero(one_way)
    # Node 0 is a separate ground; resistor and diode of a one-way edge meet at an extra node.
    first, second, middle = ends[:m] + 1, ends[m:] + 1, np.arange(d.size) + n + 1
    every, ground = np.arange(n) + 1, np.zeros(n, dtype=np.int64)
    behind = second.copy()
    behind[d] = middle
    kind = np.repeat(np.array([RESISTOR, DIODE, RESISTOR, CURRENT], dtype=np.int8), [m, d.size, n, n])
    value = np.concatenate([np.ones(m), np.full(d.size, np.nan), np.full(n, LEAK), missing[nodes]])
    a, c = np.concatenate([first, middle, every, ground]), np.concatenate([behind, second[d], ground, every])
    try:
        return solve(Circuit.from_arrays(kind, a, c, value, n + d.size + 1), tolerance=1e-6).currents[:m]
    except CircuitError:
        return np.zeros(m)


def _with_equal_ends(structure: Structure, voltages: np.ndarray, move: float) -> np.ndarray:
    """The answer with diodes and idle resistors shorted whose ends differ by at most ``move`` of the largest potential.

    Idle resistors are on no loop of conducting elements and carry no current. Joined nodes take the potential of one
    that sources hold against ground, or else their mean.
    """
    first, second, n_nodes = structure.arrays.first, structure.arrays.second, structure.arrays.n_nodes
    close = np.abs(voltages[first] - voltages[second]) <= move * np.abs(voltages).max(initial=0.0)
    d, r = structure.diodes[close[structure.diodes]], structure.resistors
    edges = np.concatenate([r, structure.voltage_edges, structure.currents, d])
    idle = ~on_cycles(n_nodes, first[edges], second[edges])[: r.size]
    edges = np.concatenate([d, r[close[r] & idle]])
    group = component_labels(n_nodes, first[edges], second[edges])
    common = np.bincount(group, voltages, n_nodes) / np.maximum(np.bincount(group, minlength=n_nodes), 1)
    held = np.flatnonzero(structure.coordinate >= structure.n)[::-1]
    common[group[held]] = voltages[held]
    return common[group]


def distance(voltages: np.ndarray, exact: np.ndarray) -> float:
    """Largest |Δv| relative to the largest |v| of the circuit, a less strict measure."""
    scale = float(np.abs(exact).max(initial=0.0))
    gap = np.abs((voltages - voltages[0]) - (exact - exact[0])).max(initial=0.0)
    return float(gap / scale) if scale else float(gap)


RESULTS = "results.jsonl"

GOOD = 1e-9
"""Verified error, relative to local scales, at which answers count as equally accurate."""

SAMPLES, BATCH_NODES, BATCH_SECONDS = 1000, 1500, 2.0
"""Samples of a batch, maximum number of nodes for timing batches, and maximum time of one, s."""

_SMALL: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(FAMILIES, (10, 100, 1000)),
    **dict.fromkeys(("crossbar", "crossbar-1d1r"), (128, 2048)),
    **dict.fromkeys(("shockley-grid", "op-amp-stages"), (100, 1000)),
}

_LARGER = {
    "grid": (10_000, 100_000, 1_000_000),
    "grid-scaled": (10_000, 100_000),
    "erdos-renyi": (5000,),
    "scale-free": (10_000,),
    "ladder": (10_000, 100_000),
    "bridges": (10_000,),
    "selectors": (10_000,),
    "drn": (5000,),
    "crossbar": (32_768,),
    "crossbar-1d1r": (32_768,),
    "shockley-grid": (17_000,),
    "op-amp-stages": (3000,),
}

SUITES = {"small": _SMALL, "full": {family: sizes + _LARGER[family] for family, sizes in _SMALL.items()}}
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
def measure(case: Case, budget: float) -> dict[str, Any]:
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
    arrays, judge = circuit.arrays(), _judge(circuit, FAMILIES[case.family].convex_program)
    row: dict[str, Any] = {
        **case._asdict(),
        "nodes": arrays.n_nodes,
        "diodes": int((arrays.kind == DIODE).sum()) + len(circuit.devices),
    }
    try:
        if case.competitor == OURS:
            compile_at_once()
        adapter = create(case.competitor)
        for tolerance in adapter.tolerances:
            adapter.build(circuit, tolerance)
            voltages = adapter.solve()
            found = judge(voltages)
            row |= {"error": found.error if np.isfinite(found.error) else None, "tolerance": tolerance}
            if found.error <= GOOD:
                break
        if case.competitor == NGSPICE and np.isfinite(voltages).all():
            row["off"] = distance(voltages, solve(circuit).voltages)
            # Enough to exceed the process start-up time, but not minutes.
            row["inside"] = adapter.inside(max(3, 20_000 // arrays.n_nodes))
        elif found.error > GOOD:
            return row | {"failure": f"verified error {found.error:.1e} ({found.equation}) at its tightest tolerance"}
        row |= _times(adapter, circuit, row["tolerance"], budget)
    except (NoAnswer, CircuitError, ValueError, ArithmeticError, MemoryError) as error:
        return row | {"failure": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
    if case.competitor == OURS:
        point = solve(circuit)
        states = [*(point.currents[arrays.kind == DIODE] > 0.0), *(r.conducting for r in point.regions.values())]
        row["conducting"] = float(np.mean(states)) if states else 0.0
    return row | {"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def _judge(circuit: Circuit, convex_program: bool) -> Callable[[np.ndarray], Verified]:
    """The error of node voltages: by the certificate of a quadratic program, else by the distance from our certified
    answer relative to the largest potential."""
    if convex_program:
        return lambda voltages: verified_error(circuit, voltages, GOOD)
    exact = solve(circuit)
    worst = exact.certificate.worst
    return lambda voltages: Verified(max(worst, distance(voltages, exact.voltages)), "distance")


def _times(adapter: Any, circuit: Circuit, tolerance: float | None, budget: float) -> dict[str, float]:
    """Medians of repeated builds with a solve, and of solves for new source values; ours also of a batch; s."""

    def whole() -> None:
        adapter.build(circuit, tolerance)
        adapter.solve()

    def fresh() -> None:
        adapter.update(next(values))
        adapter.solve()

    values = new_values(circuit)
    found = {"cold": _median(whole, budget), "prepared": _median(fresh, budget)}
    arrays = circuit.arrays()
    if hasattr(adapter, "batch") and arrays.n_nodes <= BATCH_NODES:
        sources = (arrays.kind == VOLTAGE) | (arrays.kind == CURRENT)
        samples = np.array([next(values)[sources] for _ in range(SAMPLES)])
        call = adapter.batch(samples[:16])
        call()
        # If a thousand would take longer than seconds, fewer are as informative.
        count = int(min(SAMPLES, max(16, BATCH_SECONDS * 16 / _seconds(call))))
        found["batch"] = _median(adapter.batch(samples[:count]), 0.0) / count
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
    found: list[float] = []
    while len(found) < 3 or (sum(found) < budget and len(found) < 200):
        found.append(_seconds(action))
        if found[-1] > max(budget, 1.0):
            break
    return statistics.median(found)


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


# ---------------------------------------------------------------------- all of them
def finished(folder: Path) -> list[dict[str, Any]]:
    """The rows of an earlier run, without truncated or invalid lines, which are measured again."""
    path, rows = folder / RESULTS, []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        kinds = {"family": str, "unknowns": int, "seed": int, "competitor": str}
        named = isinstance(row, dict) and all(isinstance(row.get(name), kind) for name, kind in kinds.items())
        if named and ("failure" in row or {"nodes", "cold"} <= set(row)):
            rows.append(row)
    return rows


def run(
    wanted: list[Case], folder: Path, limit: float, budget: float, tell: Callable[[str], None]
) -> list[dict[str, Any]]:
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
    rows = {Case(*(row[name] for name in Case._fields)): row for row in finished(folder)}
    beaten: set[tuple[str, str]] = set()
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


def _measured(case: Case, limit: float, budget: float) -> dict[str, Any]:
    absent = missing(case.competitor)
    if absent:
        return case._asdict() | {"failure": absent}
    command = [sys.executable, "-m", "circuitsim.bench.runner", *map(str, case), str(budget)]
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
    words = sys.argv[1:]
    print(json.dumps(measure(Case(words[0], int(words[1]), int(words[2]), words[3]), float(words[4])), allow_nan=False))
