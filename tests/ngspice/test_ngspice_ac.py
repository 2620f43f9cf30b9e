"""Small-signal responses of random circuits with capacitors, inductors, junctions and controlled sources: ngspice's."""

import numpy as np
import pytest
from ngspice_runs import run
from spice import NEEDED

from circuitsim import ac
from circuitsim.netlist import loads

pytestmark = NEEDED

FREQUENCIES = (10.0, 3e3, 2e6)


def draw(seed: int) -> list[str]:
    """Cards of 3 to 9 nodes: a tree of resistors, then R, C, L in series with R, junctions and a controlled source."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 10))
    cards = [f"R{k} n{k} {f'n{rng.integers(1, k)}' if k > 1 else 0} {10 ** rng.uniform(1, 4):.6g}" for k in range(1, n)]
    cards += [f"V1 s 0 DC {rng.uniform(-5, 5):.6g} AC 1 {rng.uniform(-180, 180):.6g}", f"Rs s n{n - 1} 100"]
    for k in range(2 * n):
        a, b = rng.choice(n, 2, replace=False)
        first, second = (f"n{x}" if x else "0" for x in (a, b))
        kind = "CCLD"[rng.integers(4)] if seed % 2 else "CCLRG"[rng.integers(5)]
        if kind == "C":
            cards.append(f"C{k}x {first} {second} {10 ** rng.uniform(-10, -6):.6g}")
        elif kind == "L":
            cards += [f"L{k}x {first} m{k} {10 ** rng.uniform(-5, -2):.6g}", f"Rl{k} m{k} {second} 10"]
        elif kind == "D":
            cards.append(f"D{k}x {first} {second} dm")
        elif kind == "R":
            cards.append(f"R{k}x {first} {second} {10 ** rng.uniform(1, 4):.6g}")
        else:
            cards.append(f"G{k}x {first} {second} n1 0 {10 ** rng.uniform(-6, -4):.6g}")
    return [*cards, ".model dm D(is=1e-12 n=1.4)"]


@pytest.mark.parametrize("seed", range(24))
def test_random_circuits(seed: int) -> None:
    cards = draw(seed)
    for f in FREQUENCIES:
        body = "\n".join(["random", *cards, f".ac lin 1 {f:.6g} {f:.6g}"])
        nodes = sorted({f"n{k}" for k in range(1, 10) if f" n{k} " in body.replace("\n", " ")})
        lets = "\n".join(f"let r_{node}=real(v({node}))\nlet i_{node}=imag(v({node}))" for node in nodes)
        shown = " ".join(f"r_{node} i_{node}" for node in nodes)
        options = ".options gmin=1e-15 reltol=1e-9 abstol=1e-16 vntol=1e-10"
        control = f".control\nset numdgt=15\nrun\n{lets}\nprint {shown}\nquit\n.endc\n.end\n"
        theirs, log = run(f"{body}\n{options}\n{control}", {})
        assert theirs, log
        ours = ac(loads(body + "\n.end"))
        size = max(abs(ours[node][0]) for node in nodes)
        for node in nodes:
            expected = theirs[f"r_{node}"] + 1j * theirs[f"i_{node}"]
            assert abs(ours[node][0] - expected) <= 2e-6 * size, (node, f)
