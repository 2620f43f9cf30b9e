"""Decks: text → cards → scopes → `Deck` with its elaborated `Circuit`; and a `Circuit` back to text.

>>> from circuitsim import netlist
>>> deck = netlist.loads('''a divider
... .param r=1k
... V1 in 0 6
... R1 in out {r}
... R2 out 0 {2*r}
... .op
... ''')
>>> deck
Deck('a divider': 3 nodes, 3 elements: 2 R, 1 V; .op)
>>> deck.elaborate({"r": 50})["R2"].value
100.0
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

from circuitsim._moved import at_first_use
from circuitsim.arguments import anything, checked, instance, target
from circuitsim.errors import DeckWarning, NetlistError, Problem, UsageError
from circuitsim.netlist.cards import NOTE_KINDS

if TYPE_CHECKING:
    from circuitsim.circuit import Circuit
    from circuitsim.netlist.deck import Deck
    from circuitsim.netlist.roles import Roles

__all__ = ["NOTE_KINDS", "NetlistError", "Problem", "dump", "dumps", "load", "loads"]


@checked()
def load(
    path: str | os.PathLike[str],
    allow_include: Iterable[str | os.PathLike[str]] = (),
    title: bool = True,
    libraries: Iterable[str | os.PathLike[str]] = (),
    search: Iterable[str | os.PathLike[str]] = (),
    ideal_diodes: bool = False,
) -> Deck:
    """Read the deck in a file (``-`` is standard input).

    Cards without effect, and cards whose effect may surprise their author, raise a `DeckWarning` and are listed in the
    deck's ``problems`` and ``notes``.

    Parameters
    ----------
    path : str or path-like
        The deck.
    allow_include : iterable of str or path-like
        Folders outside the deck's own from which it may include files.
    title : bool
        Whether the first line is the title, as in every SPICE program; if False, it is a card.
    libraries : iterable of str or path-like
        Library files; their models, sub-circuits, functions and parameters apply where the deck defines none of that
        name.
    search : iterable of str or path-like
        Folders to search for included files by base name, whatever path the deck gives.
    ideal_diodes : bool
        Treat junction diodes (models with IS, N, RS, BV …) as ideal, as ``.options diodes=ideal`` does.

    Returns
    -------
    Deck
        A circuit together with the analyses, parameters and measurements of its file.

    Raises
    ------
    NetlistError
        All errors of the deck, each with its location.
    UsageError
        The file does not exist or is not a regular file.
    """
    from circuitsim.netlist.loading import deck_of_file

    return _warned(deck_of_file(os.fspath(path), allow_include, search, title, libraries, ideal_diodes))


@checked(text=instance("the text of a deck (circuitsim.load reads files)", str))
def loads(
    text: str,
    file: str = "<deck>",
    folder: str | os.PathLike[str] | None = None,
    allow_include: Iterable[str | os.PathLike[str]] = (),
    title: bool = True,
    libraries: Iterable[str | os.PathLike[str]] = (),
    search: Iterable[str | os.PathLike[str]] = (),
    ideal_diodes: bool = False,
) -> Deck:
    """Read a deck from its text.

    Parameters
    ----------
    text : str
        The deck.
    file : str
        File name used in messages.
    folder : str or path-like, optional
        Folder that ``.include`` paths are relative to; without it ``.include`` is refused unless ``allow_include``
        names a folder.
    allow_include : iterable of str or path-like
        Further folders from which it may include files.
    title : bool
        Whether the first line is the title; if False, it is a card.
    libraries, search, ideal_diodes
        As for `load`.

    Returns
    -------
    Deck

    Raises
    ------
    NetlistError
        All errors of the deck, each with its location.
    UsageError
        No text, or the name of a file.
    """
    from circuitsim.netlist.cards import Files, Source, plain_text
    from circuitsim.netlist.loading import deck_of

    named = (".cir", ".net", ".sp", ".ckt", ".asc")
    if text.endswith(named) and "\n" not in text:
        raise UsageError(f"{text[:60]!r} is not the text of a deck; circuitsim.load reads files")
    source = Source(file, "", plain_text(text, file, "a NUL character: a deck is text", "remove it"))
    files = Files(folder, allow_include, search)
    return _warned(deck_of(source, files, None, title, libraries, ideal_diodes))


def _warned(deck: Deck) -> Deck:
    """The deck, after one `DeckWarning` for its warnings, except those that say which command runs a card."""
    found = [problem for problem in deck.problems if problem.kind not in ("tran", "ac")]
    if found:
        warnings.warn(DeckWarning(found), stacklevel=4)
    return deck


def dumps(circuit: Circuit, roles: Roles | None = None, *, ngspice: bool = False) -> str:
    """``circuit`` as a flat SPICE deck: ngspice runs it, and reading it back gives the same circuit.

    Numbers are exact. Resistors of zero ohm become sources of 0 V (ngspice would take 1 mΩ), ideal diodes name a
    near-ideal model, and names illegal in ngspice are mapped to legal ones (listed in a comment).

    Parameters
    ----------
    circuit : Circuit
    roles : Roles, optional
        Written as comment directives, so that the deck can be trained.
    ngspice : bool
        Write devices without an ngspice model (idealised diodes, varistors, tables …) as resistors, steep diodes and
        sources, or as a formula. Reading the result back gives other elements with the same I–V curves.

    Returns
    -------
    str

    Examples
    --------

    >>> print(dumps(loads("a divider\\nV1 a 0 6\\nR1 a b 1k\\nR2 b 0 0\\n")), end="")
    a divider
    V1 a 0 6
    R1 a b 1000
    VR2 b 0 0
    .op
    .end
    """
    from circuitsim.netlist.writer import text_of

    return text_of(circuit, roles, ngspice=ngspice)


@checked(circuit=anything, path=target)
def dump(circuit: Circuit, path: str | os.PathLike[str], roles: Roles | None = None) -> None:
    """Write a circuit as a flat SPICE deck; its text is that of `dumps`.

    Parameters
    ----------
    circuit : Circuit
    path : str or path-like
        Target file, replaced atomically.
    roles : Roles, optional
        Written as comment directives, so that the deck can be trained.
    """
    from circuitsim._files import write_file

    write_file(path, dumps(circuit, roles).encode())


__getattr__ = at_first_use(__name__)
