"""Kernels of waveforms, interpreted and compiled: the same bits, and which of them a run gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from random_waveforms import draw, draw_coupled, draw_switched

from circuitsim import Circuit
from circuitsim.kernel_family import KernelFamily
from circuitsim.netlist import load
from circuitsim.time_domain import Integral, Sine, TransientResult, course, quotients, transient, waveform_gradient
from circuitsim.time_domain.kernels import KERNELS, time_kernel

NETLISTS = Path(__file__).parents[2] / "netlists"


def bits(result: TransientResult) -> list[bytes]:
    """All that a result is made of."""
    numbers = [*result.at(result.times), np.array([*result.energies])]
    numbers += [np.array([event.time, event.error, event.energy_lost]) for event in result.events]
    return [one.tobytes() for one in numbers] + [" ".join(event.changed).encode() for event in result.events]


def both(patch: pytest.MonkeyPatch, find: Callable[[], list[bytes]]) -> tuple[list[bytes], ...]:
    """What is found with interpreted kernels, then with compiled ones."""
    found = []
    for form in (time_kernel.plain, time_kernel.compiled):
        patch.setattr(time_kernel, "_ready", {name: form(name) for name in KERNELS})
        found.append(find())
    return tuple(found)


@pytest.mark.parametrize("seed", range(24))
def test_random_circuits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    circuit, waves, initial, *switches = draw(seed) if seed % 2 else draw_switched(seed)
    given = switches[0] if switches else {}
    plain, compiled = both(
        monkeypatch, lambda: bits(transient(circuit, 2.0, waves, initial, points=51, switches=given))
    )
    assert len(plain) >= 3
    assert plain == compiled


@pytest.mark.parametrize("seed", range(8))
def test_ideally_coupled_inductors(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    circuit, waves, initial, switches, couplings = draw_coupled(seed)
    plain, compiled = both(
        monkeypatch,
        lambda: bits(transient(circuit, 1.0, waves, initial, points=51, switches=switches, couplings=couplings)),
    )
    assert len(plain) >= 3
    assert plain == compiled


@pytest.mark.parametrize(
    "name",
    [
        "rectifier-bridge-smoothed",
        "voltage-doubler",
        "buck-converter",
        "rectifier-six-pulse-smoothed",
        "relay-flyback",
    ],
)
def test_decks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, compiled = both(monkeypatch, lambda: bits(transient(load(NETLISTS / f"{name}.cir"))))
    assert plain == compiled


def cascade(stages: int) -> Circuit:
    """A source behind 10 Ω, stages of two capacitors and two diodes with 10 mΩ each, 1 MΩ."""
    circuit, lower, upper = Circuit("cascade"), "0", "s"
    circuit.voltage_source("V1", "a", "0", 0.0)
    circuit.resistor("Rs", "a", "s", 10.0)
    for k in range(stages):
        circuit.add("C", f"CA{k}", upper, f"u{k}", 1e-6)
        circuit.add("C", f"CB{k}", lower, f"l{k}", 1e-6)
        for name, first, second in (("A", lower, f"u{k}"), ("B", f"u{k}", f"l{k}")):
            circuit.diode(f"D{name}{k}", first, f"{name}{k}")
            circuit.resistor(f"R{name}{k}", f"{name}{k}", second, 1e-2)
        lower, upper = f"l{k}", f"u{k}"
    circuit.resistor("RL", lower, "0", 1e6)
    return circuit


def test_a_multiplier_and_its_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Derivatives of modes are complex numbers, which numba alone divides otherwise than numpy."""
    gradients = []

    def find() -> list[bytes]:
        result = transient(cascade(2), 0.1, {"V1": Sine(0.0, 10.0, 50.0)}, {})
        gradient = waveform_gradient(result, [Integral("v(l1)", 0.0, 0.1)], ["CA0", "RA0", "RL"])
        gradients.append([gradient.gradient[name] for name in ("CA0", "RA0", "RL")])
        return bits(result)

    plain, compiled = both(monkeypatch, find)
    assert len(plain) > 30
    assert plain == compiled
    assert gradients[0] == gradients[1]


def test_the_work_that_counts_grows_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """So much a segment, in however many calls: a run that lasts twice as long has counted twice as much."""
    monkeypatch.setattr(time_kernel, "_ready", {})
    monkeypatch.setattr(time_kernel, "_compiled", {})
    monkeypatch.setattr(time_kernel, "_patience", 1 << 60)
    counted = []
    for periods in (20, 60):
        monkeypatch.setattr(time_kernel, "_work", Counter())
        result = transient(cascade(1), periods / 50.0, {"V1": Sine(0.0, 10.0, 50.0)}, {}, points=2)
        segments = len(result._segments.start)
        counted.append((segments, time_kernel._work["advance_decays"]))
    (few, less), (many, more) = counted
    assert many > 2.5 * few
    assert less * many == more * few > 0


def test_long_runs_are_seen_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is expected of a run is what it comes to, long before its end: compilation need not wait for the work."""
    monkeypatch.setattr(time_kernel, "_ready", {})
    monkeypatch.setattr(time_kernel, "_compiled", {})
    monkeypatch.setattr(time_kernel, "_patience", 1 << 60)
    monkeypatch.setattr(course, "PATIENCE", 20_000)
    monkeypatch.setattr(course, "FEW", 16)
    monkeypatch.setattr(course, "CHUNK", 16)
    expected = []
    ask = KernelFamily.__call__

    def asked(self: KernelFamily, name: str, size: int, ahead: float = 0.0) -> Callable[..., Any]:
        if ahead:
            expected.append(self._work[name] + ahead)
        return ask(self, name, size, ahead)

    monkeypatch.setattr(time_kernel, "_work", Counter())
    monkeypatch.setattr(KernelFamily, "__call__", asked)
    transient(cascade(1), 2.0, {"V1": Sine(0.0, 10.0, 50.0)}, {}, points=2)
    assert len(expected) > 5
    assert np.allclose(expected, time_kernel._work["advance_decays"], rtol=0.5)
    assert np.isclose(np.median(expected), time_kernel._work["advance_decays"], rtol=0.2)
    family = KernelFamily(("double",), (SimpleNamespace(double=lambda x: 2 * x),), lambda: None, tuple, 10, 100)
    monkeypatch.setattr(KernelFamily, "_at_hand", lambda self, name: False)
    monkeypatch.setattr(KernelFamily, "compiled", lambda self, name: abs)
    assert ask(family, "double", 20, 80) is not abs
    assert ask(family, "double", 0, 81) is abs


def test_quotients_of_complex_numbers() -> None:
    rng = np.random.default_rng(5)
    size = 10.0 ** rng.uniform(-30.0, 30.0, (4, 400))
    a, b = (one + 1j * other for one, other in (size * rng.choice([-1.0, 1.0], size.shape)).reshape(2, 2, 400))
    b[:20] = b[:20].real
    b[20:40] = 1j * b[20:40].imag
    assert [quotients.smith(x, y) for x, y in zip(a, b)] == (a / b).tolist()
