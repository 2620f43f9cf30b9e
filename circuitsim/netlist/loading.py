"""From a file or a text to a `Deck`: reading, linking, elaborating, in this order, errors reported together.

The first line is the title; if it reads like an element, a warning says that the title may have been forgotten.

A KiCad schematic is converted by KiCad's command-line tool if installed; for other schematics the error says how to
export a netlist.
"""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from circuitsim.circuit import Circuit
from circuitsim.errors import AmplifierError, NetlistError, Problem, UsageError
from circuitsim.models.base import ROOM
from circuitsim.netlist import definitions, dialect
from circuitsim.netlist.analyses import BASES, PARAMETER_WORDS, Analyses, steps
from circuitsim.netlist.cards import (
    MARK,
    Card,
    CardError,
    Files,
    PathName,
    Reporter,
    Source,
    decode,
    fatal,
    given,
    read_bytes,
    tokens,
    uncommented,
)
from circuitsim.netlist.controlled_laws import circuit_of
from circuitsim.netlist.deck import Deck
from circuitsim.netlist.elaborate import Elaborator
from circuitsim.netlist.expression import Environment, Evaluator
from circuitsim.netlist.functional import FollowingSources
from circuitsim.netlist.functions import CONSTANTS
from circuitsim.netlist.link import Linker
from circuitsim.netlist.reader import DeckReader
from circuitsim.netlist.scope import ABSOLUTE_ZERO, Scope, Temperatures, checked_temperature, value_of
from circuitsim.units import exact, rkm, short

LONGEST_TITLE = 1000
"""Maximum number of characters of a title that are examined."""

_CARDS = frozenset((*definitions.CARDS, *dialect.OPTIONS, *dialect.ANALYSES))
"""Dot cards, with which no title begins."""


def forgotten(source: Source, top: Scope) -> Problem | None:
    """A warning if the title reads like a card of the deck whose scope is ``top``."""
    title = source.text.partition("\n")[0]
    card = Card(Source(source.name, "", title), 1, uncommented(title)[:LONGEST_TITLE])
    words = card.text.lower().split(None, 1)
    if not words or (words[0] not in _CARDS and not is_element(card, top)):
        return None
    return Problem(
        "title",
        f"the first line is the title: {short(card.text.strip())!r} is not read as a card",
        card.place(),
        "put a title line before it, or read the deck with --no-title (title=False in Python)",
    )


def is_element(card: Card, top: Scope) -> bool:
    """Whether a card is an element between nodes of the deck (or numbers), whose names are known there."""
    reader = DeckReader(Files(None))
    reader.take(card)
    scope, known = reader.top, {*CONSTANTS, *top.parameters, *top.models, *top.subcircuits}
    ends = [*zip(scope.first, scope.second), *(tuple(call.nodes[:2]) for call in scope.calls)]
    names = [*scope.read_names(), *(call.target.word for call in scope.calls)]
    names += [one.model.word for one in scope.stated.values() if one.model is not None]
    return (
        bool(ends)
        and not reader.reporter.failed
        and all(len({*pair}) > 1 for pair in ends)
        and all(name in top.nodes or name.isdecimal() or "." in name for name in scope.node_names)
        and known.issuperset(names)
    )


def deck_of_file(path: str, allowed: Iterable[PathName], search: Iterable[PathName], *how: Any) -> Deck:
    """The deck in the file ``path``; see `deck_of`."""
    data = netlist(path, given(path))
    name = "<stdin>" if path == "-" else path
    text, warning = decode(data, name)
    del data  # half a gigabyte at most
    real = "" if path == "-" else os.path.realpath(path)
    root = os.path.dirname(real) if real else None
    return deck_of(Source(name, real, text), Files(root, allowed, search), warning, *how)


def deck_of(
    source: Source,
    files: Files,
    warning: Problem | None,
    titled: bool,
    libraries: Iterable[PathName],
    ideal_diodes: bool,
) -> Deck:
    """The deck of a source, with the options of `circuitsim.load`; ``warning`` is about its encoding."""
    title = source.text.partition("\n")[0].strip() if titled else ""
    reader = DeckReader(files)
    reporter = reader.reporter
    if warning is not None:
        reporter.add(warning)
    if source.path:
        reader.open_files.append(source.path)
    reader.read(source, 2 if titled else 1)
    reader.close()
    reader.read_libraries(libraries)
    for token in reader.top.readings:
        reporter.gather(
            "assumed",
            f"{short(token.text)} is read as {exact(rkm(token.text))} (%s)",
            token,
            "IEC 60062; ngspice drops what follows the letter",
        )
    declare_stepped(reader)
    lost = forgotten(source, reader.top) if titled else None
    if lost is not None:
        reporter.add(lost)
    try:
        return _linked(reader, title, source, ideal_diodes)
    except NetlistError as error:
        raise error if lost is None else NetlistError([lost, *error.problems]) from None


def _linked(reader: DeckReader, title: str, source: Source, ideal_diodes: bool) -> Deck:
    reporter, stated = reader.reporter, reader.options.get("diodes")
    if stated is not None and stated.word not in ("ideal", "models"):
        message = f"diodes={short(stated.text)} is unknown"
        reporter.error("syntax", message, stated, "diodes=models or diodes=ideal")
    linker = Linker(reader, ideal_diodes or (stated is not None and stated.word == "ideal"))
    linker.extent(reader.top)
    linker.note_laws()
    linker.check_unused()
    own = Elaboration(linker, title)
    if reporter.failed:
        if not reporter.has("limit"):  # errors of its values too, as far as it can be expanded
            own.elaborated(reporter, {})
        reporter.finish()
    elaborator, circuit = own.elaborated(reporter, {})
    following, deviations = elaborator.following.of(circuit), elaborator.draws.found()
    parameters = _parameters(reader, elaborator)
    if not len(circuit) and not reporter.failed:
        raise fatal("empty", "the deck has no elements", source.name, "the first line is only a title")
    if not reporter.failed:
        check_amplifiers(circuit)
    analyses = Analyses(elaborator, circuit).read()
    warnings, notes = reporter.finish()
    own.notes, own.variants = (*warnings, *notes), elaborator.variants
    circuit.notes = own.notes
    return Deck(
        circuit,
        warnings,
        notes,
        analyses,
        tuple(reader.directives),
        parameters,
        own,
        following,
        elaborator.temperatures.ambient,
        deviations,
    )


def declare_stepped(reader: DeckReader) -> None:
    """Define the parameters that occur only in ``.step param`` by their first values, as LTspice does."""
    for card in reader.requests:
        if not card.text.lstrip().lower().startswith(".step"):
            continue
        try:
            found = (t for t in tokens(card, card.offset + len(".step")) if t.kind != MARK)
            words = [token for token in found if token.word not in (*BASES, "list")]
            if len(words) < 3 or words[0].word not in PARAMETER_WORDS:
                continue
            name, first = words[1:3]
            if name.word in reader.top.parameters or not name.text.isidentifier():
                continue
            reader.top.parameters[name.word] = value_of(first, reader.top)
        except CardError:
            continue  # reported when the card is evaluated
        if name.word in reader.top.index:
            own = short(name.text)
            reader.reporter.warning(
                "parameter",
                f".step param {own} steps a parameter, not the element of that name",
                name,
                f".step {own} … steps the element",
                [name.text],
            )
        reader.reporter.gather(
            "assumed",
            f"{short(name.text)} has no .param: outside .step it is {short(first.text)}, the first value",
            name,
            name.text,
        )


class Elaboration:
    """Elaborates a deck with other parameter values; can be sent to other processes."""

    def __init__(self, linker: Linker, title: str) -> None:
        self.reader, self.linker, self.title = linker.reader, linker, title
        self.notes: tuple[Problem, ...] = ()
        self.variants: list[int] = []

    def elaborated(
        self,
        reporter: Reporter,
        overrides: dict[str, float],
        temperature: float | None = None,
        *how: bool,
    ) -> tuple[Elaborator, Circuit]:
        """The circuit with the values of some parameters replaced, and further arguments of `Elaborator`; errors go to
        the reporter."""
        reader = self.reader
        environment, found = Environment(reader.top.parameters), {"temp": ROOM, "tnom": ROOM}
        environment.values.update(overrides)
        for key, token in reader.options.items():  # .temp goes before temp, and set temp before both
            if key != "diodes":
                with reporter.at(token.card):
                    value = Evaluator().value(value_of(token, reader.top), environment)
                    found[key] = checked_temperature(value, token)
        ambient = found.get("set temp", found.get(".temp", found["temp"]))
        there = Temperatures(ambient if temperature is None else temperature, found["tnom"])
        elaborator = Elaborator(reporter, self.linker, environment, there, *how)
        return elaborator, circuit_of(elaborator, self.title)

    def has(self, name: str) -> bool:
        """Whether the deck, or a passive model (``RMOD:r``), has this parameter."""
        model, colon, parameter = name.partition(":")
        own = self.reader.top.found("models", model.lower()) if colon else None
        return name.lower() in self.reader.top.parameters or (own is not None and steps(own, parameter))

    def idle(self) -> dict[str, str]:
        """See `Deck.idle_parameters`."""
        found: dict[str, str] = {}
        for use in filter(None, self.linker.uses_of.values()):
            model, stated = use.model, []
            environment = Environment(self.reader.top.parameters)
            for key, token in model.pairs:
                if key.word not in use.row.idle or use.row.spellings.get(key.word, key.word) in use.values:
                    continue
                try:
                    number = Evaluator().value(value_of(token, model.scope), environment)
                except CardError:
                    raise UsageError(
                        f"model {model.name}: {key.text}={token.text} has no value in the deck itself: write a number"
                    ) from None
                stated.append(f" {key.word}={exact(number)}")
            text = "".join(stated)
            if found.setdefault(model.name.lower(), text) != text:
                raise UsageError(f"two models are called {model.name} and differ: give one of them another name")
        return found

    def __call__(
        self,
        values: Mapping[str, float],
        temperature: float | None,
        *how: bool,
    ) -> tuple[Circuit, FollowingSources]:
        """The circuit with other values, and the sources that depend on others; ``how``: see `elaborated`."""
        reader, overrides = self.reader, {}
        for name, value in values.items():
            if not self.has(name):
                raise UsageError(f"no parameter of the deck is called {name!r}")
            if name.lower() in reader.conditions.names:
                line = reader.conditions.names[name.lower()]
                raise UsageError(
                    f"parameter {name} decides the .if of line {line} and cannot vary; write a deck for each case"
                )
            if not math.isfinite(value):
                raise UsageError(f"parameter {name}: {value} is not finite")
            overrides[name.lower()] = float(value)
        if temperature is not None and not ABSOLUTE_ZERO <= temperature < math.inf:
            raise UsageError(f"temperature {temperature} °C is below absolute zero")
        again = Reporter()
        elaborator, other = self.elaborated(again, overrides, temperature, *how)
        again.finish()
        if elaborator.variants != self.variants:
            stated = ", ".join(f"{name} = {value:g}" for name, value in values.items())
            raise UsageError(f"{stated} changes an .if of a sub-circuit: write a deck for each case")
        check_amplifiers(other)
        other.notes = self.notes
        return other, elaborator.following.of(other)


def check_amplifiers(circuit: Circuit) -> None:
    """Refuse amplifiers with contradictory gains, at the location of the element that closes the loop.

    Raises
    ------
    NetlistError
    """
    if not circuit.amplified:
        return
    from circuitsim.circuit.amplifiers import section_gains

    try:
        section_gains(circuit)
    except AmplifierError as error:
        hint = "in every loop the gains must multiply to one; see docs/elements.md"
        place = circuit.origin(error.element)
        raise NetlistError([Problem("amplifier", str(error), place, hint, error.names)]) from None


def _parameters(reader: DeckReader, elaborator: Elaborator) -> dict[str, float]:
    """The deck's parameters with their values; one that cannot be evaluated is an error even if unused."""
    found = {}
    for name, value in reader.top.parameters.items():
        if isinstance(value, float):
            found[name] = value
            continue
        with reader.reporter.at(value.card):
            found[name] = elaborator.evaluator.value(value, elaborator.environment)
    return found


LTSPICE = re.compile(rb"(?:\xff\xfe)?V\0?e\0?r\0?s\0?i\0?o\0?n\0? \0?4(?:\.\d)?\0?\r?\0?\n\0?S\0?H\0?E\0?E\0?T")
KICAD = re.compile(rb"\s*\(kicad_sch\b")

COMMAND = "kicad-cli"
"""The command of KiCad 7 and later."""

PATIENCE = 120.0
"""Timeout for KiCad, s; it starts in a few seconds."""


def netlist(path: str, data: bytes) -> bytes:
    """The content of a deck's file; for a KiCad schematic the netlist exported by KiCad.

    Parameters
    ----------
    path : str
        The file.
    data : bytes
        Its content.

    Raises
    ------
    UsageError
        A schematic of LTspice; one of KiCad that cannot be converted.
    """
    if LTSPICE.match(data):
        raise UsageError(
            f"{path} is an LTspice schematic, not a netlist\n    hint: in LTspice, View > SPICE Netlist "
            "writes one, or: LTspice -netlist FILE.asc"
        )
    if not KICAD.match(data):
        return data
    program = shutil.which(COMMAND)
    if program is None:
        raise UsageError(
            f"{path} is a KiCad schematic, not a netlist\n    hint: in KiCad, File > Export > Netlist > SPICE "
            f"writes one; with {COMMAND} (KiCad 7 or later) on the PATH it is read as it is"
        )
    return _exported(path, program)


def _exported(path: str, program: str) -> bytes:
    """The netlist of a schematic, exported by KiCad's command."""
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "netlist.cir"
        words = [program, "sch", "export", "netlist", "--format", "spice", "--output", str(out), path]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            raise UsageError(f"{path}: {COMMAND} wrote no netlist within {PATIENCE:g} s") from None
        if done.returncode or not out.is_file():
            said = (done.stderr or done.stdout).strip().splitlines()
            raise UsageError(f"{path}: {COMMAND} wrote no netlist" + (f": {said[-1]}" if said else ""))
        return read_bytes(str(out))
