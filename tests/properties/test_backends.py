"""Two general QP solvers find the same energy, wherever what they return is a steady state to six digits."""

from __future__ import annotations

import cvxpy
import pytest
from circuits import Sketch, examples, sketches
from hypothesis import given, settings

import circuitsim
from circuitsim.errors import ConvergenceError, NoSteadyStateError

BACKENDS = [name for name in ("CLARABEL", "OSQP") if name in cvxpy.installed_solvers()]


def test_two_backends_are_there() -> None:
    assert len(BACKENDS) == 2


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("backend", BACKENDS)
def test_energy(backend: str, record_property: pytest.RecordProperty) -> None:
    """Backends stop at tolerances relative to the whole circuit: the certificate says which of their points count."""
    counts = {"agree": 0, "not certified": 0}

    @settings(max_examples=examples(60))
    @given(sketches(max_nodes=8, max_diodes=6))
    def compare(sketch: Sketch) -> None:
        circuit = sketch.circuit()
        try:
            op = circuitsim.solve(circuit)
        except NoSteadyStateError as error:
            with pytest.raises(type(error)):
                circuitsim.solve(circuit, solver=f"cvxpy:{backend}")
            return
        try:
            other = circuitsim.solve(circuit, solver=f"cvxpy:{backend}", tolerance=1e-6)
        except ConvergenceError:
            counts["not certified"] += 1
            return
        counts["agree"] += 1
        terms = sum(abs(i * op.voltage(e.first, e.second)) for e, i in zip(circuit, op.currents.tolist()))
        assert other.energy == pytest.approx(op.energy, rel=1e-5, abs=1e-5 * terms)

    compare()
    for name, count in counts.items():
        record_property(name, count)
    print(backend, counts)
    # The comparison must not be empty: at least a quarter of the circuits are within the backend's reach.
    assert counts["agree"] >= (counts["agree"] + counts["not certified"]) / 4
