"""Work in many tasks: serially, on threads, on processes, on a Dask cluster, or on any other executor with the
interface of `concurrent.futures`.

Tasks are values and functions of modules, so they travel to other processes and machines. Results come back in the
order of the tasks, whatever ends first, and only a few tasks are under way at a time, so that memory is bounded.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Generic, TypeVar

from circuitsim.errors import UsageError, WorkerError
from circuitsim.journal import Journal

T = TypeVar("T")
R = TypeVar("R")

AHEAD = 3
"""Tasks under way for each worker."""


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def executor_of(workers: int | None, given: Executor | None = None) -> Iterator[tuple[Executor | None, int]]:
    """The executor to use and its number of workers.

    Parameters
    ----------
    workers : int or None
        1: no executor, the tasks run one by one; more: so many processes; None: a thread a processor.
    given : Executor, optional
        Used as it is, and left open.

    Raises
    ------
    UsageError
        Fewer than one worker.
    """
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

        # A forked process would inherit threads of numerical libraries in any state.
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            yield pool, workers


@contextmanager
def cluster(address: str) -> Iterator[tuple[Executor, int]]:
    """The workers of a Dask cluster as an executor, and their number.

    A task of a worker that fails runs again on another one.

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


def in_order(
    executor: Executor | None,
    workers: int,
    function: Callable[[T], R],
    tasks: Iterable[T],
    journal: Journal[R] | None = None,
) -> Iterator[R]:
    """``function`` of every task, in their order, with few tasks under way.

    Parameters
    ----------
    executor, workers
        As `executor_of` gives them.
    function : callable
        Of a module, so that it travels to other processes.
    tasks : iterable
    journal : Journal, optional
        Results found there are not computed again; new ones are kept there.

    Raises
    ------
    Exception
        What a task raised, in its place; tasks that have not begun are cancelled.
    WorkerError
        A worker process was killed.
    """
    waiting: deque[tuple[int, _Known[R] | Future[R]]] = deque()
    try:
        for number, task in enumerate(tasks):
            known = None if journal is None else journal.read(number)
            if known is not None:
                waiting.append((number, _Known(known)))
            elif executor is None:
                waiting.append((number, _kept(number, function(task), journal)))
            else:
                waiting.append((number, executor.submit(function, task)))
            if executor is None or len(waiting) >= AHEAD * workers:
                yield _result(*waiting.popleft(), journal)
        while waiting:
            yield _result(*waiting.popleft(), journal)
    except BrokenProcessPool:
        again = "start again" if journal is None else "the same command goes on after the last finished task"
        raise WorkerError(f"a worker process was killed, perhaps for lack of memory; {again}") from None
    finally:
        for _, future in waiting:
            future.cancel()


class _Known(Generic[R]):
    """A result that is there, with a future's interface."""

    def __init__(self, value: R) -> None:
        self._value = value

    def result(self) -> R:
        return self._value

    def cancel(self) -> bool:
        return True


def _kept(number: int, result: R, journal: Journal[R] | None) -> _Known[R]:
    if journal is not None:
        journal.write(number, result)
    return _Known(result)


def _result(number: int, found: _Known[R] | Future[R], journal: Journal[R] | None) -> R:
    return found.result() if isinstance(found, _Known) else _kept(number, found.result(), journal).result()


__all__ = ["cluster", "executor_of", "in_order", "processors"]
