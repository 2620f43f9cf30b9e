"""Interpreted and compiled kernels agree to 1e-12 of what they find: operating points, batches, stages, waveforms."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from corpus import FAMILIES

import circuitsim
from circuitsim import kernels
from circuitsim.bench.families import chain, junctions, make
from circuitsim.time_domain import Integral, transient, waveform_gradient

ROOT = Path(__file__).parents[1]

Numbers = list[np.ndarray]


def point(circuit: circuitsim.Circuit) -> Numbers:
    """A first solve, then one with other values from its end."""
    ready = circuitsim.prepared(circuit)
    found = [ready.solve()]
    kind, _, _, value, _ = circuit.arrays()
    found.append(ready.solve(np.where(kind == 2, 0.7 * value, value), start=found[0]))
    return [numbers for one in found for numbers in (one.voltages, one.currents)]


def batch(circuit: circuitsim.Circuit) -> Numbers:
    """Samples and responses."""
    names = [name for name in circuit.names if name[0] == "V"]
    value = np.array([circuit[name].value for name in names])
    solver = circuitsim.batched(circuit, names, [(circuit.node_names[-1], "0")])
    found = solver.solve(value * np.linspace(0.3, 1.5, 5)[:, None])
    return [found.voltages, found.currents, *solver.adjoint(found, np.ones((5, 1)))]


def deck(name: str, stop: float, method: str = "exact") -> Numbers:
    """All waveforms of a bundled deck, the times of its events, its energies."""
    run = transient(circuitsim.load(ROOT / f"netlists/{name}.cir"), stop, step=stop / 20, method=method)
    return [*run.at(run.times), np.array([event.time for event in run.events]), np.array([*run.energies])]


def drawn(seed: int) -> Numbers:
    """Those of a random circuit of switches, and of one with ideally coupled windings."""
    run = transient(circuitsim.loads(FAMILIES["exact"].deck(2 + seed)), 0.5, points=11, method="exact")
    return [*run.at(run.times), np.array([event.time for event in run.events]), np.array([*run.energies])]


def gradient() -> Numbers:
    """Derivatives of a voltage doubler's charge."""
    run = transient(circuitsim.load(ROOT / "netlists/voltage-doubler.cir"), 2e-2, step=1e-3, method="exact")
    names = [name for name in run.circuit.names if name[0] in "RC"]
    found = waveform_gradient(run, [Integral("v(out)", 0.0, run.stop)], names).gradient
    return [np.array([found[name]]) for name in names]


CASES: dict[str, Callable[[], Numbers]] = {
    **{name: lambda name=name: point(make(name, 60, 1)) for name in ("grid", "scale-free", "selectors", "bridges")},
    "erdos-renyi": lambda: point(make("erdos-renyi", 1200, 0)),
    "grid-scaled": lambda: point(make("grid-scaled", 40, 2)),
    "samples": lambda: batch(make("crossbar-1d1r", 40, 0)),
    "junctions": lambda: point(junctions(6, 0.3, 0)),
    "samples of junctions": lambda: batch(junctions(5, 0.5, 1)),
    "amplifiers": lambda: point(chain(20)),
    "buck": lambda: deck("buck-converter", 5e-5),
    "clipper": lambda: deck("clipper-1n4148", 1e-4, "implicit"),
    **{f"drawn {seed}": lambda seed=seed: drawn(seed) for seed in range(2)},
    "gradient": gradient,
}


@pytest.mark.parametrize("name", CASES)
def test_both_forms_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for form in (kernels.plain, kernels.compiled):
        monkeypatch.setattr(kernels, "_ready", SimpleNamespace(get=form))
        found.append(CASES[name]())
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=0.0, atol=1e-12 * np.abs(one).max(initial=1e-300))
