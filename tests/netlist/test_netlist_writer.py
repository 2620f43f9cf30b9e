"""`dumps`: exact, legal, the same circuit again, and ngspice runs it."""

from __future__ import annotations

import math
import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from circuitsim import Circuit
from circuitsim.errors import NetlistError
from circuitsim.netlist import dump, dumps, load, loads

needs_ngspice = pytest.mark.skipif(shutil.which("ngspice") is None, reason="ngspice is not installed")

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
TRICKY = st.sampled_from(
    ["0", "GND", "x1.m", "time", "//", "a b", "a\n.end", "*", "+", "$x", "n'", "{q}", "R1", "VR1", "é", "=", ""]
)
VALUES = st.one_of(st.just(0.0), st.floats(1e-300, 1e300), st.integers(0, 10**6).map(float))


@st.composite
def circuits(draw):
    """Circuits built by hand: any names, any values."""
    circuit = Circuit(draw(st.one_of(NAMES, TRICKY, st.just("R1 a 0 1k"), st.just(".include x"))))
    for k in range(draw(st.integers(1, 12))):
        name = draw(st.one_of(NAMES, TRICKY))
        name = f"{name}{k}" if name in circuit or not name else name
        first, second = draw(st.one_of(NAMES, TRICKY)), draw(st.one_of(NAMES, TRICKY))
        letter = draw(st.sampled_from("RDVILC"))
        value = None if letter == "D" else draw(VALUES)
        if letter in "VI" and draw(st.booleans()):
            value = -(value or 0.0)
        circuit.add(letter, name, first, second, value)
    return circuit


def shape(circuit):
    """Kinds, node numbers and exact values; a resistor of zero ohm is a source of zero volt."""
    found = []
    for k, element in enumerate(circuit):
        kind, value = element.kind, element.value
        if kind == "resistor" and value == 0:
            kind = "voltage source"
        found.append((kind, circuit.columns()[1][k], circuit.columns()[2][k], value))
    return found


@given(circuits())
def test_any_circuit_comes_back(circuit):
    again = loads(dumps(circuit))
    renumbered = {}
    expected = []
    for kind, first, second, value in shape(circuit):
        ends = [renumbered.setdefault(n, len(renumbered) + 1) if n else 0 for n in (first, second)]
        expected.append((kind, *ends, value))
    assert shape(again) == expected
    assert not again.notes
    assert shape(loads(dumps(again))) == shape(again)


def test_the_text():
    circuit = loads("t\n.subckt s a\nR1 a m 0.1\nD1 m 0\nR2 a m 0\n.ends\nX1 µ s\nI1 µ 0 {1/3}\nVR.X1.R2 time 0 1e-9\n")
    assert dumps(circuit) == (
        "t\n* node µ is written n__\n* node time is written n_time\n"
        "R.X1.R1 n__ X1.m 0.1\nD.X1.D1 X1.m 0 circuitsim_ideal\nV.X1.R2 n__ X1.m 0\nI1 n__ 0 0.3333333333333333\n"
        "VR.X1.R2 n_time 0 1e-09\n"
        ".model circuitsim_ideal D(is=1e-12 n=0.01)\n.op\n.end\n"
    )


def test_a_zero_ohm_part_gets_a_name_of_its_own():
    names = loads(dumps(loads("t\nR1 a 0 0\nVR1 a 0 0\nVR1_2 b 0 0\nR2 a b 0\n"))).names
    assert list(names) == ["VR1_3", "VR1", "VR1_2", "VR2"]


@pytest.mark.parametrize(
    "title", ["", "R1 a 0 1", ".include /etc/passwd", ".end", "x\\", "a\nb", "é", "  x", "+ 1", "* c", "a\0b"]
)
def test_titles_are_safe(title):
    circuit = Circuit(title)
    circuit.resistor("R1", "a", "0", 5.0)
    again = loads(dumps(circuit))
    assert len(again) == 1 and not again.notes
    assert loads(dumps(again)).title == again.title
    if title in ("", "é", "* c", "+ 1"):
        assert again.title == title


def test_dump_writes_a_file(tmp_path):
    circuit = loads("t µ\nR1 a 0 5\n")
    dump(circuit, tmp_path / "x.cir")
    assert load(tmp_path / "x.cir").title == "t µ"


def ngspice(folder, text):
    """Node voltages that ngspice computes, by name in lower case."""
    (folder / "t.cir").write_text(text, encoding="utf-8")
    run = subprocess.run(["ngspice", "-b", "t.cir"], cwd=folder, capture_output=True, text=True, timeout=60)
    return {
        node.removeprefix("V(").removesuffix(")").lower() if node.startswith("V(") else node.lower(): float(value)
        for node, value in re.findall(r"^\t(\S+)\s+(-?[0-9.]+e[-+][0-9]+)\s*$", run.stdout, re.M)
    }


RUNS = {
    "divider": ("t\nV1 a 0 6\nR1 a b 1k\nR2 b 0 2k\n", {"b": 4}),
    "zero ohm": ("t\nI1 0 a 1\nR1 a b 0\nR2 b 0 2\n", {"a": 2, "b": 2}),
    # in –1– out, out –1– 0; out –1– y, y –1– 0: 2 V over 1 Ω and 1 ∥ 2 Ω.
    "hierarchy": (
        "t\n.subckt s a b\nR1 a m 1\nR2 m b 0\nR3 b 0 1\n.ends\nV1 in 0 2\nX1 in out s\nX.2 out x1.y s\n",
        {"out": 0.8, "x1.m": 0.8, "x1.y": 0.4},
    ),
    "diode": ("t\nV1 a 0 5\nR1 a b 1k\nD1 b c\nR2 c 0 1k\nD2 0 b\n", {"c": 2.5}),
    "signs in names": ("t\nV1 n[1] 0 5\nR#1 n[1] n<2> 1\nR!2 n<2> 0 4\n", {"n<2>": 4}),
    "shorts": ("t\nV1 a 0 5\nL1 a b 1m\nR1 b 0 1\nC1 b 0 1u\n", {"b": 5}),
    "no title": ("\nV1 a 0 5\nR1 a 0 1\n", {"a": 5}),
    "title": ("* .param x={1\\\nV1 a 0 5\nR1 a 0 1\n", {"a": 5}),
    "mapped": ("t\nV1 time 0 5\nRµ time é 1\nR2 é 0 1\n", {"n__": 2.5}),
}


@pytest.mark.ngspice
@needs_ngspice
@pytest.mark.parametrize("name", RUNS)
def test_ngspice_runs_it(tmp_path, name):
    text, expected = RUNS[name]
    found = ngspice(tmp_path, dumps(loads(text)))
    for node, voltage in expected.items():
        assert found[node] == pytest.approx(voltage, abs=0.02 if name == "diode" else 1e-6)


@pytest.mark.ngspice
@needs_ngspice
def test_every_sign_that_is_kept_is_taken_by_ngspice(tmp_path):
    signs = [c for c in map(chr, range(33, 127)) if not c.isalnum()]
    kept, cards = [], ["t"]
    for k, sign in enumerate(signs):
        circuit = Circuit("t")
        for name, value in ((f"R{sign}a{k}", 1.0), (f"R{k}b{sign}", 1.0)):
            circuit.resistor(name, f"n{sign}{k}", "0", value)
        lines = [line for line in dumps(circuit).split("\n") if line.startswith("R")]
        cards += [*lines, f"I{k} 0 {lines[0].split()[1]} 2"]
        kept.append(lines[0].split()[1])
    found = ngspice(tmp_path, "\n".join([*cards, ".op", ".end", ""]))
    assert len(set(kept)) == len(signs)
    for node in kept:
        assert math.isclose(found[node.lower()], 1.0, rel_tol=1e-6), node


def test_no_deck_can_be_smuggled_in_by_a_name():
    circuit = Circuit("t\nR9 a 0 1")
    circuit.resistor("R1\n.include /etc/passwd\n*", "a\nR8 a 0 1\n", "0;", 1.0)
    text = dumps(circuit)
    assert [line[0] for line in text.split("\n")[1:-1]].count("R") == 1
    assert len(loads(text)) == 1
    with pytest.raises(NetlistError):
        loads("t\n.include /etc/passwd\n")
