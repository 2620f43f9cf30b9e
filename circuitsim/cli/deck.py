"""Reading a deck for a command, with reports of its problems."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from circuitsim.cli.output import TOGETHER, Together, check_targets
from circuitsim.errors import Problem, UsageError, some

if TYPE_CHECKING:
    from circuitsim.netlist.deck import Deck
    from circuitsim.netlist.roles import Roles


SAID = 160
"""Maximum length of a line with several notes, characters."""


def read_with(options: Mapping[str, Any]) -> Deck:
    """The deck named by the option ``deck``, read with the options `READING`."""
    names = ("deck", "allow_include", "lib", "search", "no_title")
    return read(argparse.Namespace(**{name: options[name] for name in names}))


def read(args: argparse.Namespace) -> Deck:
    """The deck a command names.

    Raises
    ------
    UsageError
        A file that is missing or cannot be read.
    NetlistError
        A deck with problems.
    """
    import os

    from circuitsim.netlist import load

    if (together := TOGETHER.get()) is not None:
        return together.deck
    check_folders(args.allow_include)
    if args.deck != "-" and not os.path.lexists(args.deck):
        raise UsageError(f"no deck {args.deck!r}: there is no such file" + _near(args.deck))
    if os.path.exists(args.deck) and not os.path.isfile(args.deck) and not os.path.isdir(args.deck):
        raise UsageError(f"{args.deck} is a pipe or a device; - reads a deck from standard input")
    search = [*args.search, *filter(None, os.environ.get("CIRCUITSIM_LIB_PATH", "").split(os.pathsep))]
    check_folders(args.search, "-I")
    options = (tuple(args.allow_include), not args.no_title, tuple(args.lib), search)
    return load(args.deck, *options)


def opened(args: argparse.Namespace, leave: Callable[[Problem], bool] = lambda note: False, held: bool = False) -> Deck:
    """The deck of an analysis, after checking that its targets can be written; its notes are reported.

    Parameters
    ----------
    args : argparse.Namespace
    leave : callable
        Whether a note is irrelevant to the analysis.
    held : bool
        Whether switches keep the states of the operating point.
    """
    check_targets(args)
    deck = read(args)
    notes = [note for note in deck.notes if not leave(note)]
    report([*notes, *(held_switches(deck) if held else ())], args.verbose)
    return deck


def roles_of(deck: Deck) -> tuple[Roles | None, tuple[Problem, ...]]:
    """The deck's ``*!`` directives, checked, with warnings; None if there are none."""
    if not deck.directives:
        return None, ()
    from circuitsim.netlist.roles import read_roles

    return read_roles(deck)


def held_switches(deck: Deck) -> list[Problem]:
    """The warning of an analysis that keeps switches in the states of the operating point."""
    circuit = deck.operating_circuit
    names = [circuit.names[k] for k in deck.following.switches]
    if not names:
        return []
    return [Problem("switch", f"{some(names)}: switches keep the states of the operating point here", names=names)]


def printed(deck: Deck, kinds: tuple[str, ...], spelled: Callable[[str], str] = str) -> str | None:
    """The columns that the deck's cards name, ``spelled`` as the names of probes; None for all.

    Raises
    ------
    UsageError
        A quantity that the circuit does not have, with the line of its card.
    """
    from circuitsim.analysis.probes import parse_probes
    from circuitsim.netlist.deck import Output, columns_of

    if (text := columns_of(deck, kinds)) is None:
        return None
    for card in deck.of_kind(Output):
        if card.analysis in kinds:
            try:
                parse_probes(spelled(" ".join(card.requests)), deck.operating_circuit)
            except UsageError as error:
                raise UsageError(str(Problem("analysis", f".{card.card}: {error}", card.location))) from None
    return spelled(text)


def elsewhere(note: Problem) -> bool:
    """Whether a note is about what an operating point ignores, which does not apply to transient and AC analysis, or
    about another analysis."""
    from circuitsim.netlist.dialect import OVER_TIME

    no_effect = note.kind == "no-effect" and any(name in OVER_TIME for name in note.names)
    return no_effect or note.kind in ("coupled", "tran", "ac", "amplitude")


def check_folders(folders: Iterable[str], option: str = "--allow-include") -> None:
    """Refuse folders that do not exist; a typing error would otherwise only show as a missing file."""
    import os

    for folder in folders:
        if not os.path.isdir(folder):
            raise UsageError(f"{option} {folder!r}: there is no such folder")


def _near(path: str) -> str:
    """A hint that names files with a similar name in the same folder, or the bundled deck of this name."""
    import difflib
    import os

    from circuitsim._bundled import netlists

    folder, name = os.path.split(path)
    try:
        names = sorted(os.listdir(folder or "."))[:5000]
    except OSError:
        return f" (and no folder {folder!r})"
    near = difflib.get_close_matches(name, names, n=3)
    if not near and os.path.isfile(os.path.join(netlists(), name)):
        return f"\n    hint: a bundled deck has this name: circuitsim examples copy {os.path.splitext(name)[0]}"
    return "; did you mean " + " or ".join(os.path.join(folder, n) for n in near) + "?" if near else ""


@contextmanager
def run_together(deck: Deck, before: Iterable[Problem]) -> Iterator[None]:
    """In this context, commands read this deck, and print no warning or note twice, nor any of those in ``before``."""
    token = TOGETHER.set(Together(deck, set(map(str, before))))
    try:
        yield
    finally:
        TOGETHER.reset(token)


def report(problems: Iterable[Problem], verbose: bool = False) -> None:
    """Print warnings and notes on standard error, each text once; notes on one line unless verbose."""
    run, texts = TOGETHER.get(), {str(problem): problem for problem in problems}
    said = set[str]() if run is None else run.said
    found = [problem for text, problem in texts.items() if text not in said]
    said.update(texts)
    notes = [problem for problem in found if severity(problem) == "note" and not verbose]
    for problem in found:
        if problem not in notes:
            print(f"{severity(problem)}: {problem}", file=sys.stderr)
    lines = [f"line {note.location.line}: {note.message}" if note.location else note.message for note in notes]
    if len(lines) == 1:
        print(f"note: {lines[0]}", file=sys.stderr)
    elif lines:
        joined = "; ".join(lines)
        short = joined if len(joined) <= SAID else f"{joined[: SAID - 2]} …"
        print(f"{len(lines)} notes (-v shows them): {short}", file=sys.stderr)


def severity(problem: Problem) -> str:
    """``note`` for accepted statements without effect, ``warning`` for everything else that does not stop the deck."""
    from circuitsim.netlist.cards import NOTE_KINDS

    return "note" if problem.kind in NOTE_KINDS else "warning"


def as_dict(problem: Problem) -> dict[str, object]:
    """A problem in the JSON of ``check`` and of failures."""
    place = problem.location
    return {
        "kind": problem.kind,
        "message": problem.message,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "hint": problem.hint,
        "names": list(problem.names),
        "callers": list(place.callers) if place else [],
    }
