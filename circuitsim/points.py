"""Many tasks: run serially, on threads, processes, a Dask cluster or any other `concurrent.futures` executor, with
results kept in a folder so that a killed run can be resumed.

Tasks are values and module-level functions, so they can be sent to other processes and machines. Results are in the
order of the tasks. Few tasks are in progress at a time, which bounds memory.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from circuitsim._files import atomic_write, remove_abandoned
from circuitsim._npz import read_npz
from circuitsim._version import __version__
from circuitsim.errors import UsageError, WorkerError

if TYPE_CHECKING:
    from concurrent.futures import Executor

T = TypeVar("T")
R = TypeVar("R")

AHEAD = 3
"""Tasks in progress per worker."""
RUN = "run.json"
"""File that identifies the run whose results a folder holds."""


def processors() -> int:
    """Number of CPUs available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _executor(workers: int | None, given: Executor | None = None) -> Iterator[tuple[Executor | None, int]]:
    """The executor to use and its number of workers.

    Parameters
    ----------
    workers : int or None
        1: no executor, tasks run serially; more: number of processes; None: one thread per CPU.
    given : Executor, optional
        Used as it is, and left open.

    Raises
    ------
    UsageError
        Fewer than one worker.
    """
    from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

    if workers is not None and workers < 1:
        raise UsageError(f"at least one worker is needed, not {workers}")
    if given is not None:
        yield given, workers or max(processors(), 4)
    elif workers == 1 or (workers is None and processors() == 1):
        yield None, 1
    elif workers is None:
        with ThreadPoolExecutor(processors()) as threads:
            yield threads, processors()
    else:
        import multiprocessing

        # A forked process would inherit the threads of numerical libraries in an undefined state.
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            yield pool, workers


@contextmanager
def cluster(address: str) -> Iterator[tuple[Executor, int]]:
    """The workers of a Dask cluster as an executor, and their number.

    If a worker fails, its tasks run again on another one.

    Parameters
    ----------
    address : str
        Of the scheduler, for instance ``tcp://10.0.0.1:8786``. Every machine needs circuitsim in the same version.

    Raises
    ------
    UsageError
        Dask is not installed, or no scheduler answers within 10 s.
    WorkerError
        A task ended several workers.
    """
    try:
        from distributed import Client, KilledWorker
    except ImportError:
        raise UsageError("a Dask cluster needs its client: pip install 'circuitsim-exact[cluster]'") from None
    try:
        client = Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError, ImportError) as error:
        reason = str(error) or "no answer within 10 s"
        raise UsageError(f"no Dask scheduler answers at {address!r}: {reason}") from None
    with client:
        try:
            yield client.get_executor(), max(sum(client.nthreads().values()), 1)
        except KilledWorker as error:
            raise WorkerError(f"a task ended several workers, perhaps for lack of memory: {error}") from None


def computed(
    function: Callable[[T], R],
    tasks: Iterable[T],
    workers: int | None = 1,
    executor: Executor | None = None,
    journal: Journal[R] | None = None,
) -> Iterator[R]:
    """``function`` of every task, in order, with few tasks in progress.

    Parameters
    ----------
    function : callable
        Module-level, or a `functools.partial` of such a function, so that it can be pickled.
    tasks : iterable
    workers : int or None
        1: run serially; more: number of processes; None: one thread per CPU.
    executor : Executor, optional
        Used instead, and left open.
    journal : Journal, optional
        Holds earlier results, which are not computed again, and new ones.

    Raises
    ------
    UsageError
        Fewer than one worker.
    Exception
        The error of a task, at its position; pending tasks are cancelled.
    WorkerError
        A worker process was killed.
    """
    from concurrent.futures import BrokenExecutor, Future

    waiting = deque[tuple[int, Future[R], bool]]()

    def first() -> R:
        number, future, new = waiting.popleft()
        result = future.result()
        if new and journal is not None:
            journal.write(number, result)
        return result

    with _executor(workers, executor) as (pool, count):
        try:
            for number, task in enumerate(tasks):
                known = None if journal is None else journal.read(number)
                if known is None and pool is not None:
                    future = pool.submit(function, task)
                else:
                    future = Future()
                    future.set_result(function(task) if known is None else known)
                waiting.append((number, future, known is None))
                if pool is None or len(waiting) >= AHEAD * count:
                    yield first()
            while waiting:
                yield first()
        except BrokenExecutor:
            again = "start again" if journal is None else "repeat the command to continue after the last finished task"
            raise WorkerError(f"a worker process was killed, perhaps for lack of memory; {again}") from None
        finally:
            for _, future, _ in waiting:
                future.cancel()


class Journal(Generic[R]):
    """One file for each finished task of a run.

    Parameters
    ----------
    folder : Path
        Created if missing.
    run : object
        Everything that the results depend on.
    encode : callable
        Converts a result to arrays; None if it is not to be kept.
    decode : callable
        Converts these arrays back.

    Raises
    ------
    UsageError
        The folder belongs to another run, or is not a folder.
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
            raise UsageError(f"--checkpoint {str(folder)!r} is not a folder; name a new one")
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
    """SHA-256 of a value's content."""
    return hashlib.sha256(pickle.dumps(job, protocol=5)).digest()


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except ValueError:
        raise UsageError(f"{path} is damaged; remove the folder, or name a new one") from None
