"""Where the tasks of a command run, and where their results are kept."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from concurrent.futures import Executor


def add_workers(parser: argparse.ArgumentParser, default: str) -> None:
    """Add ``--workers`` and ``--dask`` to a command; ``default`` says where its tasks run without them."""
    parser.add_argument(
        "--workers", metavar="N", type=int, help=f"processes ({default}); the results do not depend on it"
    )
    parser.add_argument(
        "--dask", metavar="ADDRESS", help="run on the Dask cluster of this scheduler, for instance tcp://10.0.0.1:8786"
    )


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """Add ``--checkpoint`` to a command."""
    parser.add_argument(
        "--checkpoint", metavar="DIR", help="keep finished blocks in DIR: the same command goes on after them"
    )


@contextmanager
def workers_of(workers: int | None, dask: str | None) -> Iterator[tuple[int | None, Executor | None]]:
    """The number of workers and the executor that a command line asks for.

    Raises
    ------
    UsageError
        Both ``--workers`` and ``--dask``; fewer than one worker; no scheduler there.
    """
    if workers is not None and workers < 1:
        raise UsageError(f"--workers must be at least 1, not {workers}")
    if dask is None:
        yield workers, None
        return
    if workers is not None:
        raise UsageError("--workers starts processes here, --dask uses a cluster: give one of them")
    from circuitsim.executors import cluster

    with cluster(dask) as (executor, count):
        yield count, executor


__all__ = ["add_checkpoint", "add_workers", "workers_of"]
