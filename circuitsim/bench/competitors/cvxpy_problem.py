"""cvxpy: a circuit's convex program in two forms, with constants or with parameters (DPP) for the source values."""

from __future__ import annotations

import warnings
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from circuitsim.bench.competitors import NoAnswer
from circuitsim.bench.quadratic import incidence, nodal_matrix
from circuitsim.circuit import Circuit, CircuitArrays
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE


class Form(Enum):
    """How the energy of the resistors is written; v are the potentials, A the incidence matrix, G the conductances."""

    SQUARES = "½ ‖G^½ A v‖²"
    """``sum_squares``: cvxpy gives QP solvers a variable for every resistor."""
    NODAL = "½ vᵀ (AᵀGA) v"
    """``quad_form`` with the nodal matrix: QP solvers get it as it is; conic solvers get a factor of it."""


FORMS = {
    "cvxpy": (Form.SQUARES, False),
    "cvxpy-dpp": (Form.SQUARES, True),
    "cvxpy-nodal": (Form.NODAL, False),
    "cvxpy-nodal-dpp": (Form.NODAL, True),
}
"""First half of a competitor's name → form of the energy, and whether source values are parameters."""


def options(backend: str, tolerance: float | None) -> dict[str, Any]:
    """A backend's own names for the tolerance, and iterations enough to reach it; nothing for its defaults."""
    if tolerance is None:
        return {}
    t = tolerance
    known: dict[str, dict[str, Any]] = {
        "CLARABEL": {"tol_gap_abs": t, "tol_gap_rel": t, "tol_feas": t, "max_iter": 500},
        "PIQP": {"eps_abs": t, "eps_rel": t, "eps_duality_gap_abs": t, "eps_duality_gap_rel": t, "max_iter": 500},
        "OSQP": {"eps_abs": t, "eps_rel": t, "max_iter": 200_000, "polishing": True},
        "SCS": {"eps_abs": t, "eps_rel": t, "max_iters": 200_000},
        "HIGHS": {"primal_feasibility_tolerance": max(t, 1e-10), "dual_feasibility_tolerance": max(t, 1e-10)},
        "DAQP": {"primal_tol": t, "dual_tol": t, "iter_limit": 100_000},
    }
    return known.get(backend, {})


class Adapter:
    """``KIND:BACKEND`` with a kind of `FORMS`; without parameters the problem is written anew for new values."""

    tolerances: tuple[float | None, ...] = (None, 1e-9, 1e-11, 1e-13)

    def __init__(self, name: str) -> None:
        kind, _, self._backend = name.partition(":")
        self._form, self._parametrised = FORMS[kind]

    def build(self, circuit: Circuit, tolerance: float | None) -> None:
        """The problem; a parametrised one is compiled by cvxpy at its first solve, as always."""
        import cvxpy

        self._arrays = arrays = circuit.arrays()
        self._options = options(self._backend, tolerance)
        self._parts = parts(arrays, self._form)
        volts: Any = arrays.value[arrays.kind == VOLTAGE]
        amperes: Any = arrays.value[arrays.kind == CURRENT]
        if self._parametrised:
            volts, amperes = (cvxpy.Parameter(column.size, value=column) for column in (volts, amperes))
            self._parameters = volts, amperes
        self._problem, self._potentials = model(self._parts, volts, amperes)

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
        """New parameter values; without parameters the problem is written anew, of matrices made before."""
        arrays = self._arrays
        volts, amperes = value[arrays.kind == VOLTAGE], value[arrays.kind == CURRENT]
        if self._parametrised:
            self._parameters[0].value, self._parameters[1].value = volts, amperes
        else:
            self._problem, self._potentials = model(self._parts, volts, amperes)


class Parts(NamedTuple):
    """What does not change with the source values; one row an element, one column a node but ground."""

    form: Form
    energy: Any
    """G^½ A or AᵀGA."""
    currents: Any
    voltages: Any
    diodes: Any


def parts(arrays: CircuitArrays, form: Form) -> Parts:
    """The matrices of a form."""
    from scipy.sparse import diags

    if form is Form.NODAL:
        energy = nodal_matrix(arrays)
    else:
        root = np.sqrt(1.0 / arrays.value[arrays.kind == RESISTOR])
        energy = (diags(root) @ incidence(arrays, RESISTOR)).tocsc()
    return Parts(form, energy, *(incidence(arrays, kind) for kind in (CURRENT, VOLTAGE, DIODE)))


def model(parts: Parts, volts, amperes):
    """The energy and its constraints over the potentials of all nodes but ground; returns problem and variable."""
    import cvxpy

    v = cvxpy.Variable(parts.energy.shape[1])
    if parts.form is Form.NODAL:
        # The sum of squares behind the matrix proves it semidefinite; cvxpy need not compute eigenvalues.
        energy = 0.5 * cvxpy.quad_form(v, cvxpy.psd_wrap(parts.energy))
    else:
        energy = 0.5 * cvxpy.sum_squares(parts.energy @ v)
    if parts.currents.shape[0]:
        energy = energy + (parts.currents.T @ amperes) @ v
    constraints = []
    if parts.voltages.shape[0]:
        constraints.append(parts.voltages @ v == volts)
    if parts.diodes.shape[0]:
        constraints.append(parts.diodes @ v <= 0)
    return cvxpy.Problem(cvxpy.Minimize(energy), constraints), v
