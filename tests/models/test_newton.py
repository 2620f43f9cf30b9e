"""Newton's method on circuits: random circuits, those that once failed, and descent of the energy alone."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import circuitsim
from circuitsim.analysis import newton
from circuitsim.analysis.smooth_small import SmallNewton
from circuitsim.errors import ConvergenceError
from circuitsim.models.smooth import SmoothDevice

sys.path.insert(0, str(Path(__file__).parents[1] / "properties"))
from device_circuits import draw


@pytest.mark.parametrize("seed", [11061, 14885, 13646])
def test_circuits_that_once_failed(seed: int) -> None:
    """Rounding of a table's current near zero volts; currents of a step that its certificate did not resolve."""
    point = circuitsim.solve(draw(seed))
    assert point.certificate.certified and int(str(point.solver["newton_steps"])) <= 25


@pytest.mark.parametrize("largest", [1e30, 1e25, 1e17, 1e12])
def test_no_step_is_tried_twice_with_the_same_resistances(largest: float) -> None:
    """Where a step is not solved, resistances of tangents above the next of `FALLBACKS` come down to it."""
    places, tried = np.array([1]), list[float]()
    smooth = newton.Smooth(places, places, places, places, np.zeros((1, 1)))

    def solve(column: np.ndarray, before: object) -> None:
        tried.append(float(column[1]))
        raise ConvergenceError("none")

    with pytest.raises(ConvergenceError):
        newton._solved(solve, np.array([5.0, largest]), smooth, None)
    assert tried == [largest, *(ohms for ohms in newton.FALLBACKS if ohms < largest)]


@pytest.mark.parametrize("seed", range(0, 60, 4))
def test_descent_of_the_energy_finds_the_same_point(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    circuit = draw(seed, 12)
    if not any(isinstance(device, SmoothDevice) for device in circuit.devices.values()):
        pytest.skip("no smooth device")
    usual = circuitsim.solve(circuit)
    monkeypatch.setattr(newton, "DESCENT", 0)
    monkeypatch.setattr(SmallNewton, "solve", lambda *_: None)
    found = circuitsim.solve(circuit)
    scale = np.abs(usual.voltages).max()
    np.testing.assert_allclose(found.voltages, usual.voltages, rtol=0.0, atol=1e-7 * scale)
    assert found.certificate.certified


def test_the_energy_falls_to_its_least() -> None:
    """One diode behind a resistor: the slope of the energy vanishes where the currents are equal."""
    circuit = circuitsim.loads("t\nV1 a 0 5\nR1 a b 1k\nD1 b 0 d\n.model d D(IS=1n)\n")
    ready = circuitsim.prepared(circuit)
    point = ready.solve()
    elementary = point.elementary
    assert elementary is not None
    arrays, smooth, column = elementary.circuit.arrays(), ready.smooth, elementary.circuit.arrays().value
    drops = {0.0: elementary.drops.copy(), 1.0: elementary.drops.copy()}
    for share, volts in ((0.0, 0.0), (1.0, 2.0)):
        drops[share][smooth.rest] = volts
        drops[share][1] = 5.0 - volts
    state = newton.project(smooth, *(np.zeros(1) for _ in range(4)))
    share = newton.least_energy(arrays, smooth, column, drops[0.0], drops[1.0], state)
    assert 2.0 * share == pytest.approx(point["b"], rel=0.06)


def test_what_the_least_conductances_of_tangents_leave_is_no_current() -> None:
    """A part whose smooth devices all block: a leaking diode there lies on its law at zero, not at 1e-127 A."""
    assert circuitsim.solve(draw(49207)).certificate.worst < 1e-12


@pytest.mark.parametrize("seed", [20332, 20567, 20771])
def test_limited_diodes_and_tables_take_few_steps(seed: int) -> None:
    """27, 27 and 40 steps, as long as load lines could end beside a curve with a kink."""
    found = circuitsim.solve(draw(seed))
    assert found.certificate.certified
    assert int(str(found.solver["newton_steps"])) <= 29
