"""Libraries: files named by ``--lib``, and those that a deck names and that are not here."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from circuitsim.errors import UsageError
from circuitsim.netlist.source import Source, decode, read_bytes

if TYPE_CHECKING:
    from circuitsim.netlist.protocols import Reader

ADVICE = "--lib FILE reads a library, -I DIR or CIRCUITSIM_LIB_PATH name folders to look in"
_ELSEWHERE = re.compile(r"[A-Za-z]:|[\\/]|~")


def base_name(path: str) -> str:
    """The last part of a path of any system."""
    return re.split(r"[\\/]", path)[-1]


def is_elsewhere(path: str) -> bool:
    """Whether a path is absolute, on this system or on Windows."""
    return _ELSEWHERE.match(path) is not None


def may_be_missing(path: str) -> bool:
    """Whether a ``.lib`` card may name this file although it is not here: an absolute path, or a bare name, which
    LTspice and PSpice look for in their own folders.
    """
    return is_elsewhere(path) or base_name(path) == path


def read_libraries(reader: Reader, paths: tuple[str, ...]) -> None:
    """Read the definitions in ``paths``; those of the deck itself count before them.

    Raises
    ------
    UsageError
        A file that cannot be read.
    """
    reader.library = True
    for path in paths:
        try:
            text, warning = decode(read_bytes(path), path)
        except OSError as error:
            raise UsageError(f"--lib {path}: {error.strerror or error}") from None
        except ValueError as error:
            raise UsageError(f"--lib {path} {error}") from None
        real = os.path.realpath(path)
        reader.files.roots.append(os.path.dirname(real))
        if warning is not None:
            reader.reporter.place_warning(warning, (0,))
        reader.ended = False
        reader.read(Source(path, real, text, (), ("a library of --lib",)), 1)
    reader.library = False
