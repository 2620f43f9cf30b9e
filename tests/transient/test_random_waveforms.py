"""Random circuits: every run certified, and equal to the implicit Euler method, whose error halves with its step."""

from __future__ import annotations

import numpy as np
import pytest
from random_waveforms import draw, draw_cascade, draw_switched

import circuitsim
from circuitsim import Circuit
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.time_domain import Sine, Waveform, transient

STOP = 2.0


# 170: a diode that has just turned off is given back with three others on, and carries 3.9 A then.
# 152039: the voltage of a diode is a sum of terms that cancel; their rounding was its sign.
# 825: the rounding of a node's currents has no scale of its own, as a part carries none beside two sources.
# 5043: a state that is the rounding of decaying parts has their errors; a diode took its sign.
@pytest.mark.parametrize("seed", [*range(60), 170, 825, 5043, 152039])
def test_certified(seed: int) -> None:
    circuit, waves, initial = draw(seed)
    found = transient(circuit, STOP, waves, initial, points=101)
    assert found.certificate.certified
    assert found.energies.imbalance < 1e-9
    assert found.energies.lost >= -1e-12


# 427: a diode's voltage that dies out at 1e-11 of the others is not zero at the end of a window.
# 143702: as 152039 above. 171430: of two diodes that turn on at one time one is 6e-17 V above zero then.
@pytest.mark.parametrize("seed", [*range(20), 427, 143702, 161127, 171430, 195484])
def test_switches_of_times_and_states(seed: int) -> None:
    circuit, waves, initial, switches = draw_switched(seed)
    found = transient(circuit, STOP, waves, initial, points=101, switches=switches)
    assert found.certificate.certified
    assert found.energies.imbalance < 1e-9
    assert found.energies.lost >= -1e-12


@pytest.mark.parametrize("seed", [*range(24), 170])
def test_against_the_implicit_euler_method(seed: int) -> None:
    """Each step an operating point of a circuit in which capacitors and inductors are resistors with sources."""
    circuit, waves, initial = draw(seed)
    exact = transient(circuit, STOP, waves, initial, points=3)
    states = [name for name in circuit.names if name[0] in "CL"]
    voltage, current = exact.at([STOP])
    at = {name: float((voltage if name[0] == "C" else current)[0, circuit.element_index(name)]) for name in states}
    off = []
    for steps in (100, 200):
        found = implicit_euler(circuit, waves, initial, steps)
        off.append(max(abs(found[name] - at[name]) for name in states))
    size = max(1.0, *(abs(x) for x in at.values()))
    assert off[1] < 0.1 * size
    assert off[1] < 0.75 * off[0] or off[1] < 0.005 * size


# Those ended in "no set of conducting diodes": rounding of zero currents gave diodes their signs.
@pytest.mark.parametrize("seed", [101, 107, 138, 332, 334, 360])
def test_cascades_from_any_charge(seed: int) -> None:
    """The implicit method takes operating points of each step; its error is that of its default tolerance."""
    circuit, initial = draw_cascade(seed)
    wave = {"V1": Sine(0.0, 10.0, 50.0)}
    exact, implicit = (transient(circuit, 0.04, wave, initial, points=41, method=m) for m in ("exact", "implicit"))
    assert exact.certificate.certified
    assert exact.energies.imbalance < 1e-9
    for node in circuit.node_names[1:]:
        assert np.abs(exact.voltage(node) - implicit.voltage(node))[1:].max() < 2e-3


def implicit_euler(
    circuit: Circuit, waves: dict[str, Waveform], initial: dict[str, float], steps: int
) -> dict[str, float]:
    """Capacitor voltages and inductor currents after ``steps`` steps, by operating points alone."""
    h, arrays = STOP / steps, circuit.arrays()
    image = Circuit()
    kept: list[tuple[str, float]] = []
    for k, name in enumerate(circuit.names):
        a, b = circuit.node_names[arrays.first[k]], circuit.node_names[arrays.second[k]]
        if name[0] == "C":
            # C (v − v⁻) / h flows.
            image.resistor(name, a, b, h / arrays.value[k])
            image.current_source("I" + name, b, a, 0.0)
            kept.append((name, arrays.value[k] / h))
        elif name[0] == "L":
            # L (i − i⁻) / h is the voltage.
            image.resistor(name, a, "in" + name, arrays.value[k] / h)
            image.voltage_source("V" + name, "in" + name, b, 0.0)
            kept.append((name, arrays.value[k] / h))
        else:
            image.add(name[0], name, a, b, None if name[0] == "D" else arrays.value[k])
    prepared = circuitsim.prepared(image)
    x = {name: initial.get(name, 0.0) for name, _ in kept}
    for step in range(1, steps + 1):
        values = {name: wave.value(step * h) for name, wave in waves.items()}
        for name, g in kept:
            values[("I" if name[0] == "C" else "V") + name] = g * x[name] if name[0] == "C" else -g * x[name]
        point = prepared.solve(values)
        for name, _ in kept:
            k = image.element_index(name)
            x[name] = point.voltage(*ends(image, k)) if name[0] == "C" else float(point.currents[k])
    assert np.isfinite(list(x.values())).all()
    return x


def ends(circuit: Circuit, k: int) -> tuple[str, str]:
    """Node names of an element."""
    arrays = circuit.arrays()
    return circuit.node_names[arrays.first[k]], circuit.node_names[arrays.second[k]]


def test_a_coil_without_current_beside_a_source() -> None:
    """The rounding of a current that is zero has no scale of its own."""
    circuit, waves, initial = draw(1530)
    assert transient(circuit, 4.0, waves, initial, points=101).certificate.certified


def test_parts_without_a_common_resistor_stay_apart() -> None:
    """A capacitor that no source reaches had a current of 1e-17 of another one's, and a diode turned on and off at
    its sign, millions of times."""
    circuit, waves, initial = draw(8750)
    found = transient(circuit, 2.0, waves, initial, points=101)
    assert found.certificate.certified and len(found.events) == 3


@pytest.mark.parametrize("seed", [221, 297])
def test_implicit_events_as_exact(seed: int) -> None:
    """Diodes in parallel, whose currents are not unique, hide a switch's event; states that jump to zero at once."""
    circuit, waves, initial, switches = draw_switched(seed)
    accuracy = 1e-4
    found, exact = (
        transient(circuit, 2.0, waves, initial, 21, switches=switches, method=method, accuracy=accuracy)
        for method in ("implicit", "exact")
    )
    sharp = [event for event in exact.events if any(name[1] == "S" for name in event.changed)]
    ours = [event for event in found.events if any(name[1] == "S" for name in event.changed)]
    assert [event.time for event in ours] == pytest.approx([event.time for event in sharp], abs=2e-5)
    assert max([event.error for event in ours], default=0.0) <= 1e-6
    own = [circuit.element_index(name) for name in circuit.names if name[0] == "C"]
    ours_v, exact_v = (run.at(run.times)[0][:, own] for run in (found, exact))
    assert np.abs(ours_v - exact_v).max() <= 10.0 * accuracy  # V, of about 1 V


@pytest.mark.parametrize("accuracy", [1e-3, 1e-4])
def test_a_transient_that_a_stage_overshoots(accuracy: float) -> None:
    """A capacitor discharges through a switch; in the stages of too long a step it would turn a diode on, which hides
    the error."""
    circuit, waves, initial, switches = draw_switched(40013)
    found, exact = (
        transient(circuit, 2.0, waves, initial, 41, switches=switches, method=method, accuracy=accuracy)
        for method in ("implicit", "exact")
    )
    ours, theirs = (run.at(run.times)[0][:, circuit.element_index("C0")] for run in (found, exact))
    assert np.abs(ours - theirs).max() <= 2.0 * accuracy * np.abs(theirs).max()


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    circuit, waves, initial = draw(7)
    with pytest.raises(UsageError, match=r"output times of .* at most"), monkeypatch.context() as small:
        small.setattr("circuitsim.time_domain.run.LARGEST_WAVES", 100_000)
        transient(circuit, STOP, waves, initial, points=1001)
    monkeypatch.setattr("circuitsim.time_domain.library.LARGEST", 10_000)
    ladder, lower, upper = Circuit("voltage multiplier"), "0", "s"
    ladder.voltage_source("V1", "s", "0", 0.0)
    for k in range(6):
        ladder.add("C", f"CA{k}", upper, f"u{k}", 1e-6)
        ladder.diode(f"DA{k}", lower, f"u{k}")
        ladder.diode(f"DB{k}", f"u{k}", f"l{k}")
        ladder.add("C", f"CB{k}", lower, f"l{k}", 1e-6)
        lower, upper = f"l{k}", f"u{k}"
    ladder.resistor("R1", lower, "0", 1e6)
    with pytest.raises(ConvergenceError, match=r"sets of conducting diodes .* --method implicit"):
        transient(ladder, 0.1, {"V1": Sine(0.0, 10.0, 50.0)}, {})
    monkeypatch.setattr("circuitsim.time_domain.library.LARGEST", 2_000_000_000)
    monkeypatch.setattr("circuitsim.time_domain.course.MEMORY", 100_000)
    with pytest.raises(ConvergenceError, match=r"events do not fit into memory"):
        transient(ladder, 10.0, {"V1": Sine(0.0, 10.0, 50.0)}, {}, points=11)
