"""The decks of netlists/refused/ fail as they must: the exit code, and a witness that names elements and nodes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import circuitsim
from circuitsim.cli import main
from circuitsim.errors import InfeasibleError, NetlistError, NoSteadyStateError, UnboundedError

REFUSED = Path(__file__).parents[2] / "netlists" / "refused"

NO_STEADY_STATE = {
    # deck: (error, elements of the witness, its nodes)
    "infeasible-diode": (InfeasibleError, {"V1", "D1"}, {"a", "0"}),
    "infeasible-chain": (InfeasibleError, {"V1", "D1", "V2", "D2"}, {"a", "b", "c", "0"}),
    "infeasible-sources": (InfeasibleError, {"V1", "V2", "V3"}, {"a", "b", "0"}),
    "infeasible-microvolt": (InfeasibleError, {"V1", "V2"}, {"a", "0"}),
    "infeasible-short": (InfeasibleError, {"V1", "L1"}, {"a", "0"}),
    "unbounded-diode": (UnboundedError, {"I1"}, {"a"}),
    "unbounded-capacitor": (UnboundedError, {"I1"}, {"a"}),
    "unbounded-island": (UnboundedError, {"I1", "I2"}, {"p", "q"}),
}

NOT_UNDERSTOOD = {
    # deck: (line, name of the element, words of the reason)
    "nonlinear-source": (6, "B1", "the product of voltages or currents"),
    "transistor": (6, "Q1", "transistor"),
}


def test_every_refused_deck_is_pinned() -> None:
    assert {path.stem for path in REFUSED.glob("*.cir")} == set(NO_STEADY_STATE) | set(NOT_UNDERSTOOD)


@pytest.mark.parametrize("name", sorted(NO_STEADY_STATE))
def test_no_steady_state(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    kind, elements, nodes = NO_STEADY_STATE[name]
    path = REFUSED / f"{name}.cir"
    with pytest.raises(NoSteadyStateError) as caught:
        circuitsim.solve(circuitsim.load(path))
    assert type(caught.value) is kind
    assert set(caught.value.elements) == elements
    assert set(caught.value.nodes) == nodes
    assert main(["solve", str(path), "--format", "json"]) == 3
    out, err = capsys.readouterr()
    cause = json.loads(out)["cause"]
    assert cause["kind"] == ("cycle" if kind is InfeasibleError else "cut")
    assert set(cause["elements"]) == elements
    assert err.startswith("error: ") and "Traceback" not in err
    assert all(name in err for name in elements)


@pytest.mark.parametrize("name", sorted(NOT_UNDERSTOOD))
def test_not_understood(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    line, element, words = NOT_UNDERSTOOD[name]
    path = REFUSED / f"{name}.cir"
    with pytest.raises(NetlistError) as caught:
        circuitsim.load(path)
    problem = caught.value.problems[0]
    assert problem.location is not None and problem.location.line == line
    assert element in problem.message and words in problem.message
    assert main(["solve", str(path)]) == 2
    err = capsys.readouterr().err
    assert f"{name}.cir:{line}:" in err and "Traceback" not in err


def test_the_excess_is_stated_in_volts_and_amperes() -> None:
    with pytest.raises(InfeasibleError, match=r"by 5 V"):
        circuitsim.solve(circuitsim.load(REFUSED / "infeasible-chain.cir"))
    with pytest.raises(InfeasibleError, match=r"by 1e-06 V"):
        circuitsim.solve(circuitsim.load(REFUSED / "infeasible-microvolt.cir"))
    with pytest.raises(UnboundedError, match=r"0\.001 A into the nodes p, q"):
        circuitsim.solve(circuitsim.load(REFUSED / "unbounded-island.cir"))
