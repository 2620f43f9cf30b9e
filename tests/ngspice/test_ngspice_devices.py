"""Junction diodes in random circuits: ngspice at tight tolerances agrees to 1e-6."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ngspice_runs import run
from spice import NEEDED

import circuitsim
from circuitsim import Circuit, OperatingPoint
from circuitsim.models.junction_diode import JunctionDiode
from circuitsim.netlist import dumps

pytestmark = NEEDED

OPTIONS = ".options gmin=1e-30 reltol=1e-9 abstol=1e-18 vntol=1e-12 itl1=2000"
CONTROL = ".control\nset numdgt=15\nop\nprint all\nquit\n.endc\n.end\n"
CIRCUITS, GROUP = 200, 20


def draw(seed: int) -> Circuit:
    """2 to 20 nodes, each with a path of resistors to ground; up to 20 V; up to 20 diodes at −40 to 125 °C."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 21))
    c = Circuit(f"junctions {seed}")
    for k in range(1, n):
        c.resistor(f"R{k}", str(k), str(rng.integers(0, k)), 10.0 ** rng.uniform(0, 5))
    for k in range(int(rng.integers(1, 4))):
        c.voltage_source(f"V{k}", f"s{k}", "0", rng.uniform(-20.0, 20.0))
        c.resistor(f"RV{k}", f"s{k}", str(rng.integers(1, n)), 10.0 ** rng.uniform(0, 4))
    for k in range(int(rng.integers(1, n + 1))):
        values = {"is": 10.0 ** rng.uniform(-16, -7), "n": rng.uniform(1.0, 2.0), "rs": rng.uniform(0.0, 5.0)}
        values |= {"area": rng.uniform(0.5, 3.0), "temp": rng.uniform(-40.0, 125.0)}
        if rng.random() < 0.4:
            values |= {"bv": rng.uniform(3.0, 15.0), "ibv": 10.0 ** rng.uniform(-5, -2), "m": 2.0}
        a, b = rng.choice(n, 2, replace=False)
        c.device(f"D{k}", str(a), str(b), JunctionDiode(**values))
    return c


def reverse(point: OperatingPoint, name: str) -> bool:
    """Whether a junction is below −3 N k T / q, where ngspice 39 has no recombination (later versions: a constant)."""
    row = point.circuit.device_of(name).row()
    return point.drops[point.circuit.element_index(name)] - row[0] * point.current(name) < -3.0 * row[2]


def with_recombination(c: Circuit, seed: int) -> Circuit:
    """ISR for the diodes of `draw` that are not in reverse, IKF for half of all."""
    rng, point = np.random.default_rng(seed), circuitsim.solve(c)
    values: dict[str, float] = {}
    for name in (name for name in c.names if name.startswith("D")):
        if not reverse(point, name):
            values |= {f"{name}.isr": 10.0 ** rng.uniform(-12, -6), f"{name}.nr": rng.uniform(1.0, 2.0)}
            values |= {f"{name}.vj": rng.uniform(0.6, 1.0), f"{name}.mj": rng.uniform(0.2, 0.6)}
        if rng.random() < 0.5:
            values[f"{name}.ikf"] = 10.0 ** rng.uniform(-5, 0)
    return c.with_values(values)


@pytest.mark.parametrize("recombination", [False, True], ids=["shockley", "recombination"])
@pytest.mark.parametrize("group", range(CIRCUITS // GROUP))
def test_random_circuits(group: int, recombination: bool) -> None:
    compared = skipped = 0
    for seed in range(group * GROUP, (group + 1) * GROUP):
        c = with_recombination(draw(seed), seed) if recombination else draw(seed)
        point = circuitsim.solve(c)
        if any(c.device_of(name).isr and reverse(point, name) for name in c.names if name.startswith("D")):
            skipped += 1
            continue
        text = dumps(c).replace(".op\n.end\n", f"{OPTIONS}\n{CONTROL}")
        theirs, _ = run(text, {})
        if not theirs:
            continue  # ngspice did not converge at these tolerances
        compared += 1
        scale = max(abs(v) for v in theirs.values())
        for node in c.node_names[1:]:
            assert theirs[node.lower()] == pytest.approx(point[node], rel=1e-6, abs=1e-6 * min(scale, 1.0)), seed
        for k in range(3):
            if f"V{k}" in c:
                branch = theirs[f"v{k}#branch"]
                assert math.isclose(point.current(f"V{k}"), branch, rel_tol=1e-6, abs_tol=1e-13), seed
    assert compared >= 0.8 * (GROUP - skipped)
