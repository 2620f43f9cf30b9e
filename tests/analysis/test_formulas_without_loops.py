"""Sources by formulas of voltages and currents that do not depend on them."""

import math

import numpy as np
import pytest

import circuitsim
from circuitsim.circuit import ELEMENTS
from circuitsim.circuit.elements import AFFINE_VOLTAGE
from circuitsim.errors import NetlistError, UsageError
from circuitsim.netlist import loads
from circuitsim.plotting.drawing import controls, symbol
from circuitsim.time_domain import Value

CHAIN = """two levels, an op-amp before them, a diode and a switch after them
V1 a 0 DC 1 AC 1
R1 a m 1k
R2 m o 2k
E1 o 0 OPAMP 0 m
B1 q 0 V=v(o)*v(o)+i(R1)*1k
Rq q d 1k
D1 d 0 DM
.model DM D(IS=1e-12)
B2 0 x I={if(v(q)>4, 1m, 0)*cos(v(d)*v(a))}
Rx x 0 1k
Cx x 0 1n
S1 x y q 0 SW
.model SW SW(VT=1 RON=1k ROFF=1e9)
Ry y 0 2k
"""


def test_the_values_of_one_level_determine_the_next() -> None:
    deck = loads(CHAIN)
    point = circuitsim.solve(deck)
    assert (point["o"], point["q"]) == pytest.approx((-2.0, 5.0))
    assert point["x"] == pytest.approx(0.75 * math.cos(point["d"]))
    swept = circuitsim.sweep(deck, {"V1": [0.5, 1.0]}, "v(q) v(x)")
    assert swept["v(q)"] == pytest.approx([1.5, 5.0]) and swept["v(x)"][0] == 0.0


def test_small_signals_take_the_derivatives() -> None:
    deck, h = loads(CHAIN), 1e-5
    rise = np.diff(circuitsim.sweep(deck, {"V1": [1.0 - h, 1.0 + h]}, "v(x)")["v(x)"])[0] / (2.0 * h)
    assert circuitsim.ac(deck, [1e-3])["x"].real == pytest.approx([rise], rel=1e-8)
    assert circuitsim.sensitivity(deck, "v(x)")["v(x)", "V1"] == pytest.approx(rise, rel=1e-8)
    assert circuitsim.transfer_function(deck, "v(x)", "V1").gain.value == pytest.approx(rise, rel=1e-8)


OVER_TIME = """a comparator behind a low-pass, the power of a source into a thermal node
V1 a 0 SIN(0 5 1k)
R1 a f 1k
C1 f 0 100n
B1 out 0 V=10*tanh(100*v(f))
Bth 0 t I=v(a)*i(R1)
Rt t 0 20
Ct t 0 1u
.tran 1u 3m
"""


def test_a_run_for_each_level() -> None:
    run = circuitsim.transient(loads(OVER_TIME))
    t, w, tau = run.times, 2e3 * math.pi, 1e-4
    decay = w * tau * np.exp(-t / tau)
    v = 5.0 * (np.sin(w * t) - w * tau * np.cos(w * t) + decay) / (1.0 + (w * tau) ** 2)
    assert np.abs(run.voltage("out") - 10.0 * np.tanh(100.0 * v)).max() <= 3.0 * 1e-4 * 10.0
    power, heat = 5.0 * np.sin(w * t) * (5.0 * np.sin(w * t) - v) / 1e3, np.zeros(t.size)
    for n in range(1, t.size):  # exact for linear power
        e = math.exp(-1.0 / 20.0)
        mean = 20.0 * (1.0 - e)
        heat[n] = heat[n - 1] * e + power[n - 1] * 20.0 * (1.0 - e) + (power[n] - power[n - 1]) * (20.0 - 20.0 * mean)
    assert np.abs(run.voltage("t") - heat).max() <= 3e-4 * heat.max()
    assert "formula of voltages and currents" in run.reason
    with pytest.raises(UsageError, match="no gradients"):
        circuitsim.waveform_gradient(run, [Value("v(t)", 1e-3)], ["R1"])
    with pytest.raises(UsageError, match="this analysis does not follow"):
        circuitsim.steady_state(loads(OVER_TIME.replace("v(a)*", "v(f)*")))


@pytest.mark.parametrize(
    "cards",
    [
        "B1 b 0 V=tanh(v(c))\nR1 b c 1k\nR2 c 0 1k\n",
        "R1 b 0 1\nB1 b 0 I=exp(v(x))\nB2 x 0 V=i(V1)*i(V1)\nR2 x 0 1\nR3 a b 1\n",
        "R1 a m 1k\nB1 x 0 V=v(o)*v(o)\nR2 m x 2k\nE1 o 0 OPAMP 0 m\nR3 o 0 1k\n",
    ],
)
def test_a_formula_in_a_loop_is_refused(cards: str) -> None:
    with pytest.raises(NetlistError, match="and what it reads depends on it"):
        loads(f"t\nV1 a 0 1\n{cards}")


def test_a_loop_over_time_is_refused_before_the_run() -> None:
    deck = loads("t\nV1 a 0 1\nR1 a m 1k\nC1 m s 1u\nR2 s 0 1k\nB1 s 0 I=1m*v(m)*v(m)\n.tran 1u 1m\n")
    assert circuitsim.solve(deck)["s"] == pytest.approx(-1.0)
    with pytest.raises(UsageError, match="depend on it over time"):
        circuitsim.transient(deck)


def test_drawings_show_what_a_formula_reads() -> None:
    circuit = loads(OVER_TIME).operating_circuit
    read = {circuit.names[k]: (nodes, elements) for k, nodes, elements in controls(circuit)}
    assert read["B1"] == ([circuit.node_index("f"), 0], [])
    assert symbol(circuit, circuit.element_index("B1")) == ELEMENTS[AFFINE_VOLTAGE].symbol


MIXER = "t\nV1 a 0 SIN(0 1 1k)\nR1 a b 1k\nC1 b 0 10n\nB1 o 0 V=v(b)*cos(2*pi*10k*time)\nR3 o 0 1k\n.tran 1u 2m\n"


def test_a_formula_of_time_and_of_a_voltage() -> None:
    run = circuitsim.transient(loads(MIXER))
    assert run.voltage("o") == pytest.approx(run.voltage("b") * np.cos(2e4 * math.pi * run.times), abs=3e-4)


def test_what_runs_and_sweeps_say() -> None:
    deck = loads(OVER_TIME)
    with pytest.raises(UsageError, match=r"was ended at .* s, before B(1|th) was known"):
        circuitsim.transient(deck, method="implicit", progress=lambda time, end: time > 1e-3)
    with pytest.raises(UsageError, match="B1 reads the time and the solution"):
        circuitsim.sweep(loads(MIXER), {"time": [0.0, 1e-3]}, "v(o)")
    with pytest.raises(NetlistError, match=r"sqrt\(-0.0.*\): outside the domain of the function at 0.0005"):
        circuitsim.transient(loads("t\nB1 a 0 V=sqrt(sin(6283*time))\nR1 a 0 1\n.tran 10u 1m\n"))
