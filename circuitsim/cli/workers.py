"""Options for workers, clusters and checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from concurrent.futures import Executor


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
