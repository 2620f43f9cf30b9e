"""``circuitsim train MODEL --seeds N``: one training run a seed, here or elsewhere, and their spread."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim.cli.options import OptionGroup
from circuitsim.cli.workers import workers_of
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from circuitsim.training.history import Row

LATER = ("epochs", "checkpoint_seconds", "threads", "seed")
"""Options of a recorded run that may differ from those asked for."""

MEASURES = ("loss", "error", "accuracy", "likelihood")
"""What the names of the columns shown end with."""


class Task(NamedTuple):
    """A run: its options, its folder, titles and notes shown so far (None: a silent run), and whether to draw."""

    options: Mapping[str, Any]
    folder: str | None
    shown: set[str] | None
    pictures: bool


class Finished(NamedTuple):
    """The last row of a run's history, empty without one, and whether it was interrupted."""

    seed: int
    row: Row
    interrupted: bool


def add_seeds(group: OptionGroup, none: object) -> None:
    """The options of several runs."""
    group.add_argument(
        "--seeds",
        type=int,
        metavar="N",
        default=none,
        help="train with N seeds from --seed on, into folders of --out; show the spread",
    )
    group.add_argument("--workers", type=int, metavar="N", default=none, help="processes for --seeds (1)")
    group.add_argument(
        "--dask",
        metavar="ADDRESS",
        default=none,
        help="run --seeds on a Dask cluster, whose machines share the folder of --out",
    )


def run_seeds(
    options: Mapping[str, Any], seeds: int, out: str | None, workers: int | None, dask: str | None, pictures: bool
) -> int:
    """Train with every seed; 0 when done, 130 when interrupted and saved."""
    from circuitsim._files import atomic_write
    from circuitsim.executors import executor_of, in_order
    from circuitsim.formats.columns import csv, table

    if seeds < 1:
        raise UsageError(f"--seeds must be at least 1, not {seeds}")
    folder = None if out is None else Path(out).resolve()
    texts: set[str] | None = set() if dask is None and workers in (None, 1) else None
    tasks = [
        Task({**options, "seed": seed}, None if folder is None else str(folder / f"seed-{seed}"), texts, pictures)
        for seed in range(options["seed"], options["seed"] + seeds)
    ]
    for task in tasks:
        _check_recorded(task)
    found: list[Finished] = []
    with workers_of(workers, dask) as (processes, given), executor_of(processes or 1, given) as (pool, count):
        for finished in in_order(pool, count, train_seed, tasks):
            found.append(finished)
            print(f"seed {finished.seed} done ({len(found)} of {seeds})", file=sys.stderr)
            if finished.interrupted:
                break
    done = [one for one in found if one.row]
    if done:
        names = list(done[0].row)
        shown = [name for name in names if name.endswith(MEASURES)]
        rows: list[list[str]] = [[str(one.seed), *(f"{one.row[name]:.6g}" for name in shown)] for one in done]
        print("\n".join(table(["seed", *shown], [*rows, *_spread(done, shown)])))
        if folder is not None:
            text = csv(["seed", *names], [[str(one.seed), *(one.row[name] for name in names)] for one in done])
            atomic_write(folder / "seeds.csv", text.encode())
            print(f"written to {folder}: seeds.csv, a folder for each seed")
    if found[-1].interrupted:
        print(
            "interrupted: the same command goes on" if folder else "interrupted: nothing saved (no --out)",
            file=sys.stderr,
        )
        return 130
    return 0


def train_seed(task: Task) -> Finished:
    """Train with one seed, or go on with what its folder holds."""
    from circuitsim.cli.studies.runs import train_run
    from circuitsim.training.history import History
    from circuitsim.training.interrupt import interrupt_flag

    options, folder = task.options, None if task.folder is None else Path(task.folder)
    name = f"seed-{options['seed']}"
    with interrupt_flag() as stopped:
        parent = None if folder is None else folder.parent
        experiment, _, rows = train_run(name, options, options["epochs"], parent, stopped, task.shown)
        interrupted = stopped()
    if folder is not None and rows and not interrupted:
        history = History()
        history.restart(rows)
        experiment.save(folder)
        if task.pictures:
            experiment.draw(folder, history)
    return Finished(options["seed"], rows[-1] if rows else {}, interrupted)


def _spread(done: list[Finished], shown: list[str]) -> list[list[str]]:
    """Mean and standard deviation of the columns, from two runs on."""
    import numpy as np

    if len(done) < 2:
        return []
    values = np.array([[float(one.row[name]) for name in shown] for one in done])
    mean, deviation = values.mean(axis=0), values.std(axis=0, ddof=1)
    return [["mean", *(f"{x:.6g}" for x in mean)], ["deviation", *(f"{x:.2g}" for x in deviation)]]


def _check_recorded(task: Task) -> None:
    """Refuse a folder that holds a run with other options."""
    from circuitsim.training import RunDirectory

    if task.folder is None or not RunDirectory(task.folder).config.exists():
        return
    recorded = RunDirectory(task.folder).options()
    for name, asked in task.options.items():
        if asked is not None and name not in LATER and recorded.get(name, asked) != asked:
            raise UsageError(
                f"{task.folder} holds a run with {name} = {recorded[name]!r}, not {asked!r}; name another --out"
            )


__all__ = ["add_seeds", "run_seeds", "train_seed"]
