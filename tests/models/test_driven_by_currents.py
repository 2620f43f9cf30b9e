"""Smooth devices that a current alone drives, and junctions across voltages without a resistance."""

from __future__ import annotations

import math

import numpy as np
import pytest

import circuitsim
from circuitsim.errors import CircuitError

THERMAL = 8.617333262e-5 * 300.15
"""kT/q at 27 °C, V."""


def varistor(rng: np.random.Generator) -> tuple[str, object]:
    """A model card, and its voltage at a current."""
    nominal, through, alpha, series = 10 ** rng.uniform(0, 3), 10 ** rng.uniform(-4, -2), rng.uniform(2, 70), 10.0
    card = f"VARISTOR(VNOM={nominal!r} INOM={through!r} ALPHA={alpha!r} RS={series!r})"
    return card, lambda i: math.copysign(nominal * (abs(i) / through) ** (1 / alpha) + series * abs(i), i)


def junction(rng: np.random.Generator) -> tuple[str, object]:
    saturation, emission, series = 10 ** rng.uniform(-15, -8), rng.uniform(1, 2.5), 10 ** rng.uniform(-3, 1)
    card = f"D(IS={saturation!r} N={emission!r} RS={series!r} TNOM=27)"
    return card, lambda i: emission * THERMAL * math.log1p(i / saturation) + series * i


def cell(rng: np.random.Generator) -> tuple[str, object]:
    slope, scale, series = 10 ** rng.uniform(-8, -3), rng.uniform(0.05, 0.6), 10 ** rng.uniform(0, 3)
    card = f"SINH(G={slope!r} V0={scale!r} RS={series!r})"
    return card, lambda i: scale * math.asinh(i / (slope * scale)) + series * i


@pytest.mark.parametrize("kind", [varistor, junction, cell])
def test_a_current_alone_drives_a_chain(kind) -> None:
    """Devices in series, beside dangling resistors and piecewise-linear diodes: each at its own law's voltage."""
    rng = np.random.default_rng(7)
    for case in range(20):
        count, amperes = int(rng.integers(1, 4)), 10 ** rng.uniform(-6, 0)
        lines, expected = ["a chain", f"I1 0 n0 {amperes!r}", "Rfree n0 loose 1k"], []
        for k in range(count):
            card, law = kind(rng)
            lines += [f"D{k} n{k} n{k + 1} M{k}", f".model M{k} {card}"]
            expected.append(law(amperes))
        end = f"n{count}"
        if case % 2:
            lines += [f"Dp {end} tail P", ".model P D(Vfwd=0.6 Ron=2.87 Roff=1MEG)"]
            end = "tail"
        lines.append(f"Vend {end} 0 {float(rng.uniform(-5, 5))!r}")
        point = circuitsim.solve(circuitsim.loads("\n".join(lines)))
        for k, volts in enumerate(expected):
            assert point[f"n{k}"] - point[f"n{k + 1}"] == pytest.approx(volts, rel=1e-6)
            assert point.current(f"D{k}") == pytest.approx(amperes, rel=1e-9)


def test_a_varistor_at_a_current_has_the_voltage_of_its_law() -> None:
    deck = "x\nI1 0 a 5.94m\nD2 a 0 MV\n.model MV VARISTOR(VNOM=8.927 INOM=0.39m ALPHA=60 RS=10)\n"
    assert circuitsim.solve(circuitsim.loads(deck))["a"] == pytest.approx(9.400920, abs=1e-6)


def deck_with_a_bare_junction(rng: np.random.Generator, volts: float) -> str:
    """A floating source with a junction across it, in a network of resistors and other devices."""
    nodes = ["n1", "n2", "n3", "0"]
    lines = ["bare junction", f"V1 n1 n3 {volts!r}", "D1 n1 n3 M1", f".model M1 D(IS={10 ** rng.uniform(-14, -9)!r})"]
    for k in range(5):
        a, b = rng.choice(nodes, 2, replace=False)
        lines.append(f"R{k} {a} {b} {10 ** rng.uniform(2, 5)!r}")
    lines += ["Rg n2 0 1k", "Rh n1 n2 1k", f"I1 n1 0 {rng.normal() * 1e-4!r}"]
    return "\n".join(lines)


def test_currents_beyond_any_device_never_hide_an_error_elsewhere() -> None:
    """Kirchhoff's law holds at each node by what meets there, or the solve is an error that names the junction."""
    rng, refused = np.random.default_rng(11), 0
    for _ in range(40):
        deck = deck_with_a_bare_junction(rng, float(rng.uniform(0.5, 8.0)))
        circuit = circuitsim.loads(deck)
        try:
            point = circuitsim.solve(circuit)
        except CircuitError as error:
            assert str(error).startswith("D1 would carry") and "series resistance" in str(error)
            refused += 1
            continue
        arrays = circuit.arrays()
        net = np.bincount(arrays.first, point.currents, arrays.n_nodes)
        net -= np.bincount(arrays.second, point.currents, arrays.n_nodes)
        largest = np.zeros(arrays.n_nodes)
        np.maximum.at(largest, arrays.first, np.abs(point.currents))
        np.maximum.at(largest, arrays.second, np.abs(point.currents))
        assert (np.abs(net) <= 1e-9 * largest).all()
        warned = any(problem.kind == "implausible-current" for problem in point.warnings)
        assert warned == (abs(point.current("D1")) > 1e6)
    assert 0 < refused < 40
