"""Work in many tasks: serially, on threads, on processes, or on any executor of `concurrent.futures`' interface.

Tasks are values and functions of modules, so they travel to other processes and machines. Results come back in the
order of the tasks, whatever ends first, and only a few tasks are under way at a time, so that memory is bounded.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from circuitsim.errors import UsageError

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


def in_order(
    executor: Executor | None, workers: int, function: Callable[[T], R], tasks: Iterable[T]
) -> Iterator[R]:
    """``function`` of every task, in their order, with few tasks under way.

    Raises
    ------
    Exception
        What a task raised, in its place; tasks that have not begun are cancelled.
    """
    if executor is None:
        yield from map(function, tasks)
        return
    waiting: deque[Future[Any]] = deque()
    source = iter(tasks)
    try:
        for task in source:
            waiting.append(executor.submit(function, task))
            if len(waiting) >= AHEAD * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


__all__ = ["executor_of", "in_order", "processors"]
