"""Cards that act over time alone: ``.meas tran`` and ``.ic``."""

from __future__ import annotations

from collections.abc import Callable

from circuitsim.circuit import Circuit
from circuitsim.errors import TopologyError
from circuitsim.netlist.cards import Card
from circuitsim.netlist.deck import InitialValues, MeasurementRequest
from circuitsim.netlist.problems import Reporter
from circuitsim.netlist.tokens import MARK, CardError, Token
from circuitsim.units import short

FORM = ".ic v(out)=2 v(x1.a)=0.5 i(L1)=1m"
OTHERS = frozenset(("ac", "dc", "op", "tf", "noise", "sp", "pz", "fft", "hb"))
"""Analyses whose measurements are not done."""


def measurement(card: Card, after: int) -> MeasurementRequest | None:
    """``.meas tran NAME …``, whose text `circuitsim.time_domain.measure` reads; None for other analyses.

    LTspice leaves out which analysis it is.
    """
    words = card.text[after:].split(None, 1)
    if len(words) < 2 or words[0].lower() in OTHERS:
        return None
    text = words[1] if words[0].lower() == "tran" else card.text[after:]
    return MeasurementRequest(text.strip(), card.place(card.start()))


def initial_values(
    card: Card, found: list[Token], circuit: Circuit, number: Callable[[Token], float], reporter: Reporter
) -> InitialValues | None:
    """``.ic v(a)=1 i(L1)=2``; None, with a warning, where it is neither."""
    voltages: dict[str, float] = {}
    currents: dict[str, float] = {}
    while found:
        texts = [token.text.lower() for token in found[:5]]
        if len(found) < 6 or texts[0] not in ("v", "i") or texts[1::2] != ["(", ")"] or texts[4] != "=":
            reporter.warning(
                "analysis",
                ".ic is read as potentials and inductor currents; this one has no effect",
                card,
                found[0].offset,
                FORM,
            )
            return None
        name, value = found[2], found[5]
        if value.kind == MARK:
            raise CardError("syntax", ".ic: a number is missing", value.offset, FORM)
        try:
            if texts[0] == "v":
                voltages[circuit.node_names[circuit.node_index(name.text)]] = number(value)
            else:
                currents[circuit.names[circuit.element_index(name.text)]] = number(value)
        except TopologyError:
            reporter.warning(
                "analysis",
                f".ic: the circuit has no {short(name.text)}; it has no effect",
                card,
                name.offset,
                "circuitsim solve lists nodes and elements",
            )
        found = found[6:]
    return InitialValues(voltages, currents, card.place(card.start()))
