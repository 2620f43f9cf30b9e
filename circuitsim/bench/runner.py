"""All measurements of a suite, one process each, appended to ``results.jsonl`` as they finish: a run can be resumed.

``python -m circuitsim.bench.runner '["FAMILY", UNKNOWNS, SEED, "COMPETITOR"]' BUDGET`` makes one measurement and prints
a line of JSON. Separate processes isolate memory, time limits and crashes of other solvers.

The error of another solver's answer is its distance from our certified node voltages, which are unique.

``create(name)(circuit, tolerance)`` builds a competitor's model of a circuit: an object to call with a column of values
of all elements (by default the circuit's own), which returns the node voltages (n_nodes,), V. `tolerances` are those to
request in turn until the error is small enough (None: the solver's default).

Any exception of a competitor is reported as a failure, never as a ratio.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time
import timeit
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim import formats
from circuitsim._bundled import tables
from circuitsim._files import naming
from circuitsim._version import __version__
from circuitsim.analysis.batched import batched
from circuitsim.analysis.solve import prepared, solve
from circuitsim.bench.families import FAMILIES, make
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.errors import CircuitError, UsageError
from circuitsim.kernels import compile_at_once
from circuitsim.netlist import dumps
from circuitsim.plotting.charts import Line, plot_lines
from circuitsim.solvers import incidence

if TYPE_CHECKING:
    from matplotlib.figure import Figure


OURS, NGSPICE = "circuitsim", "ngspice"

CVXPY_KINDS = {
    "cvxpy": (False, False),
    "cvxpy-dpp": (False, True),
    "cvxpy-nodal": (True, False),
    "cvxpy-nodal-dpp": (True, True),
}
"""Way to write the problem → whether the energy has the nodal matrix, else it is a sum of squares with a variable for
each resistor; whether source values are parameters."""


class Backend(NamedTuple):
    """A solver of cvxpy: its package, its options that are tolerances, the least tolerance that it takes, and further
    options for enough iterations."""

    package: str = "cvxpy"
    tolerances: Sequence[str] = ()
    least: float = 0.0
    more: Mapping[str, Any] = MappingProxyType({})


CVXPY_BACKENDS = {name: Backend(**row) for name, row in tables("bench/bench.toml")["backends"].items()}
"""Name in cvxpy → `Backend`."""
NAMES = (OURS, *(f"{kind}:{backend}" for kind in CVXPY_KINDS for backend in CVXPY_BACKENDS), NGSPICE)


class NoAnswer(Exception):
    """A competitor that gave up, with its message."""


def expand(asked: str) -> list[str]:
    """The competitors that ``--against`` names; ``cvxpy`` means all its backends and all `CVXPY_KINDS`.

    Raises
    ------
    UsageError
        An unknown name.
    """
    chosen = [OURS]
    for word in filter(None, (part.strip() for part in asked.split(","))):
        kind, _, backend = word.partition(":")
        group = [name for name in NAMES if word in (name, name.partition(":")[0], name.partition("-")[0])]
        if kind in CVXPY_KINDS and (backend or word == "cvxpy"):
            group = [f"{kind}:{backend.upper()}"] if backend else [name for name in NAMES if ":" in name]
        if not group:
            raise UsageError(f"--against {word!r}: known are cvxpy, {', '.join(NAMES)}, or cvxpy:BACKEND")
        chosen += group
    return list(dict.fromkeys(chosen))


def missing(name: str) -> str:
    """The reason a competitor cannot run here; empty if it can."""
    if name == NGSPICE:
        return "" if shutil.which(NGSPICE) else "the program ngspice is not installed"
    backend = name.partition(":")[2]
    needed = ["cvxpy", CVXPY_BACKENDS.get(backend, Backend()).package] if backend else []
    absent = [package for package in needed if find_spec(package) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""


def create(name: str) -> Callable[[Circuit, float | None], Any]:
    """What builds a competitor's model of a circuit."""
    return {OURS: Ours, NGSPICE: Ngspice}.get(name, partial(Cvxpy, name))


def tolerances(name: str) -> tuple[float | None, ...]:
    """The tolerances to request of a competitor, in turn."""
    return (None, 1e-9, 1e-11, 1e-13) if ":" in name else (None,)


class Ours:
    """``prepared(circuit)`` is the model, ``.solve()`` the call; the time includes its certificate."""

    def __init__(self, circuit: Circuit, tolerance: float | None = None) -> None:
        self._circuit, self._prepared = circuit, prepared(circuit)

    def __call__(self, value: np.ndarray | None = None) -> np.ndarray:
        """The certified operating point's node voltages."""
        point = self._prepared.solve(value)
        # An operating point computes its parts on demand: what a user reads belongs to the time.
        if not point.certificate.certified:
            raise NoAnswer("no certificate")
        return point.voltages

    def batch(self, values: np.ndarray) -> Callable[[], None]:
        """A single-threaded call that solves for many source values (samples, sources) at once."""
        kind = self._circuit.arrays().kind
        sources = np.flatnonzero((kind == VOLTAGE) | (kind == CURRENT)).tolist()
        solver = batched(self._circuit, [self._circuit.names[k] for k in sources])

        def call() -> None:
            certified = solver.solve(values, threads=1).certified
            if not certified.all():
                raise NoAnswer(f"{int((~certified).sum())} of {certified.size} samples without a certificate")

        return call


# ---------------------------------------------------------------------- cvxpy
class Cvxpy:
    """``KIND:BACKEND`` with a kind of `CVXPY_KINDS`; without parameters, new values need a new problem. cvxpy compiles
    a parametrised one at its first solve."""

    def __init__(self, name: str, circuit: Circuit, tolerance: float | None) -> None:
        import cvxpy
        from scipy.sparse import diags

        kind, _, self._backend = name.partition(":")
        (self._nodal, parametrised), own = CVXPY_KINDS[kind], CVXPY_BACKENDS.get(self._backend, Backend())
        self._options: dict[str, Any] = {}
        if tolerance is not None:
            self._options = dict.fromkeys(own.tolerances, max(tolerance, own.least)) | dict(own.more)
        self._arrays = arrays = circuit.arrays()

        def ends(kind: int) -> Any:
            # What a user of cvxpy would write, without super-nodes or reductions; columns are the nodes except ground.
            chosen = arrays.kind == kind
            return incidence(arrays.first[chosen], arrays.second[chosen], arrays.n_nodes)[:, 1:]

        drops, g = ends(RESISTOR), 1.0 / arrays.value[arrays.kind == RESISTOR]
        # AᵀGA, S, or G^½ A: A is the resistors' incidence matrix, G has their conductances.
        self._energy = ((drops.T @ diags(g) @ drops) if self._nodal else (diags(np.sqrt(g)) @ drops)).tocsc()
        self._parts = [ends(kind) for kind in (CURRENT, VOLTAGE, DIODE)]
        self._parameters = [cvxpy.Parameter(part.shape[0]) for part in self._parts[:2]] if parametrised else []
        if parametrised:
            self._model(*self._parameters)

    def __call__(self, value: np.ndarray | None = None) -> np.ndarray:
        """Solve; cvxpy's warnings about accuracy are left to the comparison."""
        import cvxpy

        value = self._arrays.value if value is None else value
        columns = [value[self._arrays.kind == kind] for kind in (CURRENT, VOLTAGE)]
        for parameter, column in zip(self._parameters, columns):
            parameter.value = column
        if not self._parameters:
            self._model(*columns)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self._problem.solve(solver=self._backend, **self._options)
            except cvxpy.error.SolverError as error:
                raise NoAnswer(str(error)) from error
        if self._potentials.value is None:
            raise NoAnswer(f"status {self._problem.status}")
        return np.concatenate([[0.0], self._potentials.value])

    def _model(self, amperes: Any, volts: Any) -> None:
        """The energy and its constraints in the potentials of all nodes except ground."""
        import cvxpy

        v = self._potentials = cvxpy.Variable(self._energy.shape[1])
        currents, voltages, diodes = self._parts
        if self._nodal:
            # The matrix is semidefinite by construction; cvxpy need not compute eigenvalues.
            energy = 0.5 * cvxpy.quad_form(v, cvxpy.psd_wrap(self._energy))
        else:
            energy = 0.5 * cvxpy.sum_squares(self._energy @ v)
        if currents.shape[0]:
            energy = energy + (currents.T @ amperes) @ v
        constraints = [voltages @ v == volts] if voltages.shape[0] else []
        constraints += [diodes @ v <= 0] if diodes.shape[0] else []
        self._problem = cvxpy.Problem(cvxpy.Minimize(energy), constraints)


# ---------------------------------------------------------------------- ngspice
SOFTER = (("1e-18", "0.003"), ("1e-16", "0.03"), ("1e-15", "0.1"), ("1e-14", "1"))
"""Saturation currents and emission coefficients of nearly ideal diodes, the sharpest first; the first for which
Newton's method converges is used."""
OPTIONS = ".options gmin=1e-21 reltol=1e-6 abstol=1e-18 vntol=1e-9"
TIGHT = ".options gmin=1e-30 reltol=1e-10 abstol=1e-18 vntol=1e-14"
"""Options for circuits with models: no gmin, and an error as small as ours."""

_ANSWER = re.compile(r"^(?:v\()?(\S+?)\)? = (\S+)$", re.MULTILINE)
"""A line of ``print all``: a node and its voltage."""


class Ngspice:
    """``.op`` with nearly ideal diodes, hence of a slightly different problem: as a process, and repeated inside
    one."""

    def __init__(self, circuit: Circuit, tolerance: float | None = None) -> None:
        self._circuit, self._softness = circuit, 0

    def __call__(self, value: np.ndarray | None = None) -> np.ndarray:
        """Voltages of a whole run including input and output, with the sharpest diode that converges."""
        circuit = self._circuit if value is None else self._circuit.with_column(value)
        while True:
            try:
                return self._run(1, circuit)[0]
            except NoAnswer:
                self._softness += 1
                if self._softness == len(SOFTER):
                    raise

    def inside(self, repeats: int) -> float:
        """Seconds per ``op`` inside a running ngspice, from ``repeats`` additional ones."""
        # `rusage` has a resolution of seconds on some systems; two runs of different length are compared instead.
        once, more = (min(self._run(n, self._circuit)[1] for _ in range(2)) for n in (1, 1 + repeats))
        return (more - once) / repeats

    def _run(self, times: int, circuit: Circuit) -> tuple[np.ndarray, float]:
        program = shutil.which(NGSPICE)
        if program is None:
            raise NoAnswer(missing(NGSPICE))
        text, options = dumps(circuit).removesuffix(".op\n.end\n"), TIGHT
        if not (circuit.devices or circuit.laws):
            sharp = ".model circuitsim_ideal D(is={} n={})".format(*SOFTER[self._softness])
            text, options = re.sub(r"(?m)^\.model circuitsim_ideal .*$", sharp, text), OPTIONS
        control = [options, ".control", "set numdgt=16", *["op"] * times, "print all", "quit", ".endc", ".end", ""]
        began = time.perf_counter()
        done = subprocess.run(
            [program, "-b"], input=text + "\n".join(control), capture_output=True, text=True, errors="replace"
        )
        seconds, found = time.perf_counter() - began, dict(_ANSWER.findall(done.stdout))
        voltages = [0.0, *(float(found.get(name.lower(), "nan")) for name in circuit.node_names[1:])]
        if np.isnan(voltages).any():
            said = (done.stderr + done.stdout).strip().splitlines()
            raise NoAnswer(next((line for line in said if "rror" in line or "onverge" in line), "no output")[:200])
        return np.array(voltages), seconds


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
