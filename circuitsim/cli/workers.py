"""Options for workers, clusters and checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from concurrent.futures import Executor


def add_workers(parser: Any, where: str, cluster: bool = True, checkpoint: bool = False, **settings: Any) -> None:
    """Add the parallelism options of a command that computes many points.

    Parameters
    ----------
    parser : argparse.ArgumentParser or OptionGroup
    where : str
        Where the points are computed without ``--workers`` and ``--dask``.
    cluster, checkpoint : bool
        Whether there are ``--dask`` and ``--checkpoint``.
    **settings
        Of each option, for instance its default.
    """
    parser.add_argument(
        "--workers", metavar="N", type=int, help=f"processes ({where}); results do not depend on it", **settings
    )
    if cluster:
        help = "run on the Dask cluster of this scheduler"
        parser.add_argument("--dask", metavar="ADDRESS", help=help, **settings)
    if checkpoint:
        help = "keep finished blocks in DIR; resume from there"
        parser.add_argument("--checkpoint", metavar="DIR", help=help, **settings)


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


__all__ = ["add_workers", "workers_of"]
