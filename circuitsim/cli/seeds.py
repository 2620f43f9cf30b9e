"""``circuitsim train MODEL --seeds N``: one training run per seed, in this process or others, and their spread."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim.cli.models import Options, family_of, options_again
from circuitsim.cli.progress import Interrupt
from circuitsim.cli.workers import workers_of
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from circuitsim.training import RunDirectory, Trainer
    from circuitsim.training.history import History, Row

LATER = ("epochs", "checkpoint_seconds", "threads", "seed")
"""Options of a recorded run that may differ from the requested ones."""

MEASURES = ("loss", "error", "accuracy", "likelihood")
"""Endings of the names of columns shown."""


class Task(NamedTuple):
    """A run: its options, its folder, titles and notes shown so far (None: a silent run)."""

    options: Options
    folder: str | None
    shown: set[str] | None


class Finished(NamedTuple):
    """The last row of a run's history, empty without one, and whether it was interrupted."""

    seed: int
    row: Row
    interrupted: bool


def run_seeds(options: Options) -> int:
    """Train with every seed; 0 when done, 130 when interrupted and saved."""
    from circuitsim._files import atomic_write
    from circuitsim.formats.columns import csv, table
    from circuitsim.points import computed
    from circuitsim.training import RunDirectory

    seeds, workers, dask = options.seeds, options.workers, options.dask
    if seeds < 1:
        raise UsageError(f"--seeds must be at least 1, not {seeds}")
    folder = None if options.out is None else Path(options.out).resolve()
    texts: set[str] | None = set() if dask is None and workers in (None, 1) else None
    tasks = [
        Task(options.but(seed=seed), None if folder is None else str(folder / f"seed-{seed}"), texts)
        for seed in range(options.seed, options.seed + seeds)
    ]
    for task in tasks:
        if task.folder is not None:
            _check_recorded(RunDirectory(task.folder), task.options.recorded())
    found: list[Finished] = []
    with workers_of(workers, dask) as (processes, given):
        for finished in computed(train_seed, tasks, processes or 1, given):
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
            "interrupted: repeat the command to continue" if folder else "interrupted: nothing saved (no --out)",
            file=sys.stderr,
        )
        return 130
    return 0


def train_seed(task: Task) -> Finished:
    """Train with one seed, or continue the run in its folder."""
    options, folder = task.options, None if task.folder is None else Path(task.folder)
    name = f"seed-{options.seed}"
    with Interrupt() as stopped:
        parent = None if folder is None else folder.parent
        experiment, _, history = train_run(name, options, options.epochs, parent, stopped, task.shown)
        interrupted = stopped()
    if folder is not None and history.rows and not interrupted:
        experiment.save(folder)
        if not options.no_pictures:
            experiment.draw(folder, history)
    return Finished(options.seed, history.rows[-1] if history.rows else {}, interrupted)


def train_run(
    name: str,
    given: Options,
    epochs: int | None,
    folder: Path | None,
    late: Callable[[], bool],
    shown: set[str] | None = None,
) -> tuple[Any, str, History]:
    """Train one model, or continue it.

    Parameters
    ----------
    name : str
        The name of the run: its folder and its progress line.
    given : Options
        Options of a new run.
    epochs : int, optional
        Total number; by default the model's own. A longer run is not changed.
    folder : Path, optional
        Folder of the runs; None stores none.
    late : callable
        Called after every step: whether to stop.
    shown : set of str, optional
        Titles and notes on standard error so far, each shown once; None shows neither these nor progress.

    Returns
    -------
    experiment : Experiment
    dataset : str
    history : History
        Without rows if no epoch was completed.
    """
    from circuitsim.training import ProgressLine, RunDirectory, Trainer

    directory = None if folder is None else RunDirectory(folder / name)
    known = directory is not None and directory.config.exists()
    options, recorded = given, given.recorded()
    if known and directory is not None:
        _check_recorded(directory, recorded)
        recorded = directory.options()
        options = options_again(recorded)
    done = _epochs_begun(directory) if known else 0
    if epochs is not None:
        options = options.but(epochs=max(epochs, done))
    experiment = family_of(options.model).build(options)
    asked = experiment.plan.epochs if epochs is None else epochs
    if shown is not None:
        for text in (experiment.title, *(f"note: {note}" for note in experiment.notes)):
            if text not in shown:
                print(text, file=sys.stderr)
            shown.add(text)
    trainer = Trainer(
        experiment.trainable,
        experiment.data,
        experiment.plan,
        experiment.evaluate,
        directory,
        None if shown is None else ProgressLine(sys.stderr, name),
        late,
    )
    if known and directory is not None:
        resume(trainer, directory)
    elif directory is not None:
        directory.create({**recorded, **experiment.chosen})
    history = trainer.history if late() or done >= asked else trainer.train().history
    data = recorded.get("data", recorded.get("dataset"))
    return experiment, str(experiment.chosen.get("dataset", Path(data).stem if data else data)), history


def resume(trainer: Trainer, directory: RunDirectory) -> None:
    """Take up a stored run, with a note if it has no checkpoint."""
    trainer.resume()
    if not directory.checkpoint.exists():
        print(f"note: {directory.path} has no checkpoint: training begins again", file=sys.stderr)


def _epochs_begun(directory: Any) -> int:
    """Epochs begun by the run in a directory."""
    from circuitsim.training.checkpoint import load_checkpoint

    if not directory.checkpoint.exists():
        return 0
    counters = load_checkpoint(directory.checkpoint)[1]["counters"]
    return int(counters["epoch"]) + (counters["batch"] > 0)


def _spread(done: list[Finished], shown: list[str]) -> list[list[str]]:
    """Mean and standard deviation of the columns, for two runs or more."""
    import numpy as np

    if len(done) < 2:
        return []
    values = np.array([[float(one.row[name]) for name in shown] for one in done])
    mean, deviation = values.mean(axis=0), values.std(axis=0, ddof=1)
    return [["mean", *(f"{x:.6g}" for x in mean)], ["deviation", *(f"{x:.2g}" for x in deviation)]]


def _check_recorded(directory: RunDirectory, options: Mapping[str, Any]) -> None:
    """Refuse a folder with a run with other options."""
    if not directory.config.exists():
        return
    recorded = directory.options()
    for name, asked in json.loads(json.dumps(dict(options))).items():
        if asked is not None and name not in LATER and recorded.get(name, asked) != asked:
            found = f"{name} = {recorded[name]!r}, not {asked!r}" if len(repr(asked)) < 80 else f"other {name}"
            raise UsageError(f"{directory.path} holds a run with {found}; name another --out, or --runs")
