"""The training runs of a study: stored in folders, resumable, limited in time."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from circuitsim.errors import UsageError
from circuitsim.training.history import Row

R = TypeVar("R")

COMPILED = (
    "those of a run's first epoch include the compilation of kernels where no cache holds them (circuitsim warm-up "
    "makes it ahead)"
)
"""What pages say of seconds."""


def published(figures: Sequence[str], comparable: bool) -> list[str]:
    """A paper's figures for a row of a table; "–" for each where the runs are of other data or another network."""
    return list(figures) if comparable else ["–"] * len(figures)


class Case(NamedTuple):
    """One run of a study, for any process.

    Attributes
    ----------
    key : tuple
        What is trained, with its seed.
    args : argparse.Namespace
        The options of the study.
    end : float or None
        Time (s since the epoch) after which nothing is trained.
    shown : set of str, optional
        Titles and notes on standard error so far; None for a run beside others, which shows nothing.
    """

    key: tuple[Any, ...]
    args: argparse.Namespace
    end: float | None
    shown: set[str] | None


def run_cases(
    function: Callable[[Case, Callable[[], bool]], R], keys: Sequence[tuple[Any, ...]], args: argparse.Namespace
) -> tuple[list[R], bool]:
    """``function(case, late)`` of every key, here, in processes or on a cluster.

    Parameters
    ----------
    function : callable
        Of a module; trains until ``late()``.
    keys : sequence of tuple
    args : argparse.Namespace
        With ``budget`` (minutes or None), ``workers`` and ``dask``.

    Raises
    ------
    UsageError
        An extent that trains nothing (`check_extent`).

    Returns
    -------
    results : list
        In the order of the keys.
    interrupted : bool
    """
    from circuitsim.cli.workers import workers_of
    from circuitsim.executors import executor_of, in_order
    from circuitsim.training.interrupt import interrupt_flag

    check_extent(args)
    end = None if args.budget is None else time.time() + 60.0 * args.budget
    plain = argparse.Namespace(**{name: value for name, value in vars(args).items() if not callable(value)})
    apart = args.dask is not None or args.workers not in (None, 1)
    shown: set[str] | None = None if apart else set()
    tasks = [(function, Case(key, plain, end, shown)) for key in keys]
    with (
        interrupt_flag() as stopped,
        workers_of(args.workers, args.dask) as (workers, given),
        executor_of(workers or 1, given) as where,
    ):
        if where[0] is None:
            found = [_until(function, case, stopped) for _, case in tasks]
        else:
            found = []
            for result in in_order(*where, _run_case, tasks):
                found.append(result)
                print(f"{len(found)} of {len(tasks)} runs done", file=sys.stderr)
        return found, stopped()


def check_extent(args: argparse.Namespace) -> None:
    """Refuse numbers of seeds, epochs or samples below one, and a time limit that is no number or negative.

    Raises
    ------
    UsageError
    """
    for name in ("seeds", "epochs", "samples"):
        number = getattr(args, name, None)
        if number is not None and number < 1:
            raise UsageError(f"--{name} must be at least 1, not {number}")
    budget = getattr(args, "budget", None)
    if budget is not None and not 0.0 <= budget < math.inf:
        raise UsageError(f"--budget is a number of minutes (0: show stored runs only), not {budget}")


def _run_case(task: tuple[Callable[[Case, Callable[[], bool]], R], Case]) -> R:
    from circuitsim.training.interrupt import interrupt_flag

    function, case = task
    with interrupt_flag() as stopped:
        return _until(function, case, stopped)


def _until(function: Callable[[Case, Callable[[], bool]], R], case: Case, stopped: Callable[[], bool]) -> R:
    end = case.end
    return function(case, lambda: stopped() or (end is not None and time.time() >= end))


def train_run(
    name: str,
    given: Mapping[str, Any],
    epochs: int | None,
    folder: Path | None,
    late: Callable[[], bool],
    shown: set[str] | None = None,
) -> tuple[Any, str, list[Row]]:
    """Train one model, or continue it.

    Parameters
    ----------
    name : str
        Of the run: its folder and its progress line.
    given : mapping
        Options as ``circuitsim train`` takes them, ``model`` among them.
    epochs : int, optional
        How many in all; the model's own number otherwise. A run that is further already stays as it is.
    folder : Path, optional
        Folder of the runs; None stores none.
    late : callable
        Asked after every step: whether to stop.
    shown : set of str, optional
        Titles and notes on standard error so far, each shown once; None shows neither these nor progress.

    Returns
    -------
    experiment : Experiment
    dataset : str
    history : list of rows
        Empty where no epoch was finished.
    """
    from circuitsim.cli import train as command
    from circuitsim.training import ProgressLine, RunDirectory, Trainer

    directory = None if folder is None else RunDirectory(folder / name)
    known = directory is not None and directory.config.exists()
    options = directory.options() if known and directory is not None else command.new_options(given)
    asked = _own_epochs(options) if epochs is None else epochs
    done = _epochs_begun(directory) if known else 0
    experiment = command._family(options["model"]).build({**options, "epochs": max(asked, done)})
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
    if known:
        trainer.resume()
    elif directory is not None:
        directory.create({**options, **experiment.chosen})
    history = trainer.history if late() or done >= asked else trainer.train().history
    return experiment, str(experiment.chosen.get("dataset", options.get("dataset"))), history.rows


def _own_epochs(options: Mapping[str, Any]) -> int:
    """The epochs of a run's options; where they are left open, the published model's."""
    if options["epochs"] is not None:
        return int(options["epochs"])
    from circuitsim.layered.architecture import published_models

    return published_models()[options["preset"]].epochs


def _epochs_begun(directory: Any) -> int:
    """Epochs begun by the run in a directory."""
    from circuitsim.training.checkpoint import load_checkpoint

    if not directory.checkpoint.exists():
        return 0
    counters = load_checkpoint(directory.checkpoint)[1]["counters"]
    return int(counters["epoch"]) + (counters["batch"] > 0)


def write_results(directory: Path, name: str, page: str, table: str) -> None:
    """Write ``name.md`` and ``name.csv``, each whole or not at all, into a directory that need not exist."""
    from circuitsim._files import atomic_write

    directory.mkdir(parents=True, exist_ok=True)
    atomic_write(directory / f"{name}.md", page.encode())
    atomic_write(directory / f"{name}.csv", table.encode())
