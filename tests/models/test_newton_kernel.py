"""Newton's method in one kernel: the same bits interpreted and compiled, what devices see, certificates, batches."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import circuitsim
from circuitsim.analysis.expanded import PreparedExpanded
from circuitsim.analysis.smooth_small import SmallNewton, SmoothPoint
from circuitsim.bench.families import junctions as mesh
from circuitsim.certificate import certify

sys.path.insert(0, str(Path(__file__).parents[1] / "properties"))
from device_circuits import draw


def ready_for(circuit: circuitsim.Circuit) -> PreparedExpanded:
    ready = circuitsim.prepared(circuit)
    assert isinstance(ready, PreparedExpanded)
    return ready


def test_the_kernel_agrees_with_the_steps_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other code for the steps and for the certificate: `circuitsim.analysis.newton` on certified operating points."""
    for circuit in (mesh(8, 0.3, 1), mesh(9, 0.6, 4)):
        point = circuitsim.solve(circuit)
        assert isinstance(point, SmoothPoint) and point.certificate.worst <= 1e-9
        with monkeypatch.context() as patch:
            patch.setattr(SmallNewton, "solve", lambda *_: None)
            other = circuitsim.solve(circuit)
        assert not isinstance(other, SmoothPoint)
        scale = np.abs(other.voltages).max()
        np.testing.assert_allclose(point.voltages, other.voltages, rtol=0.0, atol=1e-13 * scale)
        np.testing.assert_allclose(point.currents, other.currents, rtol=1e-9, atol=1e-13 * np.abs(other.currents).max())
        assert [point.region(k) for k in circuit.devices] == [other.region(k) for k in circuit.devices]


def test_the_certificate_holds_with_devices_as_sources() -> None:
    """What the kernel says, said again by `circuitsim.certificate` on the elementary circuit that it fills in."""
    point = circuitsim.solve(mesh(8, 0.3, 2))
    elementary = point.elementary
    assert elementary is not None
    arrays = elementary.circuit.arrays()
    made = certify(arrays, arrays.value, elementary.voltages, elementary.currents, elementary.drops)
    assert made.certified
    for k, device in point.circuit.devices.items():
        assert device.law(float(point.drops[k]))[0] == pytest.approx(point.currents[k], rel=1e-9, abs=1e-18)


@pytest.mark.parametrize("seed", [10361, 10666, 11226, 10726, 10310])
def test_circuits_that_once_took_more_steps(seed: int) -> None:
    """26 to 50 steps before load lines had the resistances that devices see."""
    assert int(str(circuitsim.solve(draw(seed)).solver["newton_steps"])) <= 30


@pytest.mark.parametrize("seed", [47279, 48938, 40151, 42525])
def test_circuits_whose_load_lines_led_in_circles(seed: int) -> None:
    """31 to 42 steps before load lines were turned towards the tangents."""
    point = circuitsim.solve(draw(seed))
    assert point.certificate.certified
    assert int(str(point.solver["newton_steps"])) <= 27


def test_leakage_beside_large_currents_is_proven_by_the_kernel() -> None:
    """A blocking junction separates the part of its leakage from that of 10 A: rounding there does not matter here."""
    deck = "test\nV1 in 0 -0.57\nR1 in a 1k\nD1 a b D0\nRb b 0 10m\nIb 0 b 10\nRc b 0 33m\n"
    circuit = circuitsim.loads(deck + ".model D0 D(IS=1e-14 N=1.05)\n")
    ready = ready_for(circuit)
    point = ready.solve_next(circuit.arrays().value, ready.solve())
    assert isinstance(point, SmoothPoint)
    b = 10.0 / (1.0 / 10e-3 + 1.0 / 33e-3)
    (device,) = circuit.devices.values()
    leakage = device.law(-0.57 - b)[0]  # what it drops along R1, 1e-11 V, changes it by 1e-26 A
    assert point.current("R1") == pytest.approx(leakage, rel=1e-9) and -1e-14 <= leakage < -0.9e-14
    assert point["b"] == pytest.approx(b, rel=1e-12)
