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
from circuitsim.circuit.elements import RESISTOR
from circuitsim.newton import seen
from circuitsim.newton.kernels import newton_kernel
from circuitsim.newton.laws import law, numbered_rows

sys.path.insert(0, str(Path(__file__).parents[1] / "properties"))
from device_circuits import DEVICES, draw


def ready_for(circuit: circuitsim.Circuit) -> PreparedExpanded:
    ready = circuitsim.prepared(circuit)
    assert isinstance(ready, PreparedExpanded)
    return ready


def test_interpreted_and_compiled_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    for circuit in (mesh(6, 0.3, 0), mesh(5, 0.6, 3), draw(10044), draw(10042)):
        found = []
        for form in (newton_kernel.plain, newton_kernel.compiled):
            monkeypatch.setattr(newton_kernel, "_ready", {name: form(name) for name in ("project", "newton_once")})
            point = circuitsim.solve(circuit)
            found.append((point.voltages.tobytes(), point.currents.tobytes(), point.solver["newton_steps"]))
        assert found[0] == found[1]


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


def test_resistances_that_devices_see_are_those_of_the_dense_inverse() -> None:
    circuit = mesh(5, 0.5, 0)
    ready, found = ready_for(circuit), {}

    def remember(plan, space, places, first, second, closed, conductance, resistance):
        low = resistance.copy()
        ratio = genuine(plan, space, places, first, second, closed, conductance, resistance)
        found.update(low=low, seen=resistance.copy(), own=conductance.copy(), ratio=ratio)
        return ratio

    genuine, small = seen.seen, ready._small
    assert small is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("circuitsim.newton.steps.seen", remember)
        patch.setattr(newton_kernel, "_ready", {name: newton_kernel.plain(name) for name in ("project", "newton_once")})
        assert small._loose is False
    elementary = ready.expansion.circuit.arrays()
    column = elementary.value.copy()
    smooth = ready.smooth
    assert smooth is not None
    column[smooth.slope] = 1.0 / found["own"]
    # Nodal matrix with the voltage sources (to ground, and of the tangents) as large conductances.
    r = elementary.kind == RESISTOR
    g = np.where(r, 1.0 / np.where(r, column, 1.0), 0.0)
    g[np.array([circuit.element_index("V0"), *smooth.touch])] = 1e6
    matrix = np.zeros((elementary.n_nodes,) * 2)
    for a, b, value in zip(elementary.first, elementary.second, g):
        matrix[a, a] += value
        matrix[b, b] += value
        matrix[a, b] -= value
        matrix[b, a] -= value
    inverse = np.zeros_like(matrix)
    inverse[1:, 1:] = np.linalg.inv(matrix[1:, 1:])
    a, b = elementary.first[smooth.rest], elementary.second[smooth.rest]
    total = inverse[a, a] + inverse[b, b] - 2.0 * inverse[a, b]
    expected = 1.0 / (1.0 / total - found["own"])
    np.testing.assert_allclose(found["seen"], expected, rtol=1e-5)
    assert found["ratio"] == pytest.approx(max(1.0, (found["seen"] / found["low"]).max()), rel=1e-12)


def test_the_law_by_number_is_that_of_the_model() -> None:
    rng = np.random.default_rng(0)
    devices = [make(rng) for make in DEVICES for _ in range(5)]
    smooth = [device for device in devices if hasattr(type(device), "junction")]
    rows = numbered_rows(smooth)
    for device, row in zip(smooth, rows):
        for volts in (-3.0, -0.1, 0.0, 0.3, 0.9, 4.0):
            assert law(row, volts) == type(device).junction(device.row(), volts)


def test_threads_and_blocks_of_batches_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("circuitsim.analysis.batch.SHARE", 1)
    circuit = mesh(5, 0.5, 1)
    solver = circuitsim.batched(circuit, ["V0"], [("n0_0", "n2_2")])
    volts = np.random.default_rng(0).uniform(-20.0, 20.0, (70, 1))
    one, two = (solver.solve(volts, threads=threads) for threads in (1, 2))
    assert one.certified.all()
    assert one.voltages.tobytes() == two.voltages.tobytes() and one.currents.tobytes() == two.currents.tobytes()
    for s in (0, 17, 69):
        point = circuitsim.solve(circuit.with_values({"V0": float(volts[s, 0])}))
        np.testing.assert_allclose(one.voltages[s], point.voltages, rtol=0.0, atol=1e-12 * np.abs(volts).max())


def test_derivatives_of_batches_against_differences() -> None:
    circuit = mesh(5, 0.5, 1)
    solver = circuitsim.batched(circuit, ["V0"], [("n0_0", "n2_2")])
    volts, step = np.random.default_rng(1).uniform(-8.0, 8.0, (20, 1)), 1e-5
    _, currents = solver.adjoint(solver.solve(volts), np.ones((20, 1)))
    high, low = solver.solve(volts + step).output, solver.solve(volts - step).output
    slope = (high - low)[:, 0] / (2.0 * step)
    np.testing.assert_allclose(-currents[:, circuit.element_index("V0")], slope, rtol=1e-6)


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
