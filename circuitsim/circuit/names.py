"""Names of elements and nodes: made on demand for circuits from arrays, looked up in either case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

GROUND = 0
"""Index of the ground node, in every circuit (whether or not an element touches it)."""

GROUND_NAMES = frozenset({"0", "gnd"})


def index_of(names: Iterable[str], others: Mapping[str, int] | None = None) -> dict[str, int]:
    """Positions by name in lower case; ``others`` are positions of further names."""
    found = {str(name).lower(): k for k, name in enumerate(names)}
    found.update(others or {})
    return found


class NumberedNames(Sequence[str]):
    """Names made on demand (``R1``, ``R2`` …), so that circuits from arrays need not store millions of strings."""

    def __init__(self, prefixes: Sequence[str] | str, count: int, start: int) -> None:
        self._prefixes, self._count, self._start = prefixes, count, start

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, slice):
            return [self[k] for k in range(*item.indices(self._count))]
        k = range(self._count)[item]
        prefix = self._prefixes if isinstance(self._prefixes, str) else self._prefixes[k]
        return f"{prefix}{k + self._start}"

    def __iter__(self) -> Iterator[str]:
        # A name costs a quarter of the time of a name at an index.
        prefixes = repeat(self._prefixes, self._count) if isinstance(self._prefixes, str) else self._prefixes
        return (f"{prefix}{k}" for k, prefix in enumerate(prefixes, self._start))


class Letters(Sequence[str]):
    """The letter of each element, looked up in its kind column."""

    def __init__(self, letters: Sequence[str], kind: np.ndarray) -> None:
        self._letters, self._kind = letters, kind

    def __len__(self) -> int:
        return len(self._kind)

    def __getitem__(self, item: Any) -> Any:
        return self._letters[self._kind[item]]

    def __iter__(self) -> Iterator[str]:
        return map(self._letters.__getitem__, self._kind.tolist())


class NodeNames(NumberedNames):
    """Node names ``0``, ``n1``, ``n2`` …"""

    def __init__(self, count: int) -> None:
        super().__init__("n", count, 0)

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, slice):
            return [self[k] for k in range(*item.indices(len(self)))]
        return "0" if range(len(self))[item] == GROUND else super().__getitem__(item)

    def __iter__(self) -> Iterator[str]:
        return chain(["0"][: len(self)], islice(super().__iter__(), 1, None))


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """A message for a name that does not exist, with the nearest ones that do."""
    import difflib

    near = difflib.get_close_matches(name.lower(), list(islice(known, 5000)), n=3)
    return f"no {what} is called {name!r}" + (f"; did you mean {', '.join(near)}?" if near else "")
