"""Long commands: where they run, their progress line, and Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from circuitsim.cli.streams import ErrorsOnly
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from concurrent.futures import Executor


R = TypeVar("R")

INTERRUPTED = 130
"""Exit code of a command interrupted by Ctrl-C."""


Update = Callable[[float, float], None]
"""What shows how much is done, of how much."""


@contextmanager
def late_progress(label: str) -> Iterator[Update]:
    """A progress line, shown once the work has run for a second; elsewhere than on a terminal, a line a minute. None
    under ``--quiet``."""
    import time

    clock, line = time.monotonic, None
    began = clock()

    def update(done: float, points: float) -> None:
        nonlocal line
        due = line is None and done < points and clock() - began > 1.0
        if due and not isinstance(sys.stderr, ErrorsOnly):
            from circuitsim.training.callbacks import ProgressLine

            line = ProgressLine(sys.stderr, label, clock)
        if line is not None:
            line.update(done / points)

    try:
        yield update
    finally:
        if line is not None:
            line.close()


class Interrupt:
    """Ctrl-C as a request to stop the current work; a second one ends the command at once."""

    def __init__(self) -> None:
        self.asked = False
        self._before: object = None

    def __enter__(self) -> Interrupt:
        try:
            self._before = signal.signal(signal.SIGINT, self._note)
        except ValueError:  # not the main thread, which receives no signals
            self._before = None
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)  # type: ignore[arg-type]

    def __call__(self) -> bool:
        """Whether the work should stop."""
        return self.asked

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def watch(self, shown: Update) -> Callable[[float, float], bool]:
        """Progress callback of a transient, called with the time reached and the stop time, which are ``shown``; True
        ends the run."""

        def reached(time: float, stop: float) -> bool:
            shown(time, stop)
            return self.asked

        return reached


@contextmanager
def working(label: str, args: argparse.Namespace, least: int | None = 1) -> Iterator[dict[str, Any]]:
    """Arguments of a function that shows its progress, and works where the options say (`workers_of`)."""
    with late_progress(label) as update, workers_of(args.workers, getattr(args, "dask", None)) as (workers, executor):
        yield {"progress": update, "workers": workers or least, "executor": executor}


def called(function: Callable[..., R], args: argparse.Namespace, source: Any, **own: Any) -> R:
    """The result of a function of ``source``, with all options that are named as its arguments, and ``own`` ones."""
    code = getattr(function, "__wrapped__", function).__code__
    names = code.co_varnames[1 : code.co_argcount]
    return function(source, **{name: value for name, value in vars(args).items() if name in names} | own)


@contextmanager
def workers_of(workers: int | None, dask: str | None) -> Iterator[tuple[int | None, Executor | None]]:
    """The number of workers and the executor selected on the command line.

    Raises
    ------
    UsageError
        Both ``--workers`` and ``--dask``; fewer than one worker; no scheduler at the address.
    """
    if workers is not None and workers < 1:
        raise UsageError(f"--workers must be at least 1, not {workers}")
    if dask is None:
        yield workers, None
        return
    if workers is not None:
        raise UsageError("--workers starts processes here, --dask uses a cluster: give one of them")
    from circuitsim.points import cluster

    with cluster(dask) as (executor, count):
        yield count, executor
