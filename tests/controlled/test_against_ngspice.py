"""Written decks in ngspice: the same node voltages, to its tolerances and the drop of its diodes."""

from __future__ import annotations

import re
import shutil

import pytest
from ngspice_runs import CONTROL, NEAR_IDEAL, OPTIONS, run
from test_hand_results import DIODES, LINEAR

import circuitsim

pytestmark = [
    pytest.mark.ngspice,
    pytest.mark.skipif(shutil.which("ngspice") is None, reason="ngspice is not installed"),
]

WITH_DIODES = {
    "super-diode": "V1 in 0 2\nE1 o 0 in out 1e4\nD1 o out\nR1 out 0 1k",
    "super-diode, blocking": "V1 in 0 -2m\nE1 o 0 in out 1e3\nD1 o out\nR1 out 0 1k",
    "precision rectifier": "V1 in 0 1\nR1 in n 1k\nR2 n out 2k\nD1 out o\nD2 o n\nE1 o 0 0 n 1e4\nRL out 0 10k",
    "full-wave rectifier": "V1 in 0 -1.5\nR1 in n 1k\nR2 n h 1k\nD1 h o\nD2 o n\nE1 o 0 0 n 1e4\nR3 in m 2k\n"
    "R4 h m 1k\nR5 m out 2k\nE2 out 0 0 m 1e4",
    "maximum": "V0 i0 0 1\nE0 o0 0 i0 out 1e2\nD0 o0 out\nV1 i1 0 2\nE1 o1 0 i1 out 1e2\nD1 o1 out\nR1 out 0 1k",
    "limits": "V1 in 0 3\nX1 in n out limited_opamp gain=1e3 low=-12 high=12\nR1 n 0 1k\nR2 n out 9k",
    "behavioural": "V1 in 0 2\nR1 in a 1k\nD1 a b\nR2 b 0 1k\nB1 c 0 V=2*v(a,b)+3*v(b)-1k*i(V1)\n"
    "B2 0 c I={1m+2m*v(b)}\nR3 c 0 1k",
}
FOUND = {
    **{name: cards for name, (cards, *_) in LINEAR.items()},
    **WITH_DIODES,
    **{f"{name} at {x}": cards.format(x) for name, (cards, _, given) in DIODES.items() for x in given},
}


def in_ngspice(circuit: circuitsim.Circuit) -> dict[str, float]:
    text = re.sub(
        r"(?m)^\.model circuitsim_ideal .*$", f".model circuitsim_ideal {NEAR_IDEAL.text()}", circuitsim.dumps(circuit)
    )
    text = text.replace(".op\n.end\n", "") + OPTIONS + "\n" + CONTROL
    return run(text, {})[0]


@pytest.mark.parametrize("name", FOUND)
def test_node_voltages_agree(name: str) -> None:
    circuit = circuitsim.loads(f"{name}\n{FOUND[name]}\n")
    ours, theirs = circuitsim.solve(circuit), in_ngspice(circuit)
    largest = max(abs(ours[node]) for node in circuit.node_names)
    for node in circuit.node_names[1:]:
        if node == "X1.inside":
            continue  # the drop of a clamp, times the gain
        # A diode of this model has some millivolts; those in the feedback of an amplifier are divided by its gain.
        # Those before the base of a transistor are four times as large at its collector.
        drop = 1e-2 if name.startswith("hybrid pi at") else 5e-3
        slack = 1e-6 * largest + (1e-8 if name in LINEAR else drop)
        assert theirs[node.lower()] == pytest.approx(ours[node], abs=slack), node
