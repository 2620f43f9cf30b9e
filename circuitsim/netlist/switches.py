"""Cards of switches: ``S`` (a voltage controls) and ``W`` (the current of a voltage source controls).

In the circuit a switch is a resistor in the state that its card states; analyses of decks operate it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from circuitsim.circuit.dynamics import SwitchLaw
from circuitsim.circuit.elements import RESISTOR, VOLTAGE
from circuitsim.netlist.physical import SWITCH
from circuitsim.netlist.scope import Count, ElementCard, ModelUse, SwitchControl
from circuitsim.netlist.tokens import CardError, fields
from circuitsim.units import short

if TYPE_CHECKING:
    from circuitsim.netlist.parts import ElementReader
    from circuitsim.netlist.protocols import Elaboration, Frame

FORMS = {"s": "Sname n+ n- nc+ nc- model [ON|OFF]", "w": "Wname n+ n- Vname model [ON|OFF]"}
LETTERS = frozenset(FORMS)
STATES = {"on": 1.0, "off": 0.0}
GRADUAL = (
    "over time a switch with a negative hysteresis (%s) changes at once at its threshold; in LTspice its resistance "
    "changes gradually about it"
)
"""Warning of such models."""


def element(reader: ElementReader) -> None:
    """Take a card of a switch.

    Raises
    ------
    CardError
    """
    parts, scope, card, name = reader.parts, reader.scope, reader.card, reader.name
    letter = name.text[0].lower()
    parts.check_name(scope, name, card)
    words = fields(card, reader.found[1:]).take()
    nodes = 4 if letter == "s" else 2
    model = nodes if letter == "s" else nodes + 1
    if not model + 1 <= len(words) <= model + 2:
        ends_at = "four nodes" if nodes == 4 else "two nodes, a source"
        raise CardError("syntax", f"{reader.shown} needs {ends_at} and a model", card.last, FORMS[letter])
    last = words[-1]
    state = last.word if len(words) == model + 2 else "off"
    if state not in STATES:
        message = f"{reader.shown}: {short(last.text)!r} is neither ON nor OFF"
        raise CardError("syntax", message, last.offset, FORMS[letter])
    ends = [parts.node(scope, token) for token in words[:nodes]]
    use = ModelUse(card, words[model].offset, name.text, words[model].text)
    own = {"closed": Count(card, last.offset, STATES[state])}
    control = SwitchControl(card, tuple(ends[2:]), None if letter == "s" else words[2], STATES[state] > 0.0)
    scope.element(RESISTOR, name.text, ends[0], ends[1], ElementCard(card, use.offset, None, own, use, switch=control))


def law(elaborator: Elaboration, frame: Frame, k: int, control: SwitchControl) -> SwitchLaw | None:
    """Switch ``k`` of a scope in one call; None where its model is missing, which is reported elsewhere."""
    scope, name, letter = frame.scope, frame.name(k), frame.letter(k)
    try:
        model = elaborator.element_values.model(frame, scope.stated[k], letter, name)
    except CardError:
        return None
    if model is None:
        return None
    stated = elaborator.element_values.model_values(frame, model, letter)
    numbers = {word: stated.get(word, default) for word, default in SWITCH.items()}
    numbers |= {"vt": stated.get("it", numbers["vt"]), "vh": stated.get("ih", numbers["vh"])}
    numbers |= {"ron": numbers["ron"] / frame.multiplier, "roff": numbers["roff"] / frame.multiplier}
    if numbers["vh"] < 0.0:
        elaborator.reporter.gather("hysteresis", GRADUAL, control.card, control.card.start, name, "write vh=0")
    if control.source is None:
        first, second = map(frame.node, control.nodes)
        return SwitchLaw((first, second), numbers, control.closed)
    place = scope.index.get(control.source.word)
    if place is None or scope.kind[place] != VOLTAGE:
        elaborator.reporter.error(
            "controlled",
            f"{short(name)}: {short(control.source.text)!r} is no voltage source",
            control.card,
            control.source.offset,
            "the source's current controls it",
            [name],
        )
        return None
    return SwitchLaw(frame.prefix + scope.names[place], numbers, control.closed)
