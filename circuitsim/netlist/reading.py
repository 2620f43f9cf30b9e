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
    rkm : bool
        ``2K2`` is 2.2k (the notation of IEC 60062), which a note says.
    ideal_diodes : bool
        Junction diodes are ideal.
    """

    titled: bool = True
    libraries: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    rkm: bool = False
    ideal_diodes: bool = False


DEFAULT = Reading()
