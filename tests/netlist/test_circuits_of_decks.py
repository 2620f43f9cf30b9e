"""The circuit of a deck follows what its deck says over time and frequency, or a change is refused; warnings show."""

from __future__ import annotations

import pickle
import random
import warnings

import numpy as np
import pytest

from circuitsim import (
    DeckWarning,
    UsageError,
    ac,
    loads,
    poles,
    prepared,
    sensitivity,
    solve,
    sweep,
    transfer_function,
    transient,
)
from circuitsim.time_domain import steady_state

WAVES = {
    "pulse": "V1 a 0 PULSE(0 1 1u 1u 1u 20u 50u)",
    "sine": "V1 a 0 SIN(0 1 20k)",
    "exponential": "V1 a 0 EXP(0 1 1u 5u 40u 5u)",
    "corners": "V1 a 0 PWL(0 0 10u 1 30u -1 50u 0) r=0",
    "from parameters": ".param f=20k\nV1 a 0 SIN({1-1} {2/2} {f})",
    "current": "I1 0 a SIN(0 1m 20k) m=2\nR9 a 0 1k",
    "formula of the time": "B1 a 0 V={sin(6.283185*20k*time)}",
    "formula of a source": "V9 c 0 SIN(0 1 20k)\nB1 a 0 V={v(c)*v(c)}",
    "affine formula": "V9 c 0 SIN(0 1 20k)\nE1 a 0 VALUE={2*v(c)+1}",
    "gain": "V9 c 0 SIN(0 1 20k)\nE1 a 0 c 0 3",
    "switch": "V1 d 0 1\nV2 c 0 PULSE(0 1 5u 1u 1u 20u 50u)\nS1 d a c 0 sm\n"
    ".model sm SW(vt=.5 ron=1 roff=1meg)\nR9 a 0 1k",
    "coupling": "V1 e 0 SIN(0 1 20k)\nL1 e 0 1m\nL2 a 0 4m\nK1 L1 L2 .5",
}


@pytest.mark.parametrize("wave", WAVES.values(), ids=WAVES)
def test_waveforms_of_a_circuit_are_those_of_its_deck(wave):
    text = f"t\n{wave}\nR1 a b 1k\nC1 b 0 10n\n"
    of_deck, of_circuit = transient(loads(text), 1e-4), transient(loads(text), 1e-4)
    assert np.ptp(of_deck.voltage("b")) > 0.01
    np.testing.assert_allclose(of_circuit.voltage("b"), of_deck.voltage("b"), rtol=0, atol=1e-9)


def test_what_is_given_comes_before_what_the_deck_states():
    from circuitsim.time_domain import PiecewiseLinear

    circuit = loads(f"t\n{WAVES['pulse']}\nR1 a b 1k\nC1 b 0 10n\n")
    found = transient(circuit, 1e-4, {"v1": PiecewiseLinear([0.0, 1e-4], [2.0, 2.0])})
    np.testing.assert_allclose(found.voltage("b"), 2.0)


def test_the_periodic_state_of_a_circuit():
    circuit = loads(f"t\n{WAVES['sine']}\nR1 a b 1k\nC1 b 0 10n\n")
    found = steady_state(circuit, {})
    omega = 2e4 * np.pi * 2
    assert np.ptp(found.voltage("b")) / 2 == pytest.approx(1 / np.hypot(1, omega * 1e-5), rel=1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_affine_sources_follow_new_values(seed):
    chance = random.Random(seed)
    gains = [chance.choice((-3, -0.5, 2, 7)) for _ in range(3)]
    cards = chance.choice(
        (
            f"E1 c 0 a 0 {gains[0]}\nG1 0 d c 0 {gains[1]}m",
            f"E1 c 0 VALUE={{{gains[0]}*v(a)}}\nB1 0 d I={{v(c)*{gains[1]}m}}",
            f"B1 c 0 V={gains[0]}*v(a)\nG1 0 d VALUE={{{gains[1]}m*v(c,0)}} m=1",
        )
    )
    text = f"t\nV1 a 0 {{x}}\n.param x={{x0}}\n{cards}\nR1 c 0 1k\nR2 d e 1k\nR3 e 0 1k\nC1 e 0 1u\n"
    first, second = (loads(text.replace("{x0}", str(x))) for x in (2, 5))
    changed = solve(first.circuit.with_values({"V1": 5}))
    np.testing.assert_allclose(changed.voltages, solve(second).voltages, rtol=1e-12)
    np.testing.assert_allclose(solve(first.elaborate({"x": 2}).with_values({"V1": 5})).voltages, changed.voltages)
    gain = gains[0] * gains[1]  # of v(e): 1 mS into 1 kΩ
    response = ac(first.circuit, [1.0], {"V1": 1.0})
    assert abs(response.voltages[0, first.circuit.node_index("e")]) == pytest.approx(
        abs(gain) / np.hypot(1, 2 * np.pi * 1e-3), rel=1e-9
    )
    assert transfer_function(first.circuit, "v(e)", "V1").gain.above == pytest.approx(gain, rel=1e-9)


NONLINEAR = "t\nV1 a 0 2\nB1 c 0 V={v(a)*v(a)}\nR1 c 0 1k\nC1 c 0 1u\n"


def test_a_formula_that_cannot_follow_is_refused_where_it_would_have_to():
    circuit = loads(NONLINEAR).circuit
    assert solve(circuit).voltage("c") == 4
    frozen = loads("t\nV1 a 0 2\nE1 c 0 a 0 3\nR2 c 0 1k\n")
    for refused in (
        lambda: circuit.with_values({"V1": 4}),
        lambda: solve(frozen).circuit.with_values({"v1": 4}),
        lambda: prepared(circuit),
        lambda: ac(circuit, [1.0], {"V1": 1.0}),
        lambda: poles(circuit),
        lambda: sensitivity(circuit, "v(c)"),
        lambda: sweep(circuit, {"V1": [1.0, 4.0]}, "v(c)"),
    ):
        with pytest.raises(UsageError, match="follows other elements by a formula"):
            refused()
    assert solve(circuit.with_values({"R1": 4})).voltage("c") == 4
    assert sweep(loads(NONLINEAR), {"V1": [1.0, 4.0]}, "v(c)")["v(c)"] == pytest.approx([1, 16])


def test_circuits_travel_with_what_they_carry():
    circuit = loads(f"t\n{WAVES['pulse']}\nR1 a b 1k\nC1 b 0 10n\n")
    other = pickle.loads(pickle.dumps(circuit))
    np.testing.assert_array_equal(transient(other, 1e-4).voltage("b"), transient(circuit, 1e-4).voltage("b"))


def test_warnings_of_a_deck_are_one_python_warning():
    text = "V1 a 0 5\nR1 a b 10M\nR2 b 0 1k\nV2 a 0 1\n"
    with pytest.warns(DeckWarning) as caught:
        found = loads(text)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert [p.kind for p in caught[0].message.problems] == ["title", "mega"]
    assert "the first line is the title" in str(caught[0].message)
    assert {p.kind for p in found.notes} >= {"title", "mega"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loads("t\nV1 a 0 5\nR1 a 0 1k\nC1 a 0 1u\n.tran 1u 1m\n.ac dec 1 1 10\n")
