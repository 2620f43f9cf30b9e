"""Checkpoints: one npz file of plain arrays and one JSON text, versioned, written atomically, read without pickle.

The folder of a run holds its configuration, history, checkpoint and pictures. Nothing is written outside it.

Models have the interface `Trainable`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from circuitsim._files import atomic_file, atomic_write, remove_abandoned
from circuitsim._npz import read_npz
from circuitsim._version import __version__
from circuitsim.errors import CircuitError, UsageError

Arrays = dict[str, np.ndarray]
Batch = tuple[np.ndarray, ...]


class Model(Protocol):
    """What every model gives the trainer: its parameters, and what else a checkpoint has to hold."""

    @property
    def parameters(self) -> Mapping[str, np.ndarray]:
        """Named arrays. Optimisers and checkpoints write into them: the model's own memory, not copies."""
        ...

    def state_arrays(self) -> Arrays:
        """All else that the next update depends on (persistent chains, running averages), for the checkpoint."""
        ...

    def load_state_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take back what `state_arrays` gave; the parameters have been put back before."""
        ...


@runtime_checkable
class Trainable(Model, Protocol):
    """A model whose parameters can be moved downhill.

    A model that maximises something (a likelihood) returns the gradient of its negative.
    """

    def gradient(self, batch: Batch, rng: np.random.Generator) -> tuple[Arrays | None, dict[str, float]]:
        """Gradient estimate of the loss on one batch, and its metrics.

        Parameters
        ----------
        batch : tuple of ndarray
            One slice of every data array, with equal first dimension.
        rng : numpy.random.Generator
            The only source of chance; its state is part of every checkpoint.

        Returns
        -------
        gradients : dict of str to ndarray, or None
            One array for each parameter, of its shape; the trainer may overwrite them. None says that this batch gave
            no gradient that can be trusted: the step is skipped and counted.
        metrics : dict of str to float
            The same keys on every call; the history holds their mean over the updates since its last row.
        """
        ...

    def project(self) -> None:
        """Move the parameters back to where they are allowed, after each step."""
        ...


@runtime_checkable
class FusedTrainable(Model, Protocol):
    """A model that makes its steps itself, many in one call, because step and gradient share one pass over its memory.

    The number of steps per call must not change their bits.
    """

    def steps(
        self, data: Batch, rows: np.ndarray, batch: int, rates: Mapping[str, float], rng: np.random.Generator
    ) -> Arrays:
        """One step for each mini-batch that ``rows`` fall into.

        Parameters
        ----------
        data : tuple of ndarray
            The whole data arrays.
        rows : (n,) ndarray of int64
            Samples in order; the last mini-batch may be smaller.
        batch : int
            Samples in a mini-batch.
        rates : mapping of str to float
            Learning rate of each parameter now.
        rng : numpy.random.Generator
            The only source of chance.

        Returns
        -------
        metrics : dict of str to (steps,) ndarray
        """
        ...


FORMAT = 1
FILES = ("deck", "data", "test", "dataset", "data_dir", "allow_include", "lib", "search")
"""Options that name files or folders."""
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


class RunDirectory:
    """Names and files of one run.

    Attributes
    ----------
    path : Path
        The directory.
    checkpoint : Path
        ``checkpoint.npz``, the newest state.
    config : Path
        ``config.json``, everything needed to run it again.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.checkpoint = self.path / "checkpoint.npz"
        self.config = self.path / "config.json"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from training in this directory; the system releases the lock of a killed process.

        Raises
        ------
        UsageError
            Another process trains in it.
        """
        from filelock import FileLock, Timeout

        try:
            # One lock a process: a trainer may take it again.
            with FileLock(self.path / ".lock", 0.0, is_singleton=True):
                yield
        except Timeout:
            raise UsageError(
                f"another process trains in {self.path}: wait until it ends, or stop it, then resume"
            ) from None

    def create(self, config: Mapping[str, Any]) -> None:
        """Make the directory and record the configuration with the versions of all software that matters.

        Raises
        ------
        UsageError
            There is a run in it already, or it cannot be made.
        """
        self.require_new()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise UsageError(f"cannot make the directory {self.path}: {problem.strerror}") from problem
        self._record(config, os.getcwd())

    def require_new(self) -> None:
        """Refuse a directory that holds a run.

        Raises
        ------
        UsageError
        """
        if self.config.exists() or self.checkpoint.exists():
            raise UsageError(
                f"{self.path} already holds a run; continue it with circuitsim train resume --out {self.path}, or "
                "choose another directory"
            )

    def update(self, config: Mapping[str, Any]) -> list[str]:
        """Record the configuration of a resumed run; returns what software changed since it was last recorded.

        With other versions the run continues, but not necessarily with equal bits.
        """
        before = self._read("versions")
        remove_abandoned(self.path)
        self._record(config, self._read("folder", ""))
        now = software_versions()
        return [f"{name} {before.get(name)} → {now[name]}" for name in now if before.get(name) != now[name]]

    def seal(self, files: Iterable[str]) -> None:
        """Record hashes of the files of the trained model, for `file`."""
        self._record(self._read("options"), self._read("folder", ""), {name: self._hash(name) for name in files})

    def file(self, name: str) -> Path:
        """A file of the trained model, as training wrote it.

        Raises
        ------
        UsageError
            There is none.
        CheckpointError
            It is another one.
        """
        path, again = self.path / name, f"circuitsim train resume --out {self.path}"
        if not path.is_file():
            raise UsageError(f"{self.path} has no {name}: the run is not finished ({again})")
        if self._read("files", {}).get(name, found := self._hash(name)) != found:
            raise CheckpointError(
                f"{path} is not as training wrote it, but truncated or edited; {again} writes it again"
            )
        return path

    def _hash(self, name: str) -> str:
        return hashlib.sha256((self.path / name).read_bytes()).hexdigest()

    def _record(self, config: Mapping[str, Any], folder: str, files: Mapping[str, str] = MappingProxyType({})) -> None:
        stored = {"options": dict(config), "versions": software_versions(), "folder": folder, "files": dict(files)}
        text = json.dumps(stored, indent=2, allow_nan=False)
        atomic_write(self.config, text.encode() + b"\n")

    def options(self) -> dict[str, Any]:
        """The configuration recorded by `create`; files that are not here are those of the folder where it began.

        Raises
        ------
        UsageError
            There is none, or it cannot be read.
        """
        found, folder = self._read("options"), self._read("folder", "")

        def placed(path: Any) -> Any:
            if isinstance(path, list):
                return [placed(one) for one in path]
            there = os.path.join(folder, path) if isinstance(path, str) else ""
            return there if os.path.exists(there) and not os.path.exists(path) else path

        return found | {name: placed(found[name]) for name in FILES if name in found}

    def _read(self, part: str, default: Any = None) -> Any:
        if not self.config.is_file():
            raise UsageError(f"there is no run in {self.path} (no {self.config.name})")
        try:
            stored = json.loads(self.config.read_text(encoding="utf-8"))
            found = stored[part] if default is None else stored.get(part, default)
        except (ValueError, KeyError, TypeError, RecursionError) as problem:
            raise UsageError(f"{self.config} is damaged and cannot be read ({problem!r})") from problem
        if not isinstance(found, dict if default is None else type(default)):
            raise UsageError(f"{self.config} is damaged and cannot be read (its {part} are not a table)")
        return found


def software_versions() -> dict[str, str]:
    """Versions of this package, Python and the numerical libraries, without importing them."""
    versions = {"circuitsim": __version__, "python": platform.python_version(), "machine": platform.machine()}
    for name in ("numpy", "scipy", "numba", "scikit-learn"):
        versions[name] = next((found.version for found in metadata.distributions(name=name)), "not installed")
    return versions
