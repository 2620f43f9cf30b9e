"""cvxpy: the problem built anew from the circuit, and the parametrised (DPP) problem solved for new source values."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from circuitsim.bench.competitors import NoAnswer
from circuitsim.bench.quadratic import incidence
from circuitsim.circuit import Circuit, CircuitArrays
from circuitsim.circuit.elements import CURRENT, DIODE, RESISTOR, VOLTAGE


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
    """``cvxpy:BACKEND`` models with constants; ``cvxpy-dpp:BACKEND`` with parameters for the source values."""

    tolerances: tuple[float | None, ...] = (None, 1e-9, 1e-11, 1e-13)

    def __init__(self, name: str) -> None:
        kind, _, self._backend = name.partition(":")
        self._parametrised = kind == "cvxpy-dpp"

    def build(self, circuit: Circuit, tolerance: float | None) -> None:
        """The problem; a parametrised one is compiled by cvxpy at its first solve, as always."""
        import cvxpy

        self._arrays = arrays = circuit.arrays()
        self._options = options(self._backend, tolerance)
        volts: Any = arrays.value[arrays.kind == VOLTAGE]
        amperes: Any = arrays.value[arrays.kind == CURRENT]
        if self._parametrised:
            volts, amperes = (cvxpy.Parameter(column.size, value=column) for column in (volts, amperes))
            self._parameters = volts, amperes
        self._problem, self._potentials = model(arrays, volts, amperes)

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
        """New parameter values; without parameters the problem is written anew."""
        arrays = self._arrays
        volts, amperes = value[arrays.kind == VOLTAGE], value[arrays.kind == CURRENT]
        if self._parametrised:
            self._parameters[0].value, self._parameters[1].value = volts, amperes
        else:
            self._problem, self._potentials = model(arrays, volts, amperes)


def model(arrays: CircuitArrays, volts, amperes):
    """The energy and its constraints over the potentials of all nodes but ground; returns problem and variable."""
    import cvxpy

    v = cvxpy.Variable(arrays.n_nodes - 1)
    root = np.sqrt(1.0 / arrays.value[arrays.kind == RESISTOR])
    energy = 0.5 * cvxpy.sum_squares(cvxpy.multiply(root, incidence(arrays, RESISTOR) @ v))
    if (arrays.kind == CURRENT).any():
        energy = energy + amperes @ (incidence(arrays, CURRENT) @ v)
    constraints = []
    if (arrays.kind == VOLTAGE).any():
        constraints.append(incidence(arrays, VOLTAGE) @ v == volts)
    if (arrays.kind == DIODE).any():
        constraints.append(incidence(arrays, DIODE) @ v <= 0)
    return cvxpy.Problem(cvxpy.Minimize(energy), constraints), v
