"""Competitors: each computes the node voltages of a circuit, which are compared with our certified ones.

``create(name)(circuit, tolerance)`` builds a competitor's model of a circuit: an object to call with a column of values
of all elements (by default the circuit's own), which returns the node voltages (n_nodes,), V. `tolerances` are those to
request in turn until the error is small enough (None: the solver's default).

Any exception of a competitor is reported as a failure, never as a ratio.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from circuitsim._bundled import tables
from circuitsim.analysis.batched import batched
from circuitsim.analysis.solve import prepared
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.errors import UsageError
from circuitsim.netlist import dumps
from circuitsim.solvers import incidence

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
