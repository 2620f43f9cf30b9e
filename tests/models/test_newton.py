"""Newton's method on circuits: random circuits, those that once failed, and descent of the energy alone."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import circuitsim
from circuitsim.analysis import newton
from circuitsim.analysis.smooth_small import SmallNewton
from circuitsim.models.smooth import SmoothDevice

sys.path.insert(0, str(Path(__file__).parents[1] / "properties"))
from device_circuits import draw


@pytest.mark.parametrize("seed", [11061, 14885, 13646])
def test_circuits_that_once_failed(seed: int) -> None:
    """Rounding of a table's current near zero volts; currents of a step that its certificate did not resolve."""
    point = circuitsim.solve(draw(seed))
    assert point.certificate.certified and int(str(point.solver["newton_steps"])) <= 25


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


def test_what_the_least_conductances_of_tangents_leave_is_no_current() -> None:
    """A part whose smooth devices all block: a leaking diode there lies on its law at zero, not at 1e-127 A."""
    assert circuitsim.solve(draw(49207)).certificate.worst < 1e-12


@pytest.mark.parametrize("seed", [20332, 20567, 20771])
def test_limited_diodes_and_tables_take_few_steps(seed: int) -> None:
    """27, 27 and 40 steps, as long as load lines could end beside a curve with a kink."""
    found = circuitsim.solve(draw(seed))
    assert found.certificate.certified
    assert int(str(found.solver["newton_steps"])) <= 29
