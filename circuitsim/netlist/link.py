"""Checks after a whole deck is read: calls, models, and the size of expanded sub-circuits.

Amplifiers and a transformer are predefined sub-circuits, written as a deck; a deck's own sub-circuit of the same name
takes precedence.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache, partial
from itertools import islice

from circuitsim.circuit.elements import DIODE, device_model
from circuitsim.errors import similar
from circuitsim.models import MODELS
from circuitsim.netlist import dialect, limits
from circuitsim.netlist.cards import WORD, Card, Files, Reporter, Source, Token, tokens
from circuitsim.netlist.definitions import ADVICE, AMPLIFIER_NAME, DEFAULT_GAIN, GAIN, IDEAL_MODEL
from circuitsim.netlist.expression import outwards
from circuitsim.netlist.parts import OWN_TEMPERATURE
from circuitsim.netlist.reader import DeckReader
from circuitsim.netlist.scope import (
    CARD_MODELS,
    IN_FILE,
    PLAIN,
    TOLERANCES,
    Call,
    Count,
    DeviceUse,
    Model,
    Scope,
    letter_of,
    value_of,
)
from circuitsim.units import NumberError, parse, short

LIBRARY = """\
* v(plus) = v(minus); the output supplies what that needs (nullor)
.subckt ideal_opamp plus minus out
Eout out 0 OPAMP plus minus
.ends
* v(out) = gain (v(plus) - v(minus)), between low and high
.subckt limited_opamp plus minus out gain=1e5 low=-15 high=15
Egain inside 0 plus minus {gain}
Rlimit inside limited 1meg
Dhigh limited top
Vhigh top 0 {high}
Dlow bottom limited
Vlow bottom 0 {low}
Eout out 0 limited 0 1
.ends
* v(c,d) = ratio v(a,b), the current into a is -ratio times the current into c
.subckt ideal_transformer a b c d ratio=1
Esecond c d a b {ratio}
Ffirst a b Esecond {-ratio}
.ends
"""


@cache
def _library() -> dict[str, Scope]:
    """The predefined sub-circuits by name in lower case; that of the amplifier has no elements."""
    reader = DeckReader(Files(None, ()))
    source = Source("<library>", "", LIBRARY)
    source.number = -1
    reader.read(source, 1)
    reader.close()
    names = reader.top.subcircuits["limited_opamp"].names
    names[:-1] = [f"{names[-1]}.{name}" for name in names[:-1]]  # parts of the output, which tables leave out
    amplifier = Scope(AMPLIFIER_NAME)
    amplifier.ports = [amplifier.node("left"), amplifier.node("right")]
    amplifier.defaults[GAIN] = DEFAULT_GAIN
    return {AMPLIFIER_NAME: amplifier, **reader.top.subcircuits}


DIODE_LETTER = DIODE_TYPE = "D"
"""Elements with models, and the type of their model cards."""

_ROWS = [row for row in MODELS if row.letter == DIODE_LETTER and row.device is not None]
TYPES = tuple(dict.fromkeys((DIODE_TYPE, *(row.card_type for row in _ROWS))))
"""Types of the model cards of elements with this letter."""

MODEL_ERRORS = 100
"""Maximum number of errors about one model of a scope."""

HINTS = 200
"""Maximum number of errors with a suggested name, and of names compared."""


class Linker:
    """Checks every scope reached by calls, and computes its extent, without recursion."""

    def __init__(self, reader: DeckReader, ideal: bool) -> None:
        self.reader, self.reporter, self.ideal = reader, reader.reporter, ideal
        missing = ", ".join(reader.missing[:4])
        self.elsewhere = f"it may be in {missing}, which was not found: {ADVICE}" if missing else ""
        self.extents: dict[Scope, tuple[int, int, int]] = {}
        self.targets: dict[Scope, list[Scope | None]] = {}
        self.scopes: list[Scope] = []
        self.hints = 0
        self.uses_of: dict[Card, DeviceUse | None] = {}
        self.passives: dict[Card, dict[str, Count]] = {}
        self.bare: list[Model] = []
        """Models of diodes without parameters and without a known name."""
        self.devices: dict[Scope, dict[int, DeviceUse]] = {}
        """Scope → position of an element → device of its model, for elements that are devices."""

    def extent(self, scope: Scope, path: tuple[Scope, ...] = ()) -> tuple[int, int, int]:
        """Check a scope, called along a path, and everything it calls, once.

        Returns
        -------
        tuple of int
            Its size expanded: elements, nodes and calls; the characters of their names; nesting depth of calls.
        """
        if scope in self.extents or len(path) > limits.CALL_DEPTH:
            return self.extents.get(scope, (0, 0, 0))
        self.targets[scope] = targets = [self.target(scope, call) for call in scope.calls]
        self.devices[scope] = {}
        for card, error in scope.deferred:
            self.reporter.failure(error, card)
        self.check_models(scope)
        self.scopes.append(scope)
        names, path, depth = [*scope.names, *scope.node_names], (*path, scope), 0
        items, characters = len(names), sum(map(len, names))
        for number, (call, target) in enumerate(zip(scope.calls, targets)):
            called = [] if target is None else target.variants or [target]
            loop = next((path[path.index(one) :] for one in called if one in path), None)
            if loop:
                trail = " → ".join(short(one.name, 20) for one in (*loop, loop[0])[:8])
                message = f"sub-circuit {short(loop[0].name)} calls itself ({trail})"
                self.reporter.error("subcircuit", message, call.target, "break the loop", [call.name])
                targets[number] = None
                continue
            inner = max((self.extent(one, path) for one in called), default=None)
            if inner is None:
                continue
            if len(path) + inner[2] > limits.CALL_DEPTH:
                self.reporter.error("limit", f"calls nest deeper than {limits.CALL_DEPTH}", call.card, "", [call.name])
                continue
            items += inner[0] + 1 + len(call.passed)
            characters += inner[1] + inner[0] * (len(call.name) + 1)
            depth = max(depth, inner[2] + 1)
            large = items - len(names) > limits.EXPANSION or characters > limits.EXPANSION_CHARACTERS
            if scope.card is None and large:
                self.reporter.error(
                    "limit",
                    f"{short(call.name)}: the deck's sub-circuits expand to more than {limits.EXPANSION:,} "
                    f"elements and nodes ({inner[0]:.1e} of them here)"
                    if inner[0] < 1e300
                    else f"{short(call.name)}: the deck's sub-circuits expand without bound",
                    call.card,
                    "call fewer, or smaller ones",
                    [call.name],
                )
                break
        self.extents[scope] = items, characters, depth
        return self.extents[scope]

    def target(self, scope: Scope, call: Call) -> Scope | None:
        """The sub-circuit of ``call``, after checking its ports and parameters."""
        key = call.target.word
        target = scope.found("subcircuits", key) or _library().get(key)
        fail = partial(self.reporter.error, "subcircuit", at=call.target, names=[call.name])
        shown = short(call.name)
        if target is None:
            hint = self.elsewhere or self.near(call.target.text, scope)
            fail(f"{shown}: no sub-circuit is called {short(call.target.text)!r}", hint=hint)
            return None
        if len(call.nodes) != len(target.ports):
            need, have = len(target.ports), len(call.nodes)
            ports = ", ".join(short(target.node_names[p], 20) for p in target.ports[:10])
            fail(
                f"{shown} connects {have} node{'s' * (have != 1)}, {short(target.name)} has "
                f"{need} port{'s' * (need != 1)}",
                hint=f"its ports: {ports}" if need else "it has none",
            )
            return None
        for port, node in zip(target.ports, call.nodes):
            if port == 0 and node != 0:
                message = f"{shown} connects node {short(scope.node_names[node])} to a port called 0, which is ground"
                fail(f"{message} everywhere", hint="name the port otherwise")
        for key, at in call.keys.items():
            if key == "m" or target.is_parameter(key):
                continue
            if any(key in one.read_names() for one in target.variants or [target]):
                message = "undeclared parameters act where the sub-circuit's expressions read them (%s)"
                self.reporter.gather("assumed", message, at, f"{short(target.name)} {short(key)}")
            else:
                known = ", ".join(short(k, 30) for k in [*target.defaults, *target.parameters][:8])
                message = f"{shown}: sub-circuit {short(target.name)} has no parameter {short(key)!r}"
                hint = f"it has: {known}" if known else "it has none"
                self.reporter.error("parameter", message, at, hint, [call.name])
        return target

    def near(self, name: str, scope: Scope) -> str:
        """A hint with sub-circuits of similar names; only for the first few errors, because it takes time."""
        seen = (inner.name for here in outwards(scope) for inner in here.subcircuits.values())
        known = [*islice(seen, HINTS)] if self.hints < HINTS else []
        self.hints += 1
        if len(name) > 60 or not known:
            return "define it with .subckt … .ends"
        return similar(
            name, (k for k in known if len(k) <= 60), f"defined here: {', '.join(short(k, 20) for k in known[:8])}"
        )

    def check_unused(self) -> None:
        """Check the models of the deck itself that no element uses."""
        scopes: list[Scope] = [self.reader.top]
        while scopes:
            scope = scopes.pop()
            scopes += [one for inner in scope.subcircuits.values() for one in inner.variants or [inner]]
            for model in scope.models.values():
                if not model.card.source.callers and model.card not in self.uses_of:
                    self.use_of(model)

    def check_models(self, scope: Scope) -> None:
        """Check that every model named by a diode exists and is of type D; name its non-ideal properties."""
        for key, positions in scope.modelled.items():
            model = scope.found("models", key)
            for position in positions[:MODEL_ERRORS] if model is None or model.type not in TYPES else ():
                element, token = scope.names[position], self.named(scope, position)
                called = short(token.text if model is None else model.name)
                if model is None and is_number(token.text):
                    self.reporter.gather("no-effect", "area has no effect at the operating point (%s)", token, element)
                    continue
                kind, wrong = "model", f"no model is called {called!r}"
                hint = self.elsewhere or f"define it: .model {called} D, or leave the name out: diodes are ideal"
                if model is not None:
                    wrong = f"model {called} is of type {short(model.type)}, not D"
                    hint = f"a diode needs a model of type {', '.join(TYPES[:-1])} or {TYPES[-1]}"
                if model is not None and model.type in dialect.NUMERICAL:
                    kind, hint = "unsupported", dialect.NUMERICAL_HINT
                    what = "semiconductor equations on a mesh are not solved here"
                    wrong = f"model {called} is numerical ({short(model.type)}): {what}"
                self.reporter.error(kind, f"{short(element)}: {wrong}", token, hint, [element])
            use_of = None if model is None else self.device_use(model)
            if use_of is not None:
                self.devices[scope] |= dict.fromkeys(positions, use_of)
        self.check_counts(scope)

    def named(self, scope: Scope, position: int) -> Token:
        """The name of its model on the card of a diode; a plain line is read again."""
        model = scope.stated.get(position, PLAIN).model
        if model is None:
            number, line = divmod(scope.lines[position], IN_FILE)
            source = self.reader.sources[number]
            model = [*tokens(Card(source, line, source.line(line)))][3]
        return model

    def check_counts(self, scope: Scope) -> None:
        """Check numbers on the cards of elements with models: those without effect are noted, cells in series are
        refused where the model does not have them."""
        for position, stated in scope.stated.items():
            if scope.kind[position] != DIODE:
                continue
            counts, name = stated.numbers, scope.names[position]
            known: tuple[str, ...] = ("m",)
            thermal, what = False, "ideal diodes"
            if (use := self.devices[scope].get(position)) is not None:
                known, thermal, what = use.row.counts, use.row.thermal, f"{use.row.name}s"
            for word in (*(() if thermal else (*OWN_TEMPERATURE, "pj")), *{"area"}.difference(known)):
                if (idle := counts.pop(word, None)) is not None:
                    message = f"{word} has no effect at the operating point (%s)"
                    self.reporter.gather("no-effect", message, idle.at, name)
            if "n" not in known and (wrong := counts.pop("n", None)) is not None:
                message, hint = f"{short(name)} has no parameter 'n'", f"{what} have {' and '.join(known)}"
                self.reporter.error("syntax", message, wrong.at, hint, [name])

    def device_use(self, model: Model) -> DeviceUse | None:
        """The device of the elements that name a model, checked once; None: they are elementary."""
        if model.card not in self.uses_of:
            self.uses_of[model.card] = use = self.use_of(model)
            if use is None and not model.parameters and "ideal" not in model.name.lower():
                self.bare.append(model)
        return self.uses_of[model.card]

    def use_of(self, model: Model) -> DeviceUse | None:
        """The device of diodes that name a model; warns of meaningless parameters on its card."""
        if letter_of(model.type):
            self.passive(model)
        if model.type not in TYPES or model.name.lower() == IDEAL_MODEL:
            return None
        row = device_model(DIODE_LETTER, model.type, frozenset(name.lower() for name in model.parameters))
        if row is not None and not (row.thermal and self.ideal):
            names = {own.name: own.name for own in (*row.parameters, *row.on_card)}
            names |= {word: name for word, name in row.spellings.items() if name in names}
            idle = row.idle | {word for word, name in row.spellings.items() if name in row.idle}
            listed = [own.name for own in row.parameters] if row.listed else []
            return DeviceUse(row, model, self.numbers(model, names, idle, listed, f" is a {row.name}; "))
        stated = [*model.parameters, *(token.text for token in model.words if token.kind != WORD)]
        warn_unused(self.reporter, model, stated, ": diodes are ideal; ", "the forward drop is 0 V")
        return None

    def note_laws(self) -> None:
        """Note once the kinds of the deck's diode models, if one is a junction diode or has no parameters."""
        for model in self.bare:
            self.reporter.gather(
                "diode-law",
                "diode models without parameters are ideal (%s); other SPICE programs use IS=1e-14 N=1",
                model.card,
                model.name,
                f"write .model {short(model.name)} D(IS=1e-14) for a junction diode",
            )
        uses = [use for use in self.uses_of.values() if use is not None]
        new = [use for use in uses if use.row.thermal]
        if not new:
            return
        laws: dict[str, list[str]] = {}
        for use in uses:
            laws.setdefault(use.row.name, []).append(short(use.model.name, 20))
        listed = "; ".join(f"{', '.join(names[:8])}{' …' * (len(names) > 8)} ({law})" for law, names in laws.items())
        model, hint = new[0].model, ".options diodes=ideal makes junction diodes ideal"
        self.reporter.gather("diode-law", f"diode models: {listed}", model.card, model.name, hint)

    def numbers(
        self,
        model: Model,
        names: Mapping[str, str],
        idle: Collection[str],
        listed: Sequence[str] = (),
        what: str = ": ",
        hint: str = "",
    ) -> dict[str, Count]:
        """The numbers of a model's card by name, given their spellings; others that are not ``idle`` are warned of.

        ``listed`` are the names of numbers that the card may state in order.
        """
        values: dict[str, Count] = {}
        unused: list[str] = []
        stated = {key.word: (key.text, token) for key, token in model.pairs}
        stated |= {name: (name, token) for name, token in zip(listed, model.words)}
        for word, (text, token) in stated.items():
            if word in names:
                with self.reporter.at(model.card):
                    values[names[word]] = Count(token, value_of(token, model.scope))
            elif word not in idle and word.partition("/")[0] not in TOLERANCES:
                unused.append(text)
        for token in model.words[len(listed) :]:
            if token.kind == WORD and token.word in names:
                message, hint = f"model {short(model.name)}: {token.text} needs a value", f"write {token.text}=value"
                self.reporter.error("model", message, model.card, hint, [model.name])
            elif token.kind != WORD or token.word not in idle:
                unused.append(token.text)
        warn_unused(self.reporter, model, unused, what, hint)
        return values

    def passive(self, model: Model) -> dict[str, Count]:
        """The numbers of the model of a resistor, capacitor, inductor or switch, read once."""
        if model.card not in self.passives:
            names = CARD_MODELS[letter_of(model.type)].parameters
            hint = "see docs/netlist.md for what such a model has"
            self.passives[model.card] = self.numbers(model, names, dialect.MODELS_IDLE, hint=hint)
        return self.passives[model.card]


def warn_unused(reporter: Reporter, model: Model, words: Sequence[str], what: str, hint: str) -> None:
    """Warn of meaningless parameters on a model's card."""
    if words:
        listed = ", ".join(short(word, 20) for word in words[:12]) + " …" * (len(words) > 12)
        reporter.warning(
            "unused-parameter", f"model {short(model.name)}{what}not used: {listed}", model.card, hint, [model.name]
        )


def is_number(text: str) -> bool:
    """Whether ``text`` is a SPICE number."""
    try:
        parse(text)
    except NumberError:
        return False
    return True
