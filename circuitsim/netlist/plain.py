"""Large decks: runs of plain element lines at once, straight to the columns of a scope (`plain_kernels`).

The decision is by the length of a text. What is not a plain line goes through the ordinary reader, card by card; where
runs are short they are tried less and less often. Both ways give the same scope.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from circuitsim.circuit.elements import BY_LETTER, ELEMENTS
from circuitsim.units import SCALES, parse

if TYPE_CHECKING:
    from circuitsim.netlist.plain_kernels import Columns, Rules
    from circuitsim.netlist.scope import Scope

LARGE = 50_000
"""Lines of a text from which on runs are read at once: compiled kernels take half a second to load."""

BLOCK = 1 << 16
"""Elements that a kernel reads in one call."""

CHARACTERS = 8 * BLOCK
"""Room for the names of a block, in bytes; of longer names fewer fit into one."""

SHORT = 16
"""Cards of a run that is worth a call."""

PATIENCE = 1024
"""Cards until runs are tried again, at most."""

LETTERS = ("R", "C", "L", "V", "I")
"""Elements of plain lines."""


class Lines:
    """Lines of a large text with their numbers, from which runs can be taken.

    Parameters
    ----------
    text : str or bytes
        With lines ended by ``\\n``.
    count : int
        Number of its lines.
    """

    def __init__(self, text: str | bytes, count: int) -> None:
        self._count = count
        self._data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        self._start = self._next = self._number = 0
        self._wait, self._pause = 0, 1

    def __iter__(self) -> Iterator[tuple[int, str]]:
        while self._next <= len(self._data):
            self._start = self._next
            end = self._data.find(b"\n", self._start)
            end = len(self._data) if end < 0 else end
            self._next, self._number = end + 1, self._number + 1
            yield self._number, self._data[self._start : end].decode("utf-8", "surrogatepass")

    def take(self, scope: Scope) -> bool:
        """Read plain lines from the current one on into ``scope``; whether it was one."""
        if self._wait:
            self._wait -= 1
            return False
        import numpy as np

        from circuitsim.netlist.plain_kernels import FULL, run

        names, nodes = scope.tables()
        for table in (names, nodes):  # pages that are never used cost nothing
            room = self._count - self._number + 1 + 2 * BLOCK
            table.reserve(room, (len(self._data) - self._start) // 3 + CHARACTERS)
        data, columns, taken = np.frombuffer(self._data, np.uint8), _columns(), 0
        columns.state[:] = self._start, self._number, 1, FULL
        while columns.state[3] == FULL and columns.state[2]:
            names.reserve(BLOCK, CHARACTERS)
            nodes.reserve(2 * BLOCK, CHARACTERS)
            run(data, columns, names.arrays(), nodes.arrays(), _rules())
            self._append(columns, scope)
            taken += int(columns.state[2])
        if taken:
            self._next, self._number = int(columns.state[0]), int(columns.state[1]) - 1
        self._pause = 1 if taken > SHORT else min(2 * self._pause, PATIENCE)
        self._wait = self._pause - 1
        return taken > 0

    def _append(self, columns: Columns, scope: Scope) -> None:
        """Move what a kernel read into the scope."""
        count = int(columns.state[2])
        for k in columns.stop[:count].nonzero()[0].tolist():
            columns.value[k] = parse(self._data[columns.start[k] : columns.stop[k]].decode())
        own: tuple[array[Any], ...] = scope.kind, scope.first, scope.second, scope.value, scope.lines
        for mine, column in zip(own, columns):
            mine.frombytes(column[:count].data.cast("B"))


@cache
def _columns() -> Columns:
    """Room for one block."""
    import numpy as np

    from circuitsim.netlist.plain_kernels import Columns

    whole = [np.zeros(BLOCK, np.int64) for _ in range(5)]
    first, second, line, start, stop = whole
    return Columns(np.zeros(BLOCK, np.int8), first, second, np.zeros(BLOCK), line, start, stop, np.zeros(4, np.int64))


@cache
def _rules() -> Rules:
    """The language as tables."""
    import numpy as np

    from circuitsim.netlist.plain_kernels import NO_TOKEN, POWERS, Rules

    code, scale = np.full(256, -1, np.int8), np.zeros(256, np.int64)
    for letter in LETTERS:
        code[ord(letter)] = code[ord(letter.lower())] = BY_LETTER[letter]
    for letter, power in SCALES.items():
        if letter in ("t", "g", "k", "u", "n", "p"):
            scale[ord(letter)] = scale[ord(letter.upper())] = power
    scale[ord("m")] = SCALES["m"]
    in_name = np.zeros(256, np.uint8)
    for byte in range(33, 127):
        in_name[byte] = ord(chr(byte).lower()) if byte not in NO_TOKEN else 0
    minimum = np.array([row.minimum for row in ELEMENTS])
    return Rules(code, minimum, in_name, scale, 10.0 ** np.arange(POWERS + 1))


__all__ = ["LARGE", "Lines"]
