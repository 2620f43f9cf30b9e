"""Checkpoints: one npz file of plain arrays and one JSON text, versioned, written atomically, read without pickle."""

from __future__ import annotations

import contextlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from circuitsim._files import atomic_file
from circuitsim._npz import read_npz
from circuitsim.errors import CircuitError, UsageError
from circuitsim.training.trainable import Arrays

FORMAT = 1
_HEADER = "__json__"


class CheckpointError(CircuitError):
    """A checkpoint that cannot be used: missing, damaged, of another version or of another model."""


@contextlib.contextmanager
def checked(path: Path | str, more: type[Exception] = ValueError) -> Iterator[None]:
    """Raise `CheckpointError` for whatever the content of a file raises that is not of the expected form."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, more) as problem:
        raise CheckpointError(
            f"the checkpoint {path} is damaged and cannot be read ({problem.__cause__ or problem}): restore a copy, "
            "or start anew"
        ) from problem


def save_checkpoint(path: Path | str, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
    """Write arrays and facts as one file.

    Parameters
    ----------
    path : Path or str
        Where; an older checkpoint there is replaced in one step.
    arrays : mapping of str to ndarray
        Plain numeric arrays; saved with their exact bits.
    facts : mapping
        JSON values; floats are exact.
    """
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise CheckpointError(f"array '{name}' holds Python objects, which a checkpoint does not store")
    text = json.dumps({"format": FORMAT, **facts}).encode()
    # np.savez takes names as keywords; the archive is written by hand so that any name is allowed. Arrays go to the
    # file piece by piece: a large model is not held twice.
    with atomic_file(Path(path)) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in {_HEADER: np.frombuffer(text, np.uint8), **arrays}.items():
            # A member made by name alone carries the time of day; this one makes equal content equal bytes.
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def load_checkpoint(path: Path | str, **kind: Any) -> tuple[Arrays, dict[str, Any]]:
    """Read what `save_checkpoint` wrote; every byte is checked against the archive's checksums.

    Parameters
    ----------
    path : Path or str
        The file.
    **kind
        Facts that must be so.

    Raises
    ------
    CheckpointError
        The file is missing, damaged, of a format unknown to this version, or holds something else.
    """
    path = Path(path)
    if not path.is_file():
        raise CheckpointError(f"there is no checkpoint at {path}")
    with checked(path, UsageError):
        arrays = read_npz(path)
        facts = json.loads(arrays.pop(_HEADER).tobytes())
        version = facts.pop("format")
    if version != FORMAT:
        raise CheckpointError(f"the checkpoint {path} has format {version}; this version reads format {FORMAT}")
    for name, wanted in kind.items():
        if facts.get(name) != wanted:
            raise CheckpointError(
                f"{path} is of another run or model: it holds the {name} {facts.get(name)!r}, not {wanted!r}"
            )
    return arrays, facts


def pack(**groups: Mapping[str, np.ndarray]) -> Arrays:
    """Several groups of arrays as one: ``group/name``."""
    return {f"{group}/{name}": array for group, arrays in groups.items() for name, array in arrays.items()}


def unpack(arrays: Mapping[str, np.ndarray], group: str) -> Arrays:
    """The arrays of one group of `pack`."""
    prefix = f"{group}/"
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}


def copy_into(targets: Mapping[str, np.ndarray], sources: Mapping[str, np.ndarray], what: str) -> None:
    """Copy arrays by name into the memory of others; names, shapes and types must agree.

    Raises
    ------
    CheckpointError
        They do not: the checkpoint belongs to another model.
    """
    ours, theirs = ({name: f"{a.dtype} {a.shape}" for name, a in each.items()} for each in (targets, sources))
    if ours != theirs:
        raise CheckpointError(f"the checkpoint's {what} are {theirs}, the model's are {ours}")
    for name, target in targets.items():
        target[...] = sources[name]
