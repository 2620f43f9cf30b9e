"""Arguments of public functions: numbers may be SPICE text; whatever is refused is named, with what to write."""

import contextlib
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import circuitsim
from circuitsim import Circuit
from circuitsim.circuit import waveforms
from circuitsim.errors import ArgumentError, CircuitError, TopologyError, UsageError
from circuitsim.time_domain import Pulse, Sine, Switch

DECK = circuitsim.loads("divider\nV1 in 0 10 AC 1\nR1 in out 1k\nR2 out 0 1k\nC1 out 0 1u\n")
CIRCUIT = DECK.circuit


def built() -> Circuit:
    c = Circuit()
    c.voltage_source("V1", "in", "0", 1.0)
    return c


REFUSED: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], str]] = [
    (circuitsim.transient, (DECK, 1e-3), {"tolerance": "tight"}, "tolerance must be a number between 0 and 1, not"),
    (circuitsim.transient, (DECK, 1e-3), {"accuracy": [1]}, "accuracy must be a finite number such as 4700"),
    (circuitsim.transient, (DECK, 1e-3), {"points": 2.5}, "points must be a whole number from 2 to 1,000,000, not 2.5"),
    (circuitsim.transient, (DECK, 0), {}, "stop must be a finite number above 0, not 0"),
    (circuitsim.transient, (DECK, 1e-3, {"V1": 5}), {}, "waveforms['V1'] must be a waveform such as Sine(0, 1, 50),"),
    (circuitsim.transient, (DECK, 1e-3, 1001), {}, "waveforms must be a dict such as {'V1': Sine(0, 1, 50)}"),
    (circuitsim.transient, (DECK, 1e-3), {"initial": {"C1": math.nan}}, "initial['C1'] must be a finite number such"),
    (circuitsim.transient, (DECK, 1e-3), {"progress": 1}, "progress must be a function, not 1"),
    (circuitsim.ac, (DECK, "fast"), {}, "frequencies[0] must be a finite number of at least 0, not 'fast'"),
    (circuitsim.ac, (DECK, [1.0, -1.0]), {}, "frequencies[1] must be a finite number of at least 0, not -1.0"),
    (circuitsim.ac, (DECK, 1.0, {"V1": "big"}), {}, "sources['V1'] must be a finite number, real or complex, such as"),
    (circuitsim.ac, (3, 1.0), {}, "a circuit or a deck is needed, not int: circuitsim.load(path) reads a file"),
    (circuitsim.montecarlo, (DECK, "R*=5%", "v(out)"), {"samples": 1}, "samples must be a whole number from 2 to"),
    (circuitsim.montecarlo, (DECK, 5, "v(out)"), {}, "tolerances must be text such as 'R*=5%', or a list of such, not"),
    (circuitsim.montecarlo, (DECK, "R*=5%", 1), {}, "observe must be text such as 'v(out)', or a list of such, not 1"),
    (circuitsim.sweep, (DECK, ["R1"]), {}, "vary must be a dict such as {'V1': [0, 5]}, not ['R1']"),
    (circuitsim.sweep, (DECK, {"V1": [1, "a"]}), {}, "V1[1] must be a finite number such as 4700 or '4.7k', not 'a'"),
    (circuitsim.curve, (CIRCUIT, "out", [0, 1]), {}, "between must be two nodes such as ('out', '0'), not 'out'"),
    (circuitsim.curve, (CIRCUIT, ("out", "0"), []), {}, "voltages must be a list of numbers, at least 1, not []"),
    (circuitsim.optimise, (DECK, {"R1": 5}, "v(out)=2"), {}, "adjust['R1'] must be two bounds such as (100, '10k'),"),
    (circuitsim.load, (None,), {}, "path must be a file name, not None"),
    (circuitsim.loads, (3,), {}, "text must be the text of a deck (circuitsim.load reads files), not 3"),
    (circuitsim.dump, (CIRCUIT, 3), {}, "path must be a file name, not 3"),
    (circuitsim.run, ("deck.cir",), {}, "deck must be a deck: circuitsim.load(path) reads one, not 'deck.cir'"),
    (circuitsim.solve, (DECK,), {"solver": 3}, "solver must be text, not 3"),
    (circuitsim.measure, (DECK, "m MAX v(out)"), {}, "result must be a result of circuitsim.transient, not Deck("),
    (circuitsim.batched, (CIRCUIT, ["V1"], ("out", "0")), {}, "outputs[0] must be two nodes such as"),
    (Sine, (0, "one", 50), {}, "amplitude must be a finite number such as 4700 or '4.7k', not 'one'"),
    (Sine, (0, 1, math.nan), {}, "frequency must be a finite number such as 4700 or '4.7k', not nan"),
    (Pulse, (0, 1), {"rise": -1}, "rise must be a number of at least 0, not -1"),
    (Pulse, (0, 1), {"period": 0}, "period must be a number above 0, not 0"),
    (waveforms.PiecewiseLinear, ([0, math.nan], [0, 1]), {}, "times[1] must be a finite number"),
    (waveforms.Exponential, (0, 1, 0, 0, 1, 1), {}, "rise_constant and fall_constant must not be 0"),
    (built().resistor, ("R1", "in", "0", True), {}, "R1: resistance must be a finite number such as 4700 or '4.7k',"),
    (built().resistor, ("R1", "in", "0", 1j), {}, "R1: resistance must be a finite number such as"),
    (built().resistor, ("R1", "in", "0", [1]), {}, "R1: resistance must be a finite number such as"),
    (built().resistor, ("", "in", "0", 1), {}, "element name must be a name without blanks, such as 'R1', not"),
    (built().resistor, ("R 1", "in", "0", 1), {}, "element name must be a name without blanks, such as 'R1', not"),
    (built().resistor, (3, "in", "0", 1), {}, "element name must be a name without blanks, such as 'R1', not"),
    (built().resistor, ("R1", "a b", "0", 1), {}, "node name must be a name without blanks, such as 'R1', not"),
    (built().current_source, ("I1", "in", "0", 1, 5), {}, "I1: waveform must be a waveform such as Sine(0, 1, 50),"),
    (built().current_source, ("I1", "in", "0"), {"ac": "big"}, "I1: ac must be a finite number, real or complex"),
    (built().vcvs, ("E1", "a", "0", "in", 2), {}, "E1: control must be two nodes such as ('out', '0'), not 'in'"),
    (built().switch, ("S1", "a", "0", "V1", 1), {"on": -1}, "S1: its resistances on and off must not be negative"),
    (circuitsim.CrossbarLayer, ([[1]], "wide"), {}, "word_wire must be a finite number of at least 0, not 'wide'"),
    (circuitsim.CrossbarLayer, ("wide",), {}, "the conductances of a crossbar are a matrix (rows, columns)"),
    (circuitsim.prepared(CIRCUIT).solve, ("1k",), {}, "values must be a dict such as {'R1': 1e3}, or values of all"),
    (circuitsim.prepared(CIRCUIT).solve, ({},), {"start": "x"}, "start must be an operating point, as solve returns"),
    (built().with_values, ([("V1", 1)],), {}, "values must be a dict such as {'R1': 1e3}, not [('V1', 1)]"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "given", "named", "message"), REFUSED)
def test_wrong_arguments_are_named(call: Callable[..., Any], given: Any, named: Any, message: str) -> None:
    with pytest.raises(CircuitError) as caught:
        call(*given, **named)
    assert str(caught.value).startswith(message)


def test_an_argument_error_is_a_usage_error_and_a_value_error() -> None:
    assert issubclass(ArgumentError, UsageError) and issubclass(ArgumentError, TopologyError)
    assert issubclass(ArgumentError, ValueError)


def test_text_is_a_number_and_one_is_a_list_of_one() -> None:
    """SPICE text gives the same results as numbers; a name or a quantity alone is a list of one."""
    assert circuitsim.ac(DECK, "1k")["out"] == pytest.approx(circuitsim.ac(DECK, [1e3])["out"], rel=1e-15)
    assert circuitsim.ac(DECK, ["1k", np.float32(10)]).frequencies.tolist() == [1e3, 10.0]
    assert circuitsim.ac(DECK, "1k", {"V1": "2"})["out"] == pytest.approx(2.0 * circuitsim.ac(DECK, 1e3)["out"])
    assert Sine("1", "2k", 50).value(0.0) == 1.0 and Pulse(0, 1, "1m").delay == 1e-3
    run = circuitsim.transient(DECK, "1m", points="11", accuracy="1m", tolerance="1n", initial={"C1": "2"})
    assert run.times.size == 11 and run.voltage("out")[0] == pytest.approx(2.0)
    few = circuitsim.montecarlo(DECK, "R*=5%", "v(out)", samples="10", specifications="v(out)<6", workers=1)
    assert few["v(out)"].mean == circuitsim.montecarlo(DECK, ["R*=5%"], ["v(out)"], 10, workers=1)["v(out)"].mean
    assert circuitsim.sweep(DECK, {"V1": ["1", 2]}, "v(out)")["v(out)"].tolist() == [0.5, 1.0]
    assert circuitsim.optimise(DECK, "R2", "v(out)=2").values["R2"] == pytest.approx(250.0)
    assert circuitsim.optimise(DECK, {"R2": (100, "10k")}, "v(out)=2").bounds["R2"] == pytest.approx((100.0, 10e3))


BAD = [None, "abc", "", math.nan, math.inf, -1, 0, True, 2.5, 1j, [], ["zz"], [math.nan], [None], {}, {"zz": 1}, {1: 2}]
BAD += [{"R1": math.nan}, {"R1": "abc"}, object(), b"x", 10**400, np.ones((2, 2)), ("in", "zz")]
CALLS: dict[str, dict[str, Any]] = {
    "solve": {"circuit": DECK},
    "prepared": {"circuit": DECK},
    "ac": {"circuit": DECK, "frequencies": [1e3]},
    "batched": {"circuit": CIRCUIT, "inputs": ["V1"], "outputs": [("out", "0")]},
    "circuit_block": {"deck": DECK, "inputs": "V1", "outputs": "v(out)", "trainable": "R1"},
    "curve": {"circuit": CIRCUIT, "between": ("out", "0"), "voltages": [0.0, 1.0], "without": ["V1"]},
    "draw": {"source": DECK},
    "dumps": {"circuit": CIRCUIT},
    "effective_matrix": {"circuit": CIRCUIT, "inputs": ["V1"], "outputs": ["out"]},
    "ir_drop": {"source": DECK},
    "loads": {"text": "t\nV1 1 0 1\nR1 1 0 1\n"},
    "montecarlo": {"source": DECK, "tolerances": "R*=1%", "observe": "v(out)", "samples": 4, "workers": 1},
    "optimise": {"source": DECK, "adjust": "R2", "targets": "v(out)=2", "iterations": 2},
    "poles": {"circuit": DECK},
    "run": {"deck": DECK},
    "sensitivity": {"source": DECK, "outputs": "v(out)"},
    "sweep": {"source": DECK, "vary": {"V1": [1.0, 2.0]}},
    "transfer_function": {"source": DECK, "output": "v(out)", "input_source": "V1"},
    "worst_case": {"source": DECK, "tolerances": "R*=1%", "observe": "v(out)"},
}


def refuses(call: Callable[..., Any], usual: dict[str, Any], key: str) -> None:
    """Any other error than those of circuitsim for a bad argument is a failure."""
    for bad in BAD:
        with contextlib.suppress(CircuitError):
            call(**{**usual, key: bad})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_no_argument_raises_another_error(name: str) -> None:
    """Every argument of an analysis works or raises an error of circuitsim."""
    call, usual = getattr(circuitsim, name), CALLS[name]
    for key, parameter in inspect.signature(call).parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD and key not in ("executor", "checkpoint"):
            refuses(call, usual, key)


BUILDERS: dict[str, dict[str, Any]] = {
    "resistor": {"name": "R9", "first": "a", "second": "b", "resistance": 1},
    "coupled": {"first": "L1", "second": "L2", "factor": 0.5},
    "diode": {"name": "D9", "anode": "a", "cathode": "b", "is_": 1e-14},
    "zener": {"name": "D9", "anode": "a", "cathode": "b", "voltage": 1},
    "voltage_source": {"name": "V9", "positive": "a", "negative": "b", "voltage": 1, "waveform": None, "ac": 1},
    "switch": {"name": "S9", "first": "a", "second": "b", "control": "V1", "threshold": 1, "on": 1, "closed": False},
    "amplifier": {"name": "X9", "left": "a", "right": "b", "gain": 2},
    "add": {"letter": "R", "name": "R9", "first": "a", "second": "b", "value": 1},
    "device": {"name": "D9", "first": "a", "second": "b", "device": None},
    "vcvs": {"name": "E9", "first": "a", "second": "b", "control": ("a", "0"), "gain": 2},
    "cccs": {"name": "F9", "first": "a", "second": "b", "control": "V1", "gain": 2},
    "opamp": {"name": "U9", "output": "b", "plus": "a", "minus": "0"},
    "transformer": {"name": "T9", "first": ("a", "0"), "second": ("c", "0"), "ratio": 2},
    "subcircuit": {"name": "X9", "circuit": CIRCUIT, "nodes": {"in": "a"}},
    "with_values": {"values": {"V1": 2}},
}


@pytest.mark.parametrize("name", BUILDERS)
def test_no_builder_raises_another_error(name: str) -> None:
    def call(**given: Any) -> None:
        c = built()
        c.inductor("L1", "in", "0", 1e-3)
        c.inductor("L2", "b", "0", 1e-3)
        getattr(c, name)(**given)

    for key in BUILDERS[name]:
        refuses(call, BUILDERS[name], key)


@pytest.mark.parametrize("name", ["Sine", "Pulse", "PiecewiseLinear", "Exponential", "FrequencyModulation"])
def test_no_waveform_raises_another_error(name: str) -> None:
    made = getattr(waveforms, name)
    needed = {k: 1.0 for k, p in inspect.signature(made).parameters.items() if p.default is p.empty}
    for key in inspect.signature(made).parameters:
        refuses(made, needed, key)


def test_switches_are_checked() -> None:
    with pytest.raises(UsageError, match=r"switches\['R1'\] must be a Switch, not 5"):
        circuitsim.transient(CIRCUIT, 1e-3, switches={"R1": 5})
    assert circuitsim.transient(CIRCUIT, 1e-3, switches={"R1": Switch(("in", "0"), 1.0)}).times.size == 1001
