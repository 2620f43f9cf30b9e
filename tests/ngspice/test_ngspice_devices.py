"""Junction diodes in random circuits: ngspice at tight tolerances agrees to 1e-6."""

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


DIODES = (
    ("area=2 pj=5 m=3", "IS=1e-12 N=1.5 JSW=3e-12 RS=3 IKF=1m", ""),
    ("area=2 pj=5", "IS=1e-12 N=1.5 JSW=3e-12 BV=5", ""),
    ("", "IS=1e-12 N=1.5 RS=10 TRS1=5m TRS2=1e-5", ""),
    ("", "IS=1e-12 N=1.5 BV=5 TCV=2m", ""),
    # ngspice has neither of these: its diode has the value at the temperature.
    ("", "IS=1e-12 BV=5 TBV1=1m TBV2=2u", "IS=1e-12 BV={bv}"),
    ("", "IS=1e-12 IKF=1m TIKF=3m", "IS=1e-12 IKF={ikf}"),
)


@pytest.mark.parametrize("celsius", [27.0, 75.0, -20.0])
@pytest.mark.parametrize(("card", "model", "theirs"), DIODES)
def test_sidewalls_and_temperature_coefficients(card: str, model: str, theirs: str, celsius: float) -> None:
    rise = celsius - 27.0
    equal = theirs.format(bv=5.0 * (1.0 + 1e-3 * rise + 2e-6 * rise**2), ikf=1e-3 * (1.0 + 3e-3 * rise)) or model
    text = f"t\nV1 a 0 5\nR1 a b 100\nD1 b 0 dm {card}\nV2 c 0 -9\nR2 c d 100\nD2 d 0 dm {card}\n.temp {celsius}\n"
    deck = circuitsim.loads(f"{text}.model dm D({model})\n")
    assert not [note for note in deck.notes if note.kind in ("no-effect", "unused-parameter")]
    found, _ = run(f"{text}.model dm D({equal})\n{OPTIONS}\n{CONTROL}", {})
    point = circuitsim.solve(deck)
    assert {node: point[node] for node in "bd"} == pytest.approx({node: found[node] for node in "bd"}, rel=1e-9)
    for ngspice in (False, True):
        flat = dumps(deck, ngspice=ngspice)
        assert not ngspice or not {"tbv1", "tikf"} & set(flat.replace("=", " ").split())
        again = circuitsim.solve(circuitsim.loads(flat))
        assert [again["b"], again["d"]] == pytest.approx([point["b"], point["d"]], rel=1e-12)
