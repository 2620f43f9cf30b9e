"""Options for workers, clusters and checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from circuitsim.cli.options import add_options
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from concurrent.futures import Executor


def add_workers(parser: Any, where: str, cluster: bool = True, checkpoint: bool = False) -> None:
    """Add the parallelism options of a command that computes many points.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    where : str
        Where the points are computed without ``--workers`` and ``--dask``.
    cluster, checkpoint : bool
        Whether there are ``--dask`` and ``--checkpoint``.
    """
    add_options(parser, f"--workers N  processes ({where}); results do not depend on it")
    if cluster:
        add_options(parser, "--dask ADDRESS  run on the Dask cluster of this scheduler")
    if checkpoint:
        add_options(parser, "--checkpoint DIR  keep finished blocks in DIR; resume from there")


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
