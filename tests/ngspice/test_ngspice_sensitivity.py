"""``.tf`` and ``.sens`` of linear decks: ngspice agrees."""

import numpy as np
import pytest
from ngspice_runs import run
from spice import NEEDED

import circuitsim

pytestmark = NEEDED

CONTROL = ".control\nset numdgt=15\n{commands}\nquit\n.endc\n.end\n"


def deck(seed: int) -> str:
    """A linear deck with all controlled sources."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    lines = [f"linear {seed}", f"V1 s 0 {rng.uniform(1, 10):.6g}", f"RS s 1 {rng.uniform(10, 100):.6g}"]
    lines += [f"R{k} {k} {rng.integers(0, k)} {10.0 ** rng.uniform(1, 4):.6g}" for k in range(1, n)]
    lines += [f"I1 0 {n - 1} {rng.uniform(-0.01, 0.01):.6g}", "V2 2 t 0", "RT t 0 330"]
    lines += [f"E1 e 0 1 2 {rng.uniform(-0.5, 0.5):.6g}", "RE e 1 1k", f"G1 2 0 1 0 {rng.uniform(-1e-5, 1e-5):.6g}"]
    lines += [f"F1 1 0 V2 {rng.uniform(-0.2, 0.2):.6g}", f"H1 h 0 V2 {rng.uniform(-5, 5):.6g}", "RH h 2 1k"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("seed", range(6))
def test_transfer_functions(seed: int) -> None:
    text = deck(seed)
    for output, source in (("v(2)", "V1"), ("v(1,2)", "I1"), ("i(V2)", "V1")):
        theirs, log = run(text + CONTROL.format(commands=f"tf {output} {source}\nprint all"), {})
        ours = circuitsim.transfer_function(circuitsim.loads(text), output, source)
        named = {key.split("#")[-1].split("_at_")[0]: value for key, value in theirs.items()}
        assert ours.gain.value == pytest.approx(named["transfer_function"], rel=1e-6, abs=1e-12), log
        assert ours.input_resistance.value == pytest.approx(named["input_impedance"], rel=1e-6), log
        if output.startswith("v"):  # of currents ngspice 39 takes the largest of 1e-20 and a negative conductance
            assert ours.output_resistance.value == pytest.approx(named["output_impedance"], rel=1e-6), log


@pytest.mark.parametrize("seed", range(6))
def test_sensitivities(seed: int) -> None:
    text = deck(seed)
    for output in ("v(2)", "i(V2)"):
        theirs, log = run(text + CONTROL.format(commands=f"sens {output}\nprint all"), {})
        found = circuitsim.sensitivity(circuitsim.loads(text), output)
        largest = max(abs(row.per_percent) for row in found.rows())
        compared = 0
        for row in found.rows():
            name = row.name.lower()
            if name not in theirs and f"{name}:gain" not in theirs:
                continue
            value = theirs.get(name, theirs.get(f"{name}:gain"))
            compared += 1
            scale = 100.0 * largest / max(abs(row.value), 1e-9)
            assert row.derivative == pytest.approx(value, rel=2e-4, abs=1e-5 * scale), (name, log)
        assert compared >= len(found.names) - 6, log
