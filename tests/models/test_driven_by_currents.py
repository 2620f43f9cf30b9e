"""Smooth devices that a current alone drives, and junctions across voltages without a resistance."""

import math

import numpy as np
import pytest
from helpers import loaded

import circuitsim
from circuitsim.errors import CircuitError

THERMAL = 8.617333262e-5 * 300.15
"""kT/q at 27 °C, V."""


def device(kind: str, rng: np.random.Generator, amperes: float) -> tuple[str, float]:
    """A model card, and its voltage at a current."""
    a, b, series = 10 ** rng.uniform(-9, -3), rng.uniform(1.0, 2.5), 10 ** rng.uniform(-3, 1)
    card, volts = {
        "varistor": (f"VARISTOR(VNOM=12 INOM={a!r} ALPHA={10 * b!r}", 12.0 * (amperes / a) ** (0.1 / b)),
        "junction": (f"D(TNOM=27 IS={a!r} N={b!r}", b * THERMAL * math.log1p(amperes / a)),
        "cell": (f"SINH(G={a!r} V0={b!r}", b * math.asinh(amperes / (a * b))),
    }[kind]
    return f"{card} RS={series!r})", volts + series * amperes


@pytest.mark.parametrize("kind", ["varistor", "junction", "cell"])
def test_a_current_alone_drives_a_chain(kind: str) -> None:
    """Devices in series, beside dangling resistors and piecewise-linear diodes: each at its own law's voltage."""
    rng = np.random.default_rng(7)
    for case in range(20):
        count, amperes = int(rng.integers(1, 4)), 10 ** rng.uniform(-6, 0)
        made = [device(kind, rng, amperes) for _ in range(count)]
        cards = [f"D{k} n{k} n{k + 1} M{k}\n.model M{k} {card}" for k, (card, _) in enumerate(made)]
        cards.append(f"Dp n{count} tail P" if case % 2 else f"Rp n{count} tail 0")
        cards.append(f"Vend tail 0 {rng.uniform(-5, 5)}\n.model P D(Vfwd=0.6 Ron=2.87 Roff=1MEG)")
        point = circuitsim.solve(loaded("\n".join([f"I1 0 n0 {amperes!r}\nRfree n0 loose 1k", *cards])))
        for k, (_, volts) in enumerate(made):
            assert point.voltage(f"n{k}", f"n{k + 1}") == pytest.approx(volts, rel=1e-6)
            assert point.current(f"D{k}") == pytest.approx(amperes, rel=1e-9)


def test_currents_beyond_any_device_never_hide_an_error_elsewhere() -> None:
    """Kirchhoff's law holds at each node by what meets there, or the solve is an error that names the junction."""
    rng, refused = np.random.default_rng(11), 0
    for _ in range(40):
        ends = [" ".join(rng.choice(["n1", "n2", "n3", "0"], 2, replace=False)) for _ in range(5)]
        cards = [f"R{k} {pair} {10 ** rng.uniform(2, 5)!r}" for k, pair in enumerate(ends)]
        circuit = loaded(
            f"V1 n1 n3 {rng.uniform(0.5, 8.0)!r}\nD1 n1 n3 M1\n.model M1 D(IS={10 ** rng.uniform(-14, -9)!r})\n"
            f"Rg n2 0 1k\nRh n1 n2 1k\nI1 n1 0 {rng.normal() * 1e-4!r}\n" + "\n".join(cards)
        )
        try:
            point = circuitsim.solve(circuit)
        except CircuitError as error:
            assert str(error).startswith("D1 would carry") and "series resistance" in str(error)
            refused += 1
            continue
        _, first, second, _, n = circuit.arrays()
        net = np.bincount(first, point.currents, n) - np.bincount(second, point.currents, n)
        largest = [np.abs(point.currents[(first == u) | (second == u)]).max(initial=0.0) for u in range(n)]
        assert (np.abs(net) <= 1e-9 * np.array(largest)).all()
        warned = any(problem.kind == "implausible-current" for problem in point.warnings)
        assert warned == (abs(point.current("D1")) > 1e6)
    assert 0 < refused < 40
