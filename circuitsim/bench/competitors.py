"""Competitors: each computes a circuit's node voltages, which are verified.

An adapter has ``build(circuit, tolerance)``, ``solve()`` → node voltages (n_nodes,), V, ``update(value)`` with new
values of V and I, and ``tolerances`` to request in turn until the verified error is small enough (None: the solver's
default).

Any exception of an adapter is reported as a failure, never as a ratio.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from circuitsim.analysis.batched import batched
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.solve import prepared
from circuitsim.circuit import Circuit, CircuitArrays
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE
from circuitsim.errors import UsageError
from circuitsim.netlist import dumps

OURS, NGSPICE = "circuitsim", "ngspice"

CVXPY_KINDS = {
    "cvxpy": (False, False),
    "cvxpy-dpp": (False, True),
    "cvxpy-nodal": (True, False),
    "cvxpy-nodal-dpp": (True, True),
}
"""Way to write the problem → whether the energy has the nodal matrix, else it is a sum of squares with a variable for
each resistor; whether source values are parameters."""
CVXPY_BACKENDS = {
    "CLARABEL": "clarabel",
    "PIQP": "piqp",
    "OSQP": "osqp",
    "SCS": "scs",
    "HIGHS": "highspy",
    "DAQP": "daqp",
}
"""Name in cvxpy → package."""
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
    chosen: dict[str, None] = {OURS: None}
    for word in filter(None, (part.strip() for part in asked.split(","))):
        kind, _, backend = word.partition(":")
        if kind in CVXPY_KINDS and backend:
            group = [f"{kind}:{backend.upper()}"]
        else:
            group = [name for name in NAMES if word in (name, name.partition(":")[0])]
            group = [name for name in NAMES if name.startswith("cvxpy")] if word == "cvxpy" else group
        if not group:
            raise UsageError(f"--against {word!r}: known are cvxpy, {', '.join(NAMES)}, or cvxpy:BACKEND")
        chosen.update(dict.fromkeys(group))
    return list(chosen)


def missing(name: str) -> str:
    """The reason a competitor cannot run here; empty if it can."""
    if name == NGSPICE:
        return "" if shutil.which(NGSPICE) else "the program ngspice is not installed"
    backend = name.partition(":")[2]
    needed = ["cvxpy", CVXPY_BACKENDS.get(backend, "cvxpy")] if backend else []
    absent = [package for package in needed if find_spec(package) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""


def create(name: str) -> Any:
    """The adapter of a competitor."""
    return Ours() if name == OURS else Ngspice() if name == NGSPICE else Cvxpy(name)


class Ours:
    """``prepared(circuit)`` is the build, ``.solve()`` the solve; the time includes its certificate."""

    tolerances: tuple[float | None, ...] = (None,)

    def build(self, circuit: Circuit, tolerance: float | None) -> None:
        """Analyse the circuit."""
        self._circuit, self._prepared = circuit, prepared(circuit)
        self._values: np.ndarray | None = None

    def solve(self) -> np.ndarray:
        """The certified operating point's potentials."""
        point: OperatingPoint = self._prepared.solve(self._values)
        # An operating point computes its parts on demand: what a user reads belongs to the time.
        if not point.certificate.certified:
            raise NoAnswer("no certificate")
        return point.voltages

    def update(self, value: np.ndarray) -> None:
        """Set new source values."""
        self._values = value

    def batch(self, values: np.ndarray) -> Callable[[], None]:
        """A single-threaded call that solves for many source values (samples, sources) at once, after `build`."""
        kind = self._circuit.arrays().kind
        sources = np.flatnonzero((kind == VOLTAGE) | (kind == CURRENT)).tolist()
        solver = batched(self._circuit, [self._circuit.names[k] for k in sources])

        def call() -> None:
            certified = solver.solve(values, threads=1).certified
            if not certified.all():
                raise NoAnswer(f"{int((~certified).sum())} of {certified.size} samples without a certificate")

        return call


# ---------------------------------------------------------------------- cvxpy
def incidence(arrays: CircuitArrays, kind: int) -> Any:
    """One row per element of a kind: +1 at its first node, −1 at its second; columns are the nodes except ground.

    This is what a user of cvxpy would write, without super-nodes or reductions.
    """
    from scipy.sparse import coo_matrix

    chosen = arrays.kind == kind
    first, second = arrays.first[chosen], arrays.second[chosen]
    rows, entries = np.arange(first.size), np.repeat([1.0, -1.0], first.size)
    where = np.concatenate([rows, rows]), np.concatenate([first, second])
    return coo_matrix((entries, where), shape=(first.size, arrays.n_nodes)).tocsc()[:, 1:]


def energy_matrix(arrays: CircuitArrays, nodal: bool) -> Any:
    """AᵀGA, S, or G^½ A: A is the resistors' incidence matrix, G has their conductances."""
    from scipy.sparse import diags

    drops, g = incidence(arrays, RESISTOR), 1.0 / arrays.value[arrays.kind == RESISTOR]
    return ((drops.T @ diags(g) @ drops) if nodal else (diags(np.sqrt(g)) @ drops)).tocsc()


def options(backend: str, tolerance: float | None) -> dict[str, Any]:
    """A backend's options for the tolerance and enough iterations; empty for its defaults."""
    t = tolerance
    known: dict[str, dict[str, Any]] = {
        "CLARABEL": {"tol_gap_abs": t, "tol_gap_rel": t, "tol_feas": t, "max_iter": 500},
        "PIQP": {"eps_abs": t, "eps_rel": t, "eps_duality_gap_abs": t, "eps_duality_gap_rel": t, "max_iter": 500},
        "OSQP": {"eps_abs": t, "eps_rel": t, "max_iter": 200_000, "polishing": True},
        "SCS": {"eps_abs": t, "eps_rel": t, "max_iters": 200_000},
        "HIGHS": dict.fromkeys(("primal_feasibility_tolerance", "dual_feasibility_tolerance"), max(t or 0.0, 1e-10)),
        "DAQP": {"primal_tol": t, "dual_tol": t, "iter_limit": 100_000},
    }
    return {} if tolerance is None else known.get(backend, {})


class Cvxpy:
    """``KIND:BACKEND`` with a kind of `CVXPY_KINDS`; without parameters, new values need a new problem."""

    tolerances: tuple[float | None, ...] = (None, 1e-9, 1e-11, 1e-13)

    def __init__(self, name: str) -> None:
        kind, _, self._backend = name.partition(":")
        self._nodal, self._parametrised = CVXPY_KINDS[kind]

    def build(self, circuit: Circuit, tolerance: float | None) -> None:
        """Build the problem; cvxpy compiles a parametrised one at its first solve."""
        import cvxpy

        arrays = circuit.arrays()
        self._kind, self._options = arrays.kind, options(self._backend, tolerance)
        self._energy = energy_matrix(arrays, self._nodal)
        self._parts = [incidence(arrays, kind) for kind in (CURRENT, VOLTAGE, DIODE)]
        self._parameters: Any = [arrays.value[arrays.kind == kind] for kind in (CURRENT, VOLTAGE)]
        if self._parametrised:
            self._parameters = [cvxpy.Parameter(column.size, value=column) for column in self._parameters]
        self._model(*self._parameters)

    def _model(self, amperes: Any, volts: Any) -> None:
        """The energy and its constraints in the potentials of all nodes except ground."""
        import cvxpy

        v = cvxpy.Variable(self._energy.shape[1])
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
        self._problem, self._potentials = cvxpy.Problem(cvxpy.Minimize(energy), constraints), v

    def solve(self) -> np.ndarray:
        """Solve; cvxpy's warnings about accuracy are left to the certificate."""
        import cvxpy

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self._problem.solve(solver=self._backend, **self._options)
            except cvxpy.error.SolverError as error:
                raise NoAnswer(str(error)) from error
        if self._potentials.value is None:
            raise NoAnswer(f"status {self._problem.status}")
        return np.concatenate([[0.0], self._potentials.value])

    def update(self, value: np.ndarray) -> None:
        """Set new parameter values; without parameters, rebuild the problem from the same matrices."""
        columns = [value[self._kind == kind] for kind in (CURRENT, VOLTAGE)]
        if self._parametrised:
            for parameter, column in zip(self._parameters, columns):
                parameter.value = column
        else:
            self._model(*columns)


# ---------------------------------------------------------------------- ngspice
SOFTER = (("1e-18", "0.003"), ("1e-16", "0.03"), ("1e-15", "0.1"), ("1e-14", "1"))
"""Saturation currents and emission coefficients of nearly ideal diodes, the sharpest first; the first for which
Newton's method converges is used."""
OPTIONS = ".options gmin=1e-21 reltol=1e-6 abstol=1e-18 vntol=1e-9"
TIGHT = ".options gmin=1e-30 reltol=1e-10 abstol=1e-18 vntol=1e-14"
"""Options for circuits with models: no gmin, and an error as small as ours."""


class Ngspice:
    """``.op`` with nearly ideal diodes, hence of a slightly different problem: as a process, and repeated inside
    one."""

    tolerances: tuple[float | None, ...] = (None,)

    def build(self, circuit: Circuit, tolerance: float | None) -> None:
        """Keep the circuit: its cards are part of the solve."""
        self._circuit, self._value, self._softness = circuit, circuit.arrays().value, 0

    def update(self, value: np.ndarray) -> None:
        """Set new source values in a new deck."""
        self._value = value

    def solve(self) -> np.ndarray:
        """Voltages of a whole run including input and output, with the sharpest diode that converges."""
        while True:
            try:
                return self._run(1)[0]
            except NoAnswer:
                self._softness += 1
                if self._softness == len(SOFTER):
                    raise

    def inside(self, repeats: int) -> float:
        """Seconds per ``op`` inside a running ngspice, from ``repeats`` additional ones."""
        once, more = min(self._run(1)[1] for _ in range(2)), min(self._run(1 + repeats)[1] for _ in range(2))
        return (more - once) / repeats

    def _run(self, times: int) -> tuple[np.ndarray, float]:
        program = shutil.which(NGSPICE)
        if program is None:
            raise NoAnswer(missing(NGSPICE))
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "deck.cir").write_text(self._deck(times), encoding="ascii")
            began = time.perf_counter()
            done = subprocess.run(
                [program, "-b", "deck.cir"], cwd=folder, capture_output=True, text=True, check=False, errors="replace"
            )
            seconds, out = time.perf_counter() - began, Path(folder, "out.raw")
            if not out.exists():
                said = (done.stderr + done.stdout).strip().splitlines()
                raise NoAnswer(next((line for line in said if "rror" in line or "onverge" in line), "no output")[:200])
            return self._voltages(out.read_bytes()), seconds

    def _deck(self, times: int) -> str:
        # `rusage` has a resolution of seconds on some systems; two runs of different length are compared instead.
        control = [".control", "set filetype=binary", *["op"] * times, "write out.raw", "quit", ".endc", ".end", ""]
        text = dumps(self._circuit.with_column(self._value)).removesuffix(".op\n.end\n")
        if self._circuit.devices or self._circuit.laws:
            return "\n".join([text, TIGHT, *control])
        sharp = ".model circuitsim_ideal D(is={} n={})".format(*SOFTER[self._softness])
        return "\n".join([re.sub(r"(?m)^\.model circuitsim_ideal .*$", sharp, text), OPTIONS, *control])

    def _voltages(self, raw: bytes) -> np.ndarray:
        """Node voltages of a binary rawfile with one point."""
        head, _, body = raw.partition(b"Binary:\n")
        listed = head.decode("ascii", "replace").partition("\nVariables:")[2].splitlines()[1:]
        names = [line.split()[1].removeprefix("v(").removesuffix(")") for line in listed if line.strip()]
        known = {name.lower(): k for k, name in enumerate(self._circuit.node_names)}
        voltages = np.zeros(len(known))
        for name, value in zip(names, np.frombuffer(body, dtype=float, count=len(names)).tolist()):
            voltages[known.get(name, 0)] = value
        voltages[0] = 0.0
        return voltages
