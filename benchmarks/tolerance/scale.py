"""What many machines cost: bytes and time of a task, overhead of a Dask scheduler, scaling on this machine.

``python benchmarks/tolerance/scale.py --into benchmarks/results/scale.md``
"""

from __future__ import annotations

import argparse
import os
import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from run import mesh

import circuitsim
from circuitsim.analysis import sweep_points
from circuitsim.analysis.probes import parse_probes
from circuitsim.analysis.sweep_axes import group
from circuitsim.circuit import Circuit
from circuitsim.executors import cluster, executor_of, in_order
from circuitsim.tolerance.montecarlo import _tasks, run_task
from circuitsim.tolerance.samples import Job, Marked
from circuitsim.tolerance.spread import parse_tolerance, spread_of

NOTHING = 2000
"""Empty tasks that measure the overhead."""


def sample_tasks(c: Circuit, count: int) -> list[Any]:
    """The tasks of `circuitsim.montecarlo`."""
    spread = spread_of(c, [parse_tolerance("R*=1%")])
    job = Marked.of(Job(c, spread.names, "v(n0_0) v(n5_5)", 1e-9))
    return list(_tasks(job, spread, 0, False, count))


def sweep_tasks(c: Circuit, points: int) -> list[Any]:
    """The tasks of `circuitsim.sweep`."""
    axes = group("V1", np.linspace(1.0, 5.0, points).tolist(), c)
    bare = tuple(axis._replace(values=axis.values[:0]) for axis in axes)
    job = sweep_points.Job(c, bare, tuple(parse_probes("v(n0_0) v(n5_5)", c)), "auto", 1e-9)
    return list(sweep_points.blocks(job, np.array([axes[0].values])))


def row(name: str, tasks: list[Any], function: Callable[[Any], Any]) -> str:
    """Size and processor time of one task, its first call apart."""
    function(tasks[0])
    used = time.process_time()
    found = [function(task) for task in tasks[:5]]
    spent = (time.process_time() - used) / len(found)
    sizes = len(pickle.dumps(tasks[0], protocol=5)), len(pickle.dumps(found[0], protocol=5))
    return f"| {name} | {len(tasks):,} | {sizes[0] / 1e3:.1f} kB | {sizes[1] / 1e3:.1f} kB | {spent * 1e3:.3g} ms |"


def nothing(task: int) -> int:
    """An empty task."""
    return task


@contextmanager
def here(workers: int) -> Iterator[Any]:
    """A Dask cluster on this machine."""
    from distributed import LocalCluster

    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as local,
        cluster(local.scheduler_address) as where,
    ):
        yield where


def wall(c: Circuit, count: int, where: tuple[Any, int]) -> float:
    """Seconds of a Monte Carlo run, with the workers warm."""
    for size in (20_000, count):
        begun = time.perf_counter()
        circuitsim.montecarlo(c, ["R*=1%"], "v(n9_9)", size, executor=where[0], workers=where[1])
    return time.perf_counter() - begun


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=300_000)
    parser.add_argument("--into", metavar="FILE")
    args = parser.parse_args()
    small, large = mesh(10, 10), mesh(100, 100)
    lines = [
        "# Many machines",
        "",
        f"`python benchmarks/tolerance/scale.py --samples {args.samples}`, {len(os.sched_getaffinity(0))} processors, "
        f"load average {os.getloadavg()[0]:.1f} at the start.",
        "",
        "| tasks | number | bytes of a task | bytes of its result | processor time |",
        "|---|---|---|---|---|",
        row("10⁶ samples, 100 nodes", sample_tasks(small, 10**6), run_task),
        row("sweep of 10,000 points, 100 nodes", sweep_tasks(small, 10_000), sweep_points.solve_block),
        row("sweep of 1,000 points, 10,000 nodes", sweep_tasks(large, 1000), sweep_points.solve_block),
        "",
    ]
    seconds = {}
    for workers in (1, 2):
        with here(workers) as where:
            begun = time.perf_counter()
            list(in_order(*where, nothing, range(NOTHING)))
            overhead = (time.perf_counter() - begun) / NOTHING
            seconds["Dask", workers] = wall(small, args.samples, where)
        with executor_of(workers) as pool:
            seconds["processes", workers] = wall(small, args.samples, pool)
    lines += [
        f"An empty task on Dask: {overhead * 1e3:.2g} ms (2 workers).",
        "",
        f"{args.samples:,} samples of 100 nodes, wall clock:",
        "",
        "| workers | processes | Dask |",
        "|---|---|---|",
        *(f"| {n} | {seconds['processes', n]:.1f} s | {seconds['Dask', n]:.1f} s |" for n in (1, 2)),
        "",
    ]
    text = "\n".join(lines)
    print(text)
    if args.into:
        Path(args.into).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
