"""Random circuits of all devices and ideal diodes among resistors and sources."""

from __future__ import annotations

import math

import numpy as np

from circuitsim import Circuit
from circuitsim.models import Device
from circuitsim.models.junction_diode import JunctionDiode
from circuitsim.models.limiter import Limiter
from circuitsim.models.piecewise_diode import PiecewiseLinearDiode
from circuitsim.models.rounded_diode import RoundedDiode
from circuitsim.models.sinh_cell import SinhCell
from circuitsim.models.table import Table
from circuitsim.models.varistor import Varistor

LARGEST = 200
"""Most nodes."""


def junction_diode(rng: np.random.Generator) -> JunctionDiode:
    """IS from 1e-18 to 1e-6 A, with and without breakdown and series resistance, from −40 to 125 °C."""
    values: dict[str, float] = {"is": 10.0 ** rng.uniform(-18, -6), "n": rng.uniform(1.0, 2.0)}
    if rng.random() < 0.4:
        values |= {"bv": 10.0 ** rng.uniform(0.5, 2.0), "ibv": 10.0 ** rng.uniform(-6, -2)}
    if rng.random() < 0.5:
        values["rs"] = 10.0 ** rng.uniform(-3, 1)
    if rng.random() < 0.2:
        values["temp"] = rng.uniform(-40.0, 125.0)
    if rng.random() < 0.2:
        values["m"] = float(rng.integers(1, 5))
    return JunctionDiode(**values)


def piecewise_diode(rng: np.random.Generator) -> PiecewiseLinearDiode:
    """Drops of 0.1 to 2 V, with and without breakdown and leakage."""
    values = {"vfwd": rng.uniform(0.1, 2.0), "ron": 10.0 ** rng.uniform(-3, 2)}
    if rng.random() < 0.5:
        values |= {"vrev": rng.uniform(1.0, 50.0), "rrev": 10.0 ** rng.uniform(-2, 2)}
    if rng.random() < 0.5:
        values["roff"] = 10.0 ** rng.uniform(4, 9)
    return PiecewiseLinearDiode(**values)


def rounded_diode(rng: np.random.Generator) -> RoundedDiode:
    """Knees of 10 to 500 mV, or limits of 1 mA to 10 A."""
    values = {"vfwd": rng.uniform(0.1, 2.0), "ron": 10.0 ** rng.uniform(-3, 2)}
    if rng.random() < 0.7:
        values["epsilon"] = 10.0 ** rng.uniform(-2, -0.3)
    if rng.random() < 0.5:
        values["ilimit"] = 10.0 ** rng.uniform(-3, 1)
    if rng.random() < 0.5:
        values |= {"vrev": rng.uniform(1.0, 50.0), "revilimit": 10.0 ** rng.uniform(-3, 1)}
    if rng.random() < 0.5:
        values["roff"] = 10.0 ** rng.uniform(4, 9)
    return RoundedDiode(**values)


def varistor(rng: np.random.Generator) -> Varistor:
    """Exponents of 1.5 to 30."""
    return Varistor(vnom=10.0 ** rng.uniform(0, 1.7), inom=10.0 ** rng.uniform(-6, -1), alpha=rng.uniform(1.5, 30.0))


def sinh_cell(rng: np.random.Generator) -> SinhCell:
    """Scales of 0.1 to 1 V."""
    return SinhCell(g=10.0 ** rng.uniform(-9, -3), v0=10.0 ** rng.uniform(-1, 0), rs=float(rng.choice([0.0, 10.0])))


def table(rng: np.random.Generator) -> Table:
    """Up to eight pieces, level, flat or steep."""
    count = int(rng.integers(2, 10))
    v = np.cumsum(10.0 ** rng.uniform(-1, 1, count)) - rng.uniform(0.0, 10.0)
    i = np.cumsum(np.where(rng.random(count) < 0.3, 0.0, 10.0 ** rng.uniform(-9, 0, count)))
    i -= np.interp(0.0, v, i)
    return Table(**{f"v{k + 1}": x for k, x in enumerate(v)}, **{f"i{k + 1}": x for k, x in enumerate(i)})


def limiter(rng: np.random.Generator) -> Limiter:
    """Both directions, with a resistance."""
    return Limiter(imax=10.0 ** rng.uniform(-6, 1), irev=10.0 ** rng.uniform(-6, 1), ron=10.0 ** rng.uniform(-2, 3))


DEVICES = (junction_diode, piecewise_diode, rounded_diode, varistor, sinh_cell, table, limiter)
"""Makers of devices with random parameters."""


def draw(seed: int, largest: int = LARGEST) -> Circuit:
    """A circuit of 2 to ``largest`` nodes with a steady state: each node has a path of resistors to ground.

    Resistances lie within a range drawn for each circuit, at most 1e-2 to 1e8 Ω; sources are up to 100 V or drive up to
    100 V into the resistances, so some parts carry kiloamperes beside leakage.
    """
    rng = np.random.default_rng(seed)
    n = int(math.exp(rng.uniform(math.log(2), math.log(largest))))
    c = Circuit(f"devices {seed}")
    low, high = sorted(rng.uniform(-2.0, 8.0, 2))
    edges = [(k, int(rng.integers(0, k))) for k in range(1, n)]
    edges += [_pair(rng, n) for _ in range(int(rng.integers(0, 2 * n)))]
    for k, (a, b) in enumerate(edges):
        c.resistor(f"R{k}", str(a), str(b), 10.0 ** rng.uniform(low, high))
    for k in range(max(1, int(rng.integers(1, n + 1)))):
        volts = float(rng.choice([-1.0, 1.0])) * 10.0 ** rng.uniform(-2.0, 2.0)
        node, ohms = str(rng.integers(1, n)), 10.0 ** rng.uniform(low, high)
        if rng.random() < 0.5:
            c.voltage_source(f"V{k}", f"s{k}", "0", volts)
            c.resistor(f"RV{k}", f"s{k}", node, ohms)
        else:
            c.current_source(f"I{k}", "0", node, volts / ohms)
    for k in range(int(rng.integers(1, 2 * n + 1))):
        a, b = (str(node) for node in _pair(rng, n))
        if rng.random() < 0.1:
            c.diode(f"D{k}", a, b)
        else:
            device: Device = DEVICES[0 if rng.random() < 0.5 else int(rng.integers(len(DEVICES)))](rng)
            c.device(f"{device.model.letter}{k}", a, b, device)
    return c


def _pair(rng: np.random.Generator, n: int) -> tuple[int, int]:
    a, b = rng.choice(n, 2, replace=False)
    return int(a), int(b)
