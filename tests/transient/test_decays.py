"""Modes and their decaying parts: the laws of all elements, the system they make, series against closed forms."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from random_waveforms import draw_switched

from circuitsim import Circuit
from circuitsim.time_domain import Sine, transient
from circuitsim.time_domain.decay_series import ORDER, WORK, decay, summed, to_nodes, values_at
from circuitsim.time_domain.decays import source_window
from circuitsim.time_domain.mode_kernels import Waves
from circuitsim.time_domain.mode_parts import Parting, of_capacitors
from circuitsim.time_domain.modes import Mode, Role, shared_of
from circuitsim.time_domain.part_states import at_first, first_value
from circuitsim.time_domain.problem import Problem
from circuitsim.time_domain.roots import NODES, POINTS, TO_COEFFICIENTS
from circuitsim.time_domain.windows import LENGTHS


@pytest.mark.parametrize("seed", range(60))
def test_a_mode_obeys_all_laws(seed: int) -> None:
    """Whatever diodes conduct: Kirchhoff's laws, v = R i, i = C dv/dt, v = L di/dt, diodes and sources."""
    circuit, waves, _, switches = draw_switched(seed)
    if seed % 3 == 0:
        # Current sources that only diodes carry on, voltage sources in parallel.
        circuit.current_source("Ix", "n1", "f1", 1.0)
        for k, (a, b) in enumerate((("f1", "f2"), ("f2", "0"), ("f1", "0"), ("p1", "0"))):
            circuit.diode(f"Dx{k}", a, b)
        circuit.voltage_source("Vx", "p1", "0", 1.0)
        circuit.voltage_source("Vy", "p1", "0", 1.0)
    problem = Problem(circuit, waves, switches, {} if seed % 2 else dict.fromkeys(_pairs(circuit), 0.5))
    chosen = np.random.default_rng(seed).random((4, problem.diodes.size + problem.switched.size)) < 0.5
    for conducting in chosen:
        mode, parts, w = problem.mode(conducting), problem.parts, problem.states(0.0)[0]
        if np.abs(mode.source_loops @ w).max() + np.abs(mode.source_cuts @ w).max() > 1e-12:
            continue  # sources that contradict each other through diodes
        v, i, k = mode.voltage, mode.current, mode.states.size
        incidence = np.zeros((parts.n_nodes, parts.role.size))
        np.add.at(incidence, (parts.first, np.arange(parts.role.size)), 1.0)
        np.add.at(incidence, (parts.second, np.arange(parts.role.size)), -1.0)
        size = max(1.0, np.abs(v).max(), np.abs(i).max())
        state = np.append(np.random.default_rng(seed).normal(size=k), w)
        assert np.abs(incidence @ i @ state).max() < 1e-12 * size
        potentials = np.linalg.lstsq(incidence.T, v @ state, rcond=None)[0]
        assert np.abs(incidence.T @ potentials - v @ state).max() < 1e-12 * size
        value = parts.value.copy()
        value[problem.switched] = problem.ohms(conducting[problem.diodes.size :])
        r, c, coil = (np.flatnonzero(parts.role == role) for role in (Role.RESISTOR, Role.CAPACITOR, Role.INDUCTOR))
        assert np.abs(v[r] - value[r, None] * i[r]).max() < 1e-12 * size * value[r].max()
        rate = np.abs(mode.system).max() + 1.0
        assert np.abs(i[c] - value[c, None] * (v[c] @ mode.system)).max(initial=0.0) < 1e-12 * size * rate
        flux = value[coil, None] * i[coil]
        if parts.coupling is not None:
            flux = flux + parts.coupling[np.ix_(coil, coil)] @ i[coil]
        assert np.abs(v[coil] - flux @ mode.system).max(initial=0.0) < 1e-12 * size * rate
        on = conducting[: problem.diodes.size]
        assert not v[problem.diodes[on]].any()
        assert not i[problem.diodes[~on]].any()
        given = np.where((parts.role[problem.sources] == Role.VOLTAGE)[:, None], v[problem.sources], i[problem.sources])
        assert (given == np.pad(problem.rows, ((0, 0), (k, 0)))).all()


def _pairs(circuit: Circuit) -> list[tuple[str, str]]:
    coils = [name for name in circuit.names if name[0] == "L"]
    return [(coils[0], coils[1])] if len(coils) == 2 else []


def parts_of(problem: Problem, mode: Mode) -> Parting:
    """The decaying parts of a mode, by the interpreted kernels."""
    role, supply = problem.parts.role.copy(), problem.supply()
    d = problem.diodes.size
    role[problem.diodes[mode.conducting[:d]]] = Role.CONDUCTING
    value = problem.parts.value.copy()
    value[problem.switched] = problem.ohms(mode.conducting[d:])
    of, waves = supply.of._replace(value=value), Waves(mode.voltage, mode.current, mode.system)
    currents = shared_of(mode.wiring, role)[1]
    return of_capacitors(mode.wiring, role, of, currents, waves, mode.dependent)


@pytest.mark.parametrize("seed", range(40))
def test_parts_make_up_the_system(seed: int) -> None:
    """Of capacitors alone: slopes of the states from those of the parts and of the sources; branch currents from parts
    and sources as from states and sources."""
    circuit, waves, _, switches = draw_switched(seed)
    kept = Circuit()
    arrays, names = circuit.arrays(), circuit.node_names
    for k, name in enumerate(circuit.names):
        if name[0] != "L":
            value = None if name[0] == "D" else float(arrays.value[k])
            kept.add(name[0] if name[0] != "S" else "R", name, names[arrays.first[k]], names[arrays.second[k]], value)
    problem = Problem(kept, waves, switches, {})
    for conducting in np.random.default_rng(seed).random((4, problem.diodes.size + problem.switched.size)) < 0.5:
        mode = problem.mode(conducting)
        found, k = parts_of(problem, mode), mode.states.size
        assert (found.rate >= 0.0).all()
        size = max(1.0, np.abs(mode.system).max())
        start, drift = found.start[:, :k], mode.system[k:, k:]
        off = found.shape @ (found.rate[:, None] * start) + mode.system[:k, :k]
        assert np.abs(off).max(initial=0.0) < 1e-12 * size
        free = start.any(axis=1)
        assert np.abs(start[free] @ found.shape[:, free] - np.eye(int(free.sum()))).max(initial=0.0) < 1e-12
        driven = found.shape @ (found.drive - found.rate[:, None] * found.start[:, k:]) + found.along @ drift
        assert np.abs(driven - mode.system[:k, k:]).max(initial=0.0) < 1e-12 * size
        if found.resistors.size:
            large = max(1.0, np.abs(mode.current).max())
            s = len(drift)
            over_states = found.current[:, s:] @ found.start
            assert np.abs(over_states[:, :k] - mode.current[:, :k]).max(initial=0.0) < 1e-12 * large
            by_source = over_states[:, k:] + found.current[:, :s]
            assert np.abs(by_source - mode.current[:, k:]).max(initial=0.0) < 1e-12 * large
            by_current = found.lift @ mode.current[found.resistors]
            assert np.abs((by_current - found.start)[found.rate > 0.0]).max(initial=0.0) < 1e-12 * large


@pytest.mark.parametrize("rate", [0.0, 1e-9, 1e-3, 1.0, 7.0])
def test_a_series_against_the_closed_form(rate: float) -> None:
    """ẏ = −λ y + sin ωt from y(0) = 0.7 on a window of 2 s, with slow parts to their own digits."""
    omega = 1.5
    times = 1.0 + NODES
    out = series_of(np.array([rate]), np.ones(1), np.sin(omega * times), np.array([0.7]))[0]
    found = np.polynomial.chebyshev.chebval(NODES, out)
    forced = (rate * np.sin(omega * times) - omega * np.cos(omega * times)) / (rate**2 + omega**2)
    exact = forced + omega / (rate**2 + omega**2) * np.exp(-rate * times) + 0.7 * np.expm1(-rate * times)
    assert np.abs(found - exact).max() < 1e-14


def series_of(rate: np.ndarray, drive: np.ndarray, source: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Series of parts (n, ORDER) on a window of 2 s, driven by one source that begins at 0, with these values at the
    nodes."""
    parts = SimpleNamespace(many=[rate.size], rate=rate[None], drive=drive[None, :, None])
    piece = piece_of(np.zeros((1 + rate.size, ORDER)))
    piece.series[0, :POINTS] = TO_COEFFICIENTS @ source
    decay(parts, 0, 1.0, np.zeros(1), start, piece)
    return np.asarray(piece.series[1:])


def piece_of(series: np.ndarray) -> SimpleNamespace:
    """A window with these series."""
    rows = ("many", "tail", "rest", "last")
    return SimpleNamespace(
        series=series,
        nodes=np.full((len(series), POINTS), np.nan),
        room=np.full((WORK, len(series)), np.nan),
        **{name: np.full(len(series), np.nan) for name in rows},
    )


def test_a_fast_part_that_follows_its_source() -> None:
    """λ = 1e9 / s: y is the source less its slope over λ, and a beginning elsewhere is not resolved."""
    rate, times = 1e9, 1.0 + NODES
    start = -1.0 / rate
    driven = np.full(2, rate)
    both = series_of(driven, driven, np.sin(times), np.array([start, 1.0]))
    found = start + np.polynomial.chebyshev.chebval(NODES, both[0])
    assert np.abs(found - (np.sin(times) - np.cos(times) / rate)).max() < 3e-14
    assert np.abs(both[1, POINTS - 2 : POINTS]).max() > 1e-3


def test_rates_ten_decades_apart() -> None:
    """1 pF behind 1 Ω beside 1 mF behind 10 kΩ, one after the other: the slow one to 1e-12."""
    circuit = Circuit()
    circuit.voltage_source("V1", "in", "0", 5.0)
    circuit.resistor("R1", "in", "a", 1e4)
    circuit.add("C", "C1", "a", "0", 1e-3)
    circuit.resistor("R2", "a", "b", 1.0)
    circuit.add("C", "C2", "b", "0", 1e-12)
    found = transient(circuit, 20.0, {"V1": Sine(1.0, 4.0, 0.05, phase=90.0)}, {}, points=101)
    assert found.certificate.certified
    omega, tau = 2.0 * math.pi * 0.05, 10.0
    t = found.times
    steady = 1.0 - np.exp(-t / tau)
    driven = np.cos(omega * t) + omega * tau * np.sin(omega * t) - np.exp(-t / tau)
    steady += 4.0 / (1.0 + (omega * tau) ** 2) * driven
    assert np.abs(found.voltage("a") - steady).max() < 2e-8  # 1 pF beside 1 mF
    assert np.abs(found.current("R2", t[1:]) - 1e-12 * np.gradient(steady, t)[1:]).max() < 1e-13


@pytest.mark.parametrize("length", [1, 2, 7, POINTS, ORDER])
def test_values_of_series(length: int) -> None:
    """At the nodes and at any share of the window, also where the last coefficients are rounding."""
    rng = np.random.default_rng(length)
    series = np.zeros((3, ORDER))
    series[:, :length] = rng.standard_normal((3, length))
    series[0, length:] = 1e-20
    piece = piece_of(series)
    for j in range(3):
        summed(piece, j)
        assert length - 1 <= piece.many[j] <= max(length, 1)
        assert abs(piece.rest[j] - np.abs(series[j, 1:]).sum()) < 1e-14 * length
        assert abs(piece.last[j] - series[j].sum()) < 1e-14 * length
    to_nodes(3, piece)
    exact = np.array([np.polynomial.chebyshev.chebval(NODES, row[:POINTS]) for row in series])
    assert np.abs(piece.nodes - exact).max() < 1e-14 * length
    found = np.empty(3)
    for share in (0.0, 0.3, 1.0):
        values_at(piece, 3, share, found)
        exact = np.array([np.polynomial.chebyshev.chebval(2.0 * share - 1.0, row) for row in series])
        assert np.abs(found - exact).max() < 1e-14 * length


def test_windows_of_the_sources() -> None:
    """A constant, a decaying sine and an exponential: series of their changes, made once, as far as there is room."""
    system = np.zeros((4, 4))
    system[1:3, 1:3], system[3, 3] = [[-30.0, 300.0], [-300.0, -30.0]], -1e3
    fixed = SimpleNamespace(system=system, radius=1e3)
    known, inside = np.full(LENGTHS, -1), np.zeros((2, 4, 4, POINTS))
    assert [source_window(known, inside, fixed, k, length) for k, length in ((5, 4e-3), (7, 1e-3))] == [0, 1]
    for window, length in ((0, 4e-3), (1, 1e-3)):
        times = 0.5 * length * (1.0 + NODES)
        size, turn = np.exp(-30.0 * times), 300.0 * times
        changes = np.zeros((4, 4, POINTS))
        changes[1, 1] = changes[2, 2] = size * np.cos(turn) - 1.0
        changes[1, 2], changes[2, 1], changes[3, 3] = size * np.sin(turn), -size * np.sin(turn), np.expm1(-1e3 * times)
        found = np.polynomial.chebyshev.chebval(NODES, inside[window].transpose(2, 0, 1))
        assert np.abs(found - changes).max() < 5e-15
    assert source_window(known, inside, fixed, 6, 2e-3) == -1
    inside[0] = 0.0
    assert source_window(known, inside, fixed, 5, 4e-3) == 0
    assert not inside[0].any()


@pytest.mark.parametrize("wholes", [0, 3, 7])
def test_values_at_the_beginning_side_by_side(wholes: int) -> None:
    """The same bits as one waveform after the other."""
    rng = np.random.default_rng(wholes)
    whole, found = np.arange(7) < wholes, np.empty(7)
    rows, over, z, y = rng.normal(size=(6, 7)), rng.normal(size=(5, 7)), rng.normal(size=5), rng.normal(size=4)
    z[3] = 0.0
    at_first(whole, rows, over, 4, 2, z, y, found)
    assert found.tolist() == [first_value(bool(whole[r]), rows, over, r, 4, 2, z, y) for r in range(7)]


def test_modes_complete() -> None:
    """Currents and systems of modes are made for derivatives alone; voltages are the same bits with and without."""
    circuit, waves, initial, _ = draw_switched(5)
    kept, arrays, names = Circuit(), circuit.arrays(), circuit.node_names
    for k, name in enumerate(circuit.names):
        if name[0] != "L":
            value = None if name[0] == "D" else float(arrays.value[k])
            kept.add(name[0] if name[0] != "S" else "R", name, names[arrays.first[k]], names[arrays.second[k]], value)
    initial = {name: level for name, level in initial.items() if name[0] != "L"}
    result = transient(kept, 2.0, waves, initial, method="exact")
    problem, lean, modes = result.origin.problem, result.segments.modes, result.segments.library.complete()
    s = len(problem.system)
    assert lean.current.size == 0
    assert lean.system.shape[1:] == (s, s)
    assert modes.voltage.shape[0] > 1
    for m in range(modes.voltage.shape[0]):
        mode = problem.mode(modes.conducting[m])
        k = mode.states.size
        order = [*range(k, k + s), *range(k)]
        assert modes.voltage[m].tobytes() == lean.voltage[m].tobytes()
        assert (mode.voltage[:, order] == modes.voltage[m, : s + k].T).all()
        assert (mode.current[:, order] == modes.current[m, : s + k].T).all()
        assert (mode.system[np.ix_(order, order)] == modes.system[m, : s + k, : s + k]).all()
        assert not modes.system[m, s + k :].any()
        assert not modes.current[m, s + k :].any()
