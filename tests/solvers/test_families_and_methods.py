"""Every family of benchmark circuits by every method that applies: the same operating point to 1e-9."""

import numpy as np
import pytest

import circuitsim
from circuitsim.analysis.convex import Prepared
from circuitsim.bench.families import FAMILIES, make
from circuitsim.bench.runner import create
from circuitsim.circuit import Circuit
from circuitsim.errors import ConvergenceError

SIZES = (20, 90, 180)
CONVEX = {name for name, family in FAMILIES.items() if family.convex_program}


def general(circuit: Circuit) -> circuitsim.OperatingPoint:
    """The general active set, without the kernel for small circuits."""
    return Prepared(circuit, "active-set", 1e-9, "asked for").solve()


def batch(circuit: Circuit) -> np.ndarray:
    """Potentials from a batch of one."""
    solution = circuitsim.batched(circuit).solve()
    assert solution.certified.all()
    return solution.voltages[0]


@pytest.mark.parametrize("family", sorted(CONVEX))
def test_all_methods_agree(family: str) -> None:
    for size in SIZES:
        for seed in (0, 1):
            circuit = make(family, size, seed)
            point = circuitsim.solve(circuit)
            scale = np.abs(point.voltages).max()
            others = {"general": general(circuit).voltages, "batch": batch(circuit)}
            try:
                others["coordinate-descent"] = circuitsim.solve(circuit, solver="coordinate-descent").voltages
            except ConvergenceError:
                # It may freeze, and then says so; where every diode has an end at a fixed potential it may not.
                assert family not in ("drn", "crossbar")
            for name, voltages in others.items():
                assert np.abs(voltages - point.voltages).max() <= 1e-9 * scale, (name, size, seed)


@pytest.mark.parametrize("family", sorted(CONVEX - {"grid-scaled"}))
def test_an_interior_point_method_agrees_to_its_own_accuracy(family: str) -> None:
    circuit = make(family, 60, 2)
    solver = create("cvxpy-nodal:CLARABEL")(circuit, 1e-12)
    point = circuitsim.solve(circuit)
    assert solver() == pytest.approx(point.voltages, abs=1e-6 * np.abs(point.voltages).max())
