"""How a deck is read: what the command line or the caller says about it."""

from __future__ import annotations

from typing import NamedTuple


class Reading(NamedTuple):
    """Choices of a reader.

    Attributes
    ----------
    titled : bool
        The first line is the title.
    libraries : tuple of str
        Files whose definitions count where the deck has none of that name.
    search : tuple of str
        Folders in which included files are looked for by their own name.
    ideal_diodes : bool
        Junction diodes are ideal.
    """

    titled: bool = True
    libraries: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    ideal_diodes: bool = False


DEFAULT = Reading()
