"""Ideally coupled inductors by the exact method: normal trees with ideal transformers, jumps, converters, gradients."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import cvxpy
import numpy as np
import pytest
from random_waveforms import draw_coupled, draw_switched
from test_converters import CONVERTERS
from test_windings import IDEAL

from circuitsim import Circuit
from circuitsim.circuit.couplings import mutual_inductances
from circuitsim.errors import InfeasibleError, UnboundedError, UsageError
from circuitsim.netlist import loads
from circuitsim.time_domain import (
    Integral,
    PiecewiseLinear,
    Pulse,
    Sine,
    Switch,
    TransientResult,
    Value,
    steady_state,
    transient,
    waveform_gradient,
)
from circuitsim.time_domain.jumps import jump
from circuitsim.time_domain.modes import Role
from circuitsim.time_domain.problem import Problem

STOP = 2.0
DIODES = {"ideal": "D(VFWD=0)", "1 TOhm": "D(VFWD=0.5 RON=10m ROFF=1t)"}


def problem_of(seed: int) -> Problem:
    circuit, waves, _, switches, couplings = draw_coupled(seed)
    return Problem(circuit, waves, switches, couplings)


def voltages(problem: Problem) -> np.ndarray:
    """Branch voltages (m, k) that meet Kirchhoff's law and the laws of the windings, from node potentials."""
    parts = problem.parts
    m = parts.role.size
    incidence = np.zeros((m, parts.n_nodes))
    incidence[np.arange(m), parts.first] += 1.0
    incidence[np.arange(m), parts.second] -= 1.0
    missed = incidence[parts.role == Role.WINDING] - parts.turns @ incidence
    _, sizes, right = np.linalg.svd(missed)
    return incidence @ right[(sizes > 1e-9).sum() :].T


@pytest.mark.parametrize("seed", range(24))
def test_random_circuits(seed: int) -> None:
    """Certified, and all windings meet ∫ v dt = M i, with integrals that come from elsewhere."""
    circuit, waves, initial, switches, couplings = draw_coupled(seed)
    found = transient(circuit, STOP, waves, initial, points=41, switches=switches, couplings=couplings)
    assert found.certificate.certified
    assert found.energies.imbalance < 1e-9 and found.energies.lost >= -1e-9 * found.energies.turned_over
    arrays = circuit.arrays()
    coils = [k for k, name in enumerate(circuit.names) if name[0] in "LW"]
    henry = np.array([arrays.value[k] if k in coils else 0.0 for k in range(len(circuit))])
    mutual = mutual_inductances(circuit, henry, couplings)
    assert mutual is not None
    flux = (mutual + np.diag(henry))[coils]
    ends = [(circuit.node_names[arrays.first[k]], circuit.node_names[arrays.second[k]]) for k in coils]
    cuts = [0.0, *(event.time for event in found.events if event.energy_lost != 0.0), STOP]
    for begin, end in itertools.pairwise(cuts):
        times = begin + 1e-9, end - 1e-9
        if times[0] >= times[1]:
            continue
        current = found.at(times)[1]
        pushed = waveform_gradient(found, [Integral(f"v({a},{b})", *times) for a, b in ends], []).values
        moved = flux @ (current[1] - current[0])
        size = max(np.abs(pushed).max(), np.abs(flux).max() * np.abs(current).max())
        assert np.abs(pushed - moved).max() <= 1e-11 * size


@pytest.mark.parametrize("seed", range(30))
def test_jumps_are_the_quadratic_program_of_node_potentials(seed: int) -> None:
    """Capacitors from any voltages, inductors from any currents, sources at any values, against an interior point."""
    random = np.random.default_rng(seed)
    problem = problem_of(seed) if seed % 2 else Problem(*draw_switched(seed)[:2], {}, {})
    x, w = random.normal(size=problem.storing.size), problem.states(0.0)[0]
    w[:-1] = random.normal(size=w.size - 1)
    parts, sources = problem.parts, np.zeros(problem.parts.role.size)
    sources[problem.sources] = problem.rows @ w
    capacitors = parts.role[problem.storing] == Role.CAPACITOR
    space = voltages(problem)
    u = cvxpy.Variable(space.shape[1])
    v = space @ u
    own = problem.storing[capacitors]
    energy = cvxpy.sum_squares(cvxpy.multiply(np.sqrt(parts.value[own]), v[own] - x[capacitors]))
    of_sources = np.flatnonzero(parts.role == Role.VOLTAGE)
    laws = [v[problem.diodes] <= 0.0, v[of_sources] == sources[of_sources]]
    least = cvxpy.Problem(cvxpy.Minimize(0.5 * energy), laws)
    least.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    found, delivered, _ = jump(problem, x, w, "0 s")
    assert found[capacitors] == pytest.approx(v.value[own], abs=1e-6)
    lost = delivered + problem.stored(x) - problem.stored(found)
    assert lost >= -1e-12 * (problem.stored(x) + 1.0)
    # Currents: whatever flows through elements that are neither sources nor diodes nor inductors takes no flux.
    through = cvxpy.Variable(parts.role.size)
    stored = problem.storing[~capacitors]
    gap = through[stored] - x[~capacitors]
    k = np.diag(parts.value[stored])
    if parts.coupling is not None:
        k = k + parts.coupling[np.ix_(stored, stored)]
    if stored.size:
        of_sources = np.flatnonzero(parts.role == Role.CURRENT)
        elements = parts.role != Role.WINDING
        laws = [
            space[elements].T @ through[elements] == 0.0,
            through[problem.diodes] >= 0.0,
            through[of_sources] == sources[of_sources],
        ]
        least = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.quad_form(gap, cvxpy.psd_wrap(k))), laws)
        least.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
        assert found[~capacitors] == pytest.approx(through.value[stored], abs=1e-6)


def converter(name: str, diode: str, stop: str = "200u") -> str:
    return f"""{name}
{CONVERTERS[name].format(k=1)}
Vg g 0 PULSE(0 5 0 10n 10n 4u 10u)
Vh h 0 PULSE(0 5 5u 10n 10n 4u 10u)
.model SW SW(VT=2.5 VH=0.5 RON=10m ROFF=1meg)
.model DM {DIODES[diode]}
.tran 1u {stop} uic
.end
"""


@pytest.mark.parametrize("diode", DIODES)
@pytest.mark.parametrize("name", CONVERTERS)
def test_converters(name: str, diode: str) -> None:
    found = transient(loads(converter(name, diode)), method="exact")
    assert found.certificate.certified and found.energies.imbalance < 1e-9
    assert len(found.events) >= 40


def test_a_flyback_converter_hands_its_flux_on() -> None:
    """Ampere turns go on when the switch opens, without a loss: there is no stray inductance."""
    text = converter("flyback", "ideal").replace("Cc c 0 100n\nRc c in 2k", "Rc c in 2k")
    found = transient(loads(text))
    opened = [event for event in found.events if "-S1" in event.changed]
    assert opened and all(abs(event.energy_lost) < 1e-15 for event in opened)
    for event in opened[:5]:
        before, after = (found.at([event.time + shift])[1][0] for shift in (-1e-13, 1e-13))
        k1, k2 = (found.circuit.element_index(name) for name in ("L1", "L2"))
        turns = before[k1] + 0.5 * before[k2], after[k1] + 0.5 * after[k2]
        assert turns[1] == pytest.approx(turns[0], abs=1e-6)


def flyback() -> tuple[Circuit, dict[str, Pulse], dict[str, Switch]]:
    circuit = Circuit("flyback converter")
    circuit.voltage_source("V1", "in", "0", 24.0)
    circuit.voltage_source("Vg", "g", "0", 0.0)
    circuit.add("L", "L1", "in", "d", 1e-4)
    circuit.add("L", "L2", "0", "s", 2.5e-5)
    circuit.add("L", "L3", "t", "0", 4e-4)
    circuit.resistor("S1", "d", "0", 1e6)
    circuit.diode("D1", "s", "out")
    circuit.add("C", "C1", "out", "0", 1e-5)
    circuit.resistor("R1", "out", "0", 10.0)
    circuit.resistor("R3", "t", "0", 300.0)
    return circuit, {"Vg": Pulse(0, 5, 0, 1e-8, 1e-8, 4e-6, 1e-5)}, {"S1": Switch(("g", "0"), 2.5, 0.5, 0.01, 1e6)}


def measured(values: dict[str, float], stop: float) -> TransientResult:
    circuit, waves, switches = flyback()
    own = {name: value for name, value in values.items() if name in circuit}
    return transient(
        circuit.with_values(own), stop, waves, {"L2": values["L2.ic"]}, switches=switches, couplings=IDEAL, points=11
    )


def test_a_winding_turned_around() -> None:
    """The flyback deck becomes a forward converter, whose magnetising current is interrupted into 10 megohms."""
    text = (Path(__file__).parents[2] / "netlists/flyback-converter.cir").read_text().replace("L1 L2 1", "L1 L2 -1")
    result = transient(loads(text))
    assert result.energies.imbalance < 1e-11


def test_gradients_through_events() -> None:
    values, stop = {"R1": 10.0, "R3": 300.0, "C1": 1e-5, "V1": 24.0, "L2.ic": 0.5}, 2e-4
    wanted = [Value("v(out)", 1.83e-4), Integral("v(out)", 1e-4, stop), Value("i(L2)", 1.57e-4)]
    run = measured(values, stop)
    assert len(run.events) >= 40
    for functional in wanted:
        found = waveform_gradient(run, [functional], list(values))
        for name, value in values.items():
            around = []
            for share in (1e-4, -1e-4):
                other = measured({**values, name: value * (1.0 + share)}, stop)
                around.append(float(waveform_gradient(other, [functional], []).values[0]))
            difference = (around[0] - around[1]) / 2e-4
            size = max(abs(value * own) for own in found.gradient.values())
            assert value * found.gradient[name] == pytest.approx(difference, abs=1e-6 * max(abs(difference), size))


def rectifier(values: dict[str, float], held: dict[str, float]) -> TransientResult:
    """A run that begins at an operating point with currents in two of three windings."""
    circuit = Circuit("rectifier")
    circuit.voltage_source("V1", "in", "0", 0.0)
    circuit.resistor("R1", "in", "a", values["R1"])
    circuit.add("L", "L1", "a", "0", 1e-2)
    circuit.add("L", "L2", "b", "s", 4e-2)
    circuit.resistor("R2", "b", "0", values["R2"])
    circuit.resistor("R4", "s", "in", 50.0)
    circuit.add("L", "L3", "t", "0", 1e-2)
    circuit.diode("D1", "t", "u")
    circuit.add("C", "C1", "u", "0", values["C1"])
    circuit.resistor("R3", "u", "0", 500.0)
    signs = {("L1", "L2"): 1.0, ("L1", "L3"): -1.0, ("L2", "L3"): -1.0}
    own = {name: values[f"{name}.ic"] for name in held}
    return transient(circuit, 5e-3, {"V1": Sine(2.0, 5.0, 1e3)}, couplings=signs, points=5, held=own)


@pytest.mark.parametrize("held", [{}, {"L2": 0.02}])
def test_gradients_from_an_operating_point(held: dict[str, float]) -> None:
    values = {"R1": 10.0, "R2": 100.0, "C1": 1e-6} | {f"{name}.ic": level for name, level in held.items()}
    wanted, run = Value("v(u)", 4.3e-3), rectifier(values, held)
    assert run.current("L1", times=[0.0])[0] == pytest.approx(0.2) and len(run.events) >= 10
    found = waveform_gradient(run, [wanted], list(values))
    for name, value in values.items():
        around = [
            float(waveform_gradient(rectifier({**values, name: value * (1.0 + share)}, held), [wanted], []).values[0])
            for share in (1e-4, -1e-4)
        ]
        assert value * found.gradient[name] == pytest.approx((around[0] - around[1]) / 2e-4, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("name", ["L1", "L2", "k(L1,L2)"])
def test_gradients_by_turns_are_of_the_implicit_method(name: str) -> None:
    run = measured({"L2.ic": 0.0}, 2e-5)
    with pytest.raises(UsageError, match="ideally coupled"):
        waveform_gradient(run, [Value("v(out)", 1e-5)], [name])


def test_the_periodic_steady_state() -> None:
    circuit, waves, switches = flyback()
    steady = steady_state(circuit, waves, switches=switches, couplings=IDEAL)
    late = transient(circuit, 5e-3, waves, switches=switches, couplings=IDEAL, points=3)
    times = np.linspace(0.0, 9.9e-6, 23)
    assert steady.voltage("out", times=times) == pytest.approx(late.voltage("out", times=4.99e-3 + times), abs=1e-6)


def test_capacitors_of_one_winding_each_are_one() -> None:
    """Two capacitors joined by an ideal transformer of 1 : 2 share their charge at once: n₁ v₁ = v₂."""
    circuit = Circuit()
    circuit.add("L", "L1", "a", "0", 1e-3)
    circuit.add("L", "L2", "b", "0", 4e-3)
    circuit.add("C", "C1", "a", "0", 1e-6)
    circuit.add("C", "C2", "b", "0", 1e-6)
    found = transient(circuit, 1e-4, initial={"C1": 5.0}, couplings={("L1", "L2"): 1.0}, points=101)
    volts = 5.0 / 5.0  # 1 µF beside 2² · 1 µF
    omega = 1.0 / math.sqrt(1e-3 * 5e-6)
    assert found.voltage("a") == pytest.approx(volts * np.cos(omega * found.times), abs=1e-12)
    assert found.voltage("b") == pytest.approx(2.0 * volts * np.cos(omega * found.times), abs=1e-12)
    assert found.energies.lost == pytest.approx(12.5e-6 * 0.8, rel=1e-12)


def test_a_jump_that_sources_and_diodes_contradict() -> None:
    """1 A leaves a node that only a blocking diode and, behind that, an inductor of 3 A lead to; two sources charge a
    capacitor each to voltages that a diode between them forbids."""
    circuit = Circuit()
    circuit.current_source("I1", "a", "0", 1.0)
    circuit.diode("D1", "a", "b")
    circuit.add("L", "L1", "b", "0", 1e-3)
    with pytest.raises(UnboundedError, match="after 0 s I1, D1 drive a net current that has no path") as caught:
        transient(circuit, 1e-2, initial={"L1": 3.0})
    assert caught.value.partial_result is None
    circuit = Circuit()
    circuit.voltage_source("V1", "a", "0", 2.0)
    circuit.voltage_source("V2", "b", "0", 1.0)
    circuit.diode("D1", "a", "b")
    circuit.diode("D2", "b", "a")
    circuit.add("C", "C1", "a", "0", 1e-6)
    problem = Problem(circuit, {}, {}, {})
    with pytest.raises(InfeasibleError, match="after 1 s V1, V2, D1 form a loop whose voltages do not add up"):
        jump(problem, np.zeros(1), problem.states(0.0)[0], "1 s")


def test_sources_that_contradict_each_other_through_windings() -> None:
    circuit = Circuit()
    circuit.voltage_source("V1", "a", "0", 1.0)
    circuit.add("L", "L1", "a", "0", 1e-3)
    circuit.add("L", "L2", "b", "0", 1e-3)
    circuit.voltage_source("V2", "c", "0", 0.0)
    circuit.diode("D1", "b", "c")
    waves = {"V2": PiecewiseLinear([0.0, 1e-3], [2.0, 0.0])}
    with pytest.raises(InfeasibleError) as caught:
        transient(circuit, 1e-3, waves, {}, couplings={("L1", "L2"): 1.0})
    assert "0.0005 s" in str(caught.value)
