"""Junction diodes in random circuits: ngspice at tight tolerances agrees to 1e-6."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ngspice_runs import PROGRAM, run

import circuitsim
from circuitsim import Circuit
from circuitsim.models.junction_diode import JunctionDiode
from circuitsim.netlist import dumps

pytestmark = [
    pytest.mark.ngspice,
    pytest.mark.skipif(PROGRAM is None, reason="ngspice is not installed (Debian: apt-get install ngspice)"),
]

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


@pytest.mark.parametrize("group", range(CIRCUITS // GROUP))
def test_random_circuits(group: int) -> None:
    compared = 0
    for seed in range(group * GROUP, (group + 1) * GROUP):
        c = draw(seed)
        text = dumps(c).replace(".op\n.end\n", f"{OPTIONS}\n{CONTROL}")
        theirs, _ = run(text, {})
        if not theirs:
            continue  # ngspice did not converge at these tolerances
        compared += 1
        point = circuitsim.solve(c)
        scale = max(abs(v) for v in theirs.values())
        for node in c.node_names[1:]:
            assert theirs[node.lower()] == pytest.approx(point[node], rel=1e-6, abs=1e-6 * min(scale, 1.0)), seed
        for k in range(3):
            if f"V{k}" in c:
                branch = theirs[f"v{k}#branch"]
                assert math.isclose(point.current(f"V{k}"), branch, rel_tol=1e-6, abs_tol=1e-13), seed
    assert compared >= 0.8 * GROUP
