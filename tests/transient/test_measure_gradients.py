"""Gradients of `.meas` values against differences of the measurements themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from differences import Values, along
from test_gradients_of_devices import FAMILIES, clamp, flyback, oscillator, pump

from circuitsim.errors import UsageError
from circuitsim.time_domain import TransientResult, measure, measure_gradient

OWN: dict[Callable[[Values], TransientResult], list[str]] = {
    clamp: [
        "x PP v(o) FROM=0.1",
        "x MAX i(D1) FROM=0.11 TO=0.13",
        "x MIN v(p) FROM=0.2",
        "x AVG i(Rs)",
        "x RMS v(o) TO=0.3",
        "x WHEN v(p)=6 RISE=7",
        "x TRIG v(p) VAL=6 RISE=3 TARG v(o) VAL=4.4 FALL=LAST",
        "x FIND v(o) WHEN v(p)=6 FALL=5",
        "x FIND v(p) AT=0.2",
        "x INTEG v(p) FROM=0.01",
    ],
    oscillator: [
        "x MIN v(c) FROM=1m",
        "x PP i(S1) FROM=20m",
        "x TRIG v(c) VAL=5 RISE=3 TARG v(c) VAL=5 RISE=9",
        "x WHEN i(S1)=1m CROSS=11",
    ],
    flyback: ["x MAX v(o) FROM=400u", "x PP i(L1) FROM=500u", "x WHEN i(D1)=0.1 RISE=20"],
    pump: ["x MIN v(o) FROM=10m", "x MAX v(o) FROM=10.2m TO=11.2m", "x WHEN v(b)=1 CROSS=31", "x PP i(R1) FROM=30m"],
}


@pytest.mark.parametrize(("run", "text"), [(run, text) for run, texts in OWN.items() for text in texts])
def test_against_differences(run: Callable[[Values], TransientResult], text: str) -> None:
    values = next(usual for own, usual, _ in FAMILIES if own is run)
    direction = {name: 1.0 - 2.0 * (k % 3 == 1) for k, name in enumerate(values)}
    values_found, gradient = measure_gradient(run(values), [text], list(values))

    def loss(other: Values) -> float:
        found = measure(run(other), text).value
        assert found is not None
        return found

    assert values_found["x"] == pytest.approx(loss(values), rel=1e-12)
    exact = sum(gradient[name] * direction[name] * values[name] for name in values)
    size = sum(abs(gradient[name] * values[name]) for name in values)
    step = 1e-5 if run in (oscillator, flyback) else 1e-4
    assert exact == pytest.approx(along(loss, values, direction, step), abs=3e-7 * size)
    # Crossings at a step of a source do not move.
    assert size > 1e-9 or (run is pump and "WHEN" in text)


def test_what_has_no_gradient() -> None:
    run = pump(FAMILIES[6][1])
    for text, said in (
        ("x DERIV v(o) AT=1m", "no gradient"),
        ("x PARAM='1'", "no gradient"),
        ("x MAX_AT v(o)", "no gradient"),
        ("x MAX {2*v(o)}", "neither"),
    ):
        with pytest.raises(UsageError, match=said):
            measure_gradient(run, [text], ["R1"])
    assert measure_gradient(run, ["x WHEN v(o)=1000"], ["R1"]) == ({"x": None}, {"R1": 0.0})
