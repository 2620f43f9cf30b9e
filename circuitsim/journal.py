"""Results of finished tasks in a folder, so that a run that was killed goes on where it was."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from circuitsim._files import atomic_write, remove_abandoned
from circuitsim._npz import read_npz
from circuitsim._version import __version__
from circuitsim.errors import Location, Problem, UsageError

R = TypeVar("R")

RUN = "run.json"
"""File that names the run."""


class Journal(Generic[R]):
    """One file for each finished task of a run.

    Parameters
    ----------
    folder : Path
        Made where it is not there.
    run : object
        Everything that the results depend on; of a folder with results of another run, an error.
    encode : callable
        A result as arrays; None for a result that is not kept.
    decode : callable
        The result of such arrays.

    Raises
    ------
    UsageError
        The folder belongs to another run, or is none.
    """

    def __init__(
        self,
        folder: Path,
        run: object,
        encode: Callable[[R], dict[str, np.ndarray] | None],
        decode: Callable[[dict[str, np.ndarray]], R],
    ) -> None:
        self.folder, self._encode, self._decode = folder, encode, decode
        named = {"version": __version__, "run": digest(run).hex()}
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"--checkpoint {str(folder)!r} is no folder; name a new one")
        folder.mkdir(parents=True, exist_ok=True)
        remove_abandoned(folder)
        path = folder / RUN
        if not path.exists():
            if any(folder.iterdir()):
                raise UsageError(f"--checkpoint {str(folder)!r}: the folder has other content; name a new folder")
            atomic_write(path, json.dumps(named).encode())
        elif _read(path) != named:
            raise UsageError(
                f"--checkpoint {str(folder)!r}: the folder holds the results of another run (another deck, other "
                "options or another version); name a new folder"
            )

    def read(self, number: int) -> R | None:
        """The result of a task, None if it is not finished."""
        path = self._path(number)
        return self._decode(read_npz(path)) if path.exists() else None

    def write(self, number: int, result: R) -> None:
        """Keep the result of a task."""
        arrays = self._encode(result)
        if arrays is not None:
            content = io.BytesIO()
            np.savez(content, allow_pickle=False, **arrays)
            atomic_write(self._path(number), content.getvalue())

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}.npz"


def digest(job: object) -> bytes:
    """SHA-256 of a value's content; its bytes are only hashed, nothing is read from them."""
    return hashlib.sha256(pickle.dumps(job, protocol=5)).digest()


def text_of(problems: Iterable[Problem]) -> np.ndarray:
    """Problems as an array of bytes."""
    rows = [
        [p.kind, p.message, p.hint, p.names, p.location and [getattr(p.location, n) for n in Location.__slots__]]
        for p in problems
    ]
    return np.frombuffer(json.dumps(rows).encode(), dtype=np.uint8)


def problems_of(text: np.ndarray) -> list[Problem]:
    """The problems of `text_of`."""
    rows: Sequence[Any] = json.loads(text.tobytes())
    return [
        Problem(kind, message, place and Location(**dict(zip(Location.__slots__, place))), hint, names)
        for kind, message, hint, names, place in rows
    ]


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError:
        raise UsageError(f"{path} is damaged; remove the folder, or name a new one") from None


__all__ = ["Journal", "digest", "problems_of", "text_of"]
