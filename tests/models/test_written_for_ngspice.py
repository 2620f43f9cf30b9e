"""Devices that ngspice has no model of, written for it: its answers and those of the text read back."""

import numpy as np
import pytest
from corpus import smooth_model
from helpers import loaded
from ngspice_runs import CONTROL, PROGRAM, run
from test_laws import DRIVEN, FORMULAS

import circuitsim
from circuitsim.netlist import dumps, loads

ACCURATE = f".options gmin=1e-30 reltol=1e-8\n{CONTROL}"
STEEP = 0.03
"""Drop of the diodes that stand for ideal ones, V."""


def one(seed: int) -> tuple[circuitsim.Circuit, str]:
    """A source, resistors and a device whose second node is ground, a node, or whose first is ground; its model."""
    rng = np.random.default_rng(seed)
    model = smooth_model(rng)
    while model.startswith("D(is="):
        model = smooth_model(rng)
    volts, ends = rng.uniform(2.0, 40.0) * rng.choice([-1.0, 1.0]), ["a 0", "a b", "0 a"][seed % 3]
    cards = [f"V1 in 0 {volts}", f"R1 in a {10.0 ** rng.uniform(1, 4)}", f"D1 {ends} m", f".model m {model}"]
    cards += [f"R2 b 0 {10.0 ** rng.uniform(1, 3)}"] if "b" in ends else []
    return loads("\n".join(["t", *cards, ""])).circuit, model


@pytest.mark.skipif(PROGRAM is None, reason="ngspice is not installed")
def test_ngspice_has_the_same_potentials() -> None:
    compared = 0
    for seed in range(36):
        c, model = one(seed)
        theirs, _ = run(dumps(c, ngspice=True).replace(".op\n.end\n", ACCURATE), {})
        if not theirs:
            continue  # it did not converge
        compared += 1
        point, size = circuitsim.solve(c), abs(c.arrays().value[0])
        off = STEEP if "epsilon" not in model and model[0] in "DL" else 1e-6 * size
        for node in c.node_names[1:]:
            assert theirs[node] == pytest.approx(point[node], rel=0.0, abs=off), (seed, node)
    assert compared >= 24


def test_the_text_reads_back_to_the_same_operating_point() -> None:
    for seed in range(36):
        c, _ = one(seed)
        text = dumps(c, ngspice=True)
        assert not any(word in text for word in ("VARISTOR", "SINH", "PWL", "LIMITER", "vfwd="))
        before, after = circuitsim.solve(c), circuitsim.solve(loads(text))
        for node in c.node_names[1:]:
            assert after[node] == pytest.approx(before[node], rel=1e-9, abs=1e-9 * abs(c.arrays().value[0]))


def test_names_in_use_are_kept() -> None:
    c = circuitsim.loads(
        "t\nV1 D1.before 0 5\nR1 D1.before a 1k\nBD1 a 0 I={1u*sinh(v(a))}\nD1 a 0 x\n.model x LIMITER(IMAX=1m)\n"
    )
    point, again = circuitsim.solve(c), circuitsim.solve(loads(dumps(c, ngspice=True)))
    assert again["D1.before"] == 5.0 and again["a"] == pytest.approx(point["a"], rel=1e-12)


@pytest.mark.skipif(PROGRAM is None, reason="ngspice is not installed")
@pytest.mark.parametrize("name", [name for name in FORMULAS if "level" not in name])  # ngspice begins at its slope of 0
def test_ngspice_runs_formulas_as_written(name: str) -> None:
    c = loaded(DRIVEN + FORMULAS[name].cards)
    accurate = f".options reltol=1e-12 abstol=1e-16 vntol=1e-14 gmin=1e-30\n{CONTROL}"
    theirs, _ = run(dumps(c).replace(".op\n.end\n", accurate), {})
    assert theirs["a"] == pytest.approx(circuitsim.solve(c)["a"], rel=1e-8)
