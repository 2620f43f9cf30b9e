"""The bundled decks: names, places, copies.

>>> from circuitsim import examples, load, solve
>>> solve(load(examples.path("divider")))["out"]
4.0
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from circuitsim import _bundled
from circuitsim.errors import UsageError, similar

__all__ = ["Example", "copy", "examples", "path"]

_INCLUDE = re.compile(r"^\s*\.inc(?:lude)?\s+[\"']?([^\"'\s]+)", re.IGNORECASE | re.MULTILINE)


class Example(NamedTuple):
    """One bundled deck.

    Attributes
    ----------
    name : str
        Its name without ``.cir``; ``first/``: short decks to begin with, ``refused/``: decks without a steady state.
    title : str
        Its first line.
    path : str
        Its file.
    """

    name: str
    title: str
    path: str


def examples() -> list[Example]:
    """All bundled decks, by name; those to begin with come first, those without a steady state last."""
    root = Path(_bundled.netlists())
    places = [place for folder in ("first", "", "refused") for place in sorted((root / folder).glob("*.cir"))]
    return [
        Example(place.relative_to(root).with_suffix("").as_posix(), _text(place).partition("\n")[0].strip(), str(place))
        for place in places
    ]


def path(name: str) -> str:
    """The file of a bundled deck.

    Parameters
    ----------
    name : str
        As in `examples`; a part after the last ``/`` suffices.

    Raises
    ------
    UsageError
        There is no such deck; the message names the nearest ones.
    """
    by_name = {example.name: example.path for example in examples()}
    by_name |= {full.split("/")[-1]: file for full, file in by_name.items()}
    if name in by_name:
        return by_name[name]
    hint = similar(name, by_name, "circuitsim examples list shows all")
    raise UsageError(f"there is no bundled deck {name!r}; {hint}")


def copy(names: Sequence[str], folder: str, replace: bool = False) -> list[str]:
    """Copy bundled decks with the files they include and their training data.

    Parameters
    ----------
    names : sequence of str
        As in `examples`; none: everything.
    folder : str
        Destination; created if missing.
    replace : bool
        Whether files that differ may be replaced.

    Returns
    -------
    list of str
        The files written, decks before their companions.

    Raises
    ------
    UsageError
        An unknown name, or a file that exists with other content.
    """
    from circuitsim._files import write_file

    contents: dict[str, bytes] = {}
    for deck in map(Path, map(path, names) if names else [example.path for example in examples()]):
        for source in (deck, *_companions(deck)):
            place = os.path.relpath(source, deck.parent if names else _bundled.netlists())
            contents[os.path.join(folder, place)] = source.read_bytes()
    for target, content in contents.items():
        same = os.path.isfile(target) and Path(target).read_bytes() == content
        if not (replace or same) and os.path.lexists(target):
            raise UsageError(f"{target} exists with other content; --force replaces it, --output DIR names a folder")
    for target, content in contents.items():
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
        write_file(target, content)
    return list(contents)


def _companions(deck: Path) -> list[Path]:
    """The files a bundled deck includes, and its training data."""
    included = [deck.parent / name for name in _INCLUDE.findall(_text(deck))]
    return [Path(os.path.normpath(file)) for file in (*included, deck.with_suffix(".csv")) if file.is_file()]


def _text(deck: Path) -> str:
    return deck.read_text(encoding="utf-8")
