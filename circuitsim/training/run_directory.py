"""The folder of one run: its configuration, history, checkpoint and pictures. Nothing is written outside it."""

from __future__ import annotations

import contextlib
import json
import platform
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from circuitsim._files import atomic_write, remove_abandoned
from circuitsim._version import __version__
from circuitsim.errors import UsageError


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
        if self.config.exists() or self.checkpoint.exists():
            raise UsageError(
                f"{self.path} already holds a run; continue it with circuitsim train resume --out {self.path}, or "
                "choose another directory"
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise UsageError(f"cannot make the directory {self.path}: {problem.strerror}") from problem
        self._record(config)

    def update(self, config: Mapping[str, Any]) -> list[str]:
        """Record the configuration of a resumed run; returns what software changed since it was last recorded.

        With other versions the run continues, but not necessarily with equal bits.
        """
        before = self._read("versions")
        remove_abandoned(self.path)
        self._record(config)
        now = software_versions()
        return [f"{name} {before.get(name)} → {now[name]}" for name in now if before.get(name) != now[name]]

    def _record(self, config: Mapping[str, Any]) -> None:
        text = json.dumps({"options": dict(config), "versions": software_versions()}, indent=2, allow_nan=False)
        atomic_write(self.config, text.encode() + b"\n")

    def options(self) -> dict[str, Any]:
        """The configuration recorded by `create`.

        Raises
        ------
        UsageError
            There is none, or it cannot be read.
        """
        return self._read("options")

    def _read(self, part: str) -> dict[str, Any]:
        if not self.config.is_file():
            raise UsageError(f"there is no run in {self.path} (no {self.config.name})")
        try:
            found = json.loads(self.config.read_text(encoding="utf-8"))[part]
        except (ValueError, KeyError, TypeError, RecursionError) as problem:
            raise UsageError(f"{self.config} is damaged and cannot be read ({problem!r})") from problem
        if not isinstance(found, dict):
            raise UsageError(f"{self.config} is damaged and cannot be read (its {part} are not a table)")
        return found


def software_versions() -> dict[str, str]:
    """Versions of this package, Python and the numerical libraries, without importing them."""
    versions = {"circuitsim": __version__, "python": platform.python_version(), "machine": platform.machine()}
    for name in ("numpy", "scipy", "numba", "scikit-learn"):
        versions[name] = next((found.version for found in metadata.distributions(name=name)), "not installed")
    return versions
