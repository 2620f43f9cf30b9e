"""``circuitsim train MODEL``: all models that can learn (`circuitsim.cli.models`), one seed or several; ``predict``."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from circuitsim._files import atomic_write
from circuitsim.cli import Parser
from circuitsim.cli.models import (
    MODELS,
    RUN,
    SHARED,
    Options,
    check_acting,
    family_of,
    family_options,
    new_options,
    no_model,
    options_again,
)
from circuitsim.cli.options import Option, add_option, check_values, command
from circuitsim.cli.output import check_target, deliver
from circuitsim.cli.progress import Interrupt, workers_of
from circuitsim.errors import UsageError
from circuitsim.formats.columns import csv
from circuitsim.formats.strict_json import dumps
from circuitsim.formats.table import Table
from circuitsim.points import computed
from circuitsim.training import Callback, Cosine, ProgressLine, RunDirectory, TensorBoard, Trainer, TrainingPlan
from circuitsim.training.checkpoint import load_checkpoint
from circuitsim.training.experiment import Experiment
from circuitsim.training.history import History, Row

LATER = ("epochs", "checkpoint_seconds", "threads", "seed")
"""Options of a recorded run that may differ from the requested ones."""

MEASURES = ("loss", "error", "accuracy", "likelihood")
"""Endings of the names of columns shown."""


class Task(NamedTuple):
    """A model to train, or to continue, in any process.

    Attributes
    ----------
    name : str
        Of the run: its folder in ``folder`` (None: nothing is stored) and its progress line.
    options : Options
    epochs : int or None
        See `train_run`.
    folder : Path or None
    after : callable
        Called in the run's process with the experiment, its history and whether it was interrupted.
    end : float
        When training ends (`time.time`).
    """

    name: str
    options: Options
    epochs: int | None
    folder: Path | None
    after: Callable[[Experiment, History, bool], Any] | None = None
    end: float = math.inf


class Finished(NamedTuple):
    """The data set of a run, the rows of its history, the result of its ``after``, and whether it was interrupted."""

    dataset: str
    rows: list[Row]
    made: Any
    interrupted: bool


def train_all(tasks: Sequence[Task], workers: int | None, dask: str | None) -> Iterator[Finished]:
    """Train models one after another, or side by side and silently, until one is interrupted."""
    shown: set[str] | None = set() if dask is None and workers in (None, 1) else None
    with workers_of(workers, dask) as (processes, given):
        for finished in computed(partial(_finished, shown), tasks, processes or 1, given):
            yield finished
            if finished.interrupted:
                break


def _finished(shown: set[str] | None, task: Task) -> Finished:
    with Interrupt() as stopped:

        def late() -> bool:
            return stopped() or time.time() >= task.end

        # Stored runs are shown even after the time limit; new ones are not started.
        if late() and (task.folder is None or not (task.folder / task.name).exists()):
            return Finished("", [], None, stopped())
        made, dataset, history = train_run(task.name, task.options, task.epochs, task.folder, late, shown)
        after = {} if task.after is None or not history.rows else task.after(made, history, stopped())
        return Finished(dataset, history.rows, after, stopped())


def run_seeds(options: Options) -> int:
    """Train with every seed; 0 when done, 130 when interrupted and saved."""
    folder = None if options.out is None else Path(options.out).resolve()
    seeds, tasks = range(options.seed, options.seed + options.seeds), []
    for seed in seeds:
        name, own = f"seed-{seed}", options.but(seed=seed)
        after = partial(_kept, None if folder is None else folder / name, not options.no_pictures)
        tasks.append(Task(name, own, options.epochs, folder, after))
        if folder is not None:
            _check_recorded(RunDirectory(folder / name), own.recorded())
    found: list[Finished] = []
    for finished in train_all(tasks, options.workers, options.dask):
        print(f"seed {seeds[len(found)]} done ({len(found) + 1} of {len(seeds)})", file=sys.stderr)
        found.append(finished)
    done = [(str(seed), one.rows[-1]) for seed, one in zip(seeds, found) if one.rows]
    if done:
        names = list(done[0][1])
        shown = [name for name in names if name.endswith(MEASURES)]
        values = np.array([[row[name] for name in shown] for _, row in done], dtype=float)
        rows = [(seed, *numbers) for (seed, _), numbers in zip(done, values.tolist())]
        if len(done) > 1:
            rows += [("mean", *values.mean(axis=0).tolist()), ("deviation", *values.std(axis=0, ddof=1).tolist())]
        if folder is not None:
            text = csv(["seed", *names], [[seed, *row.values()] for seed, row in done])
            atomic_write(folder / "seeds.csv", text.encode())
        print(Table.of(", ".join(["seed", *shown]), rows).text(), end="")
        if folder is not None:
            print(f"written to {folder}: seeds.csv, a folder for each seed")
    if found[-1].interrupted:
        saved = "repeat the command to continue" if folder else "nothing saved (no --out)"
        print(f"interrupted: {saved}", file=sys.stderr)
        return 130
    return 0


def _kept(folder: Path | None, pictures: bool, experiment: Experiment, history: History, interrupted: bool) -> None:
    """Write the model of a finished run, and its pictures."""
    if folder is not None and not interrupted:
        experiment.save(folder)
        if pictures:
            experiment.draw(folder, history)


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
    if not directory.checkpoint.exists():
        return 0
    counters = load_checkpoint(directory.checkpoint)[1]["counters"]
    return int(counters["epoch"]) + (counters["batch"] > 0)


def _check_recorded(directory: RunDirectory, options: Mapping[str, Any]) -> None:
    """Refuse a folder with a run with other options."""
    if not directory.config.exists():
        return
    recorded = directory.options()
    for name, asked in json.loads(json.dumps(dict(options))).items():
        if asked is not None and name not in LATER and recorded.get(name, asked) != asked:
            found = f"{name} = {recorded[name]!r}, not {asked!r}" if len(repr(asked)) < 80 else f"other {name}"
            raise UsageError(f"{directory.path} holds a run with {found}; name another --out, or --runs")


RESUME = "resume"

# Options that a resumed run may change: training time, checkpoint interval, and threads, which do not affect results.
# Any other change would give another run.
_MAY_CHANGE = ("epochs", "checkpoint_seconds", "threads")


class FamilyParser(Parser):
    """A parser of options by name, given as ``--name value`` or ``name=value``; absent ones stay absent.

    Attributes
    ----------
    options : mapping of str to Option
    notes : str
        Text of ``--help-all`` after the examples.
    """

    options: Mapping[str, Option]
    notes = ""

    def take(self, options: Mapping[str, Option]) -> None:
        """Add options; those shared by several families in a separate group."""
        self.options, self._rare, self._valued = options, list[tuple[argparse.Action, str]](), set[str]()
        self.add_argument("--help-all", action="store_true", default=argparse.SUPPRESS, help="all options and notes")
        groups = [self.add_argument_group(f"options of {what}") for what in ("this model", "the run")]
        common = SHARED | RUN
        for name, one in options.items():
            if name not in common:
                self._add(groups[0], name, one)
        for name in common:
            if name in options:
                self._add(groups[1], name, options[name])

    def _add(self, group: Any, name: str, one: Option) -> None:
        action = add_option(group, name, one, argparse.SUPPRESS, one.help if one.usual else argparse.SUPPRESS)
        if action is not None:
            self._rare.append((action, one.help))
            self._valued |= set() if action.nargs in (0, "?") else set(action.option_strings)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As in `argparse`, with words ``name=value`` too, which override options."""
        rest, stated = list[str](), dict[str, Any]()
        for word in args or ():
            name, equals, text = word.partition("=")
            name = name.replace("-", "_")
            if not equals or name not in self.options or (rest and rest[-1] in self._valued):
                rest.append(word)
                continue
            try:
                value = self.options[name].kind.read(text)
            except argparse.ArgumentTypeError as error:
                self.error(f"{name}: {error}")
            stated[name] = [*stated.get(name, []), *value] if isinstance(value, list) else value
        if "--help-all" in rest:
            for action, help in self._rare:
                action.help = help
            self.epilog = f"{self.epilog}{self.notes}"
            self.print_help()
            self.exit()
        found, left = super().parse_known_args(rest, namespace)
        if left:
            words = (f"--{word}" if "=" in word and word[0].isalpha() else word for word in left)
            self.error(f"unrecognized arguments: {' '.join(words)}")
        return argparse.Namespace(**{**vars(found), **stated}), left


def add_arguments(parser: Parser) -> None:
    """One sub-parser per model."""
    parser.explain = _explained
    models = parser.add_subparsers(
        dest="model", metavar="MODEL", required=True, title="models", parser_class=FamilyParser
    )

    def sub_parser(name: str, line: str, words: str = "") -> FamilyParser:
        made: FamilyParser = models.add_parser(
            name,
            help=line,
            description=line[0].upper() + line[1:] + ".",
            usage=f"{parser.prog} {name}{words} [options] [name=value …]",
            formatter_class=parser.formatter_class,
            allow_abbrev=False,
        )
        made.above = parser
        return made

    for name, line in MODELS.items():
        family, options = family_of(name), family_options(name)
        own = sub_parser(name, line, " [DECK]" * ("deck" in options))
        own.epilog, own.notes = family.EPILOG, getattr(family, "NOTES", "")
        own.take({"config": SHARED["config"], **options})
    own = sub_parser(RESUME, "continue a run, bit for bit as if it had never stopped")
    known = family_options("drn")
    names = (*_MAY_CHANGE, "out", "no_pictures", "tensorboard")
    own.take({name: known[name]._replace(usual=True) for name in names})


def _explained(message: str) -> str | None:
    """A hint for a word that names no model, for a message of `argparse`."""
    word = re.match(r"argument MODEL: invalid choice: '([^']*)'", message)
    return no_model(word[1]) if word else None


@command(
    add_arguments,
    """\
Give options as --name value, as name=value, or in a TOML file (--config), which the others override.

examples:
  circuitsim train circuit netlists/learn-divider.cir --data netlists/learn-divider.csv --out run
  circuitsim train drn preset=drn-xs dataset=digits input-gain=30
  circuitsim train resume --out run --epochs 100
  circuitsim train drn --preset drn-xs --seeds 5 --workers 2 --out runs
  circuitsim train rbm --help
""",
)
def run_train(args: argparse.Namespace) -> int:
    """Train; 0 when done, 130 when interrupted and saved."""
    if args.model == RESUME:
        return _resume(args)
    known = family_options(args.model)
    given = {name: value for name, value in vars(args).items() if name in known}
    check_values(given, known)
    if "config" in args:
        given = {**configured(args.config, known), **given}
    options = new_options({"model": args.model, **given})
    check_acting(options, given)
    if "compare" in given:
        from circuitsim.cli.models.circuit import compare

        if options.out is not None:
            raise UsageError("--compare trains nothing: leave --out out, or --compare")
        print(compare(options, set(given)), end="")
        return 0
    if options.seeds is not None:
        if options.tensorboard is not None:
            raise UsageError("--tensorboard is for one run: leave --seeds out, or --tensorboard")
        return run_seeds(options)
    if options.workers is not None or options.dask is not None:
        raise UsageError("--workers and --dask are for several runs: give --seeds N too")
    made = family_of(args.model).build(options)
    directory = None if options.out is None else RunDirectory(options.out)
    callbacks = _callbacks(options.tensorboard)
    if directory is not None:
        directory.create({**options.recorded(), **made.chosen})
    return _train(made, directory, not options.no_pictures, callbacks)


def _callbacks(tensorboard: str | None) -> list[Callback]:
    return [] if tensorboard is None else [TensorBoard(tensorboard)]


def configured(path: str, known: Mapping[str, Option]) -> dict[str, Any]:
    """Options from a TOML file: the names of the command line, with ``-`` or ``_``.

    Raises
    ------
    UsageError
        The file does not exist or is not TOML, or a value has the wrong type for its option.
    """
    import tomllib

    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)
    except FileNotFoundError:
        raise UsageError(f"no configuration {path!r}: there is no such file") from None
    except (ValueError, RecursionError) as error:
        # Bad TOML, invalid UTF-8, a number of thousands of digits, deeply nested lists.
        raise UsageError(f"{path}: {error}") from None
    if "model" in found:
        raise UsageError(f"{path}: name the model on the command line: circuitsim train MODEL --config FILE")
    options = {name.replace("-", "_"): value for name, value in found.items()}
    check_values(options, known, path)
    return options


def experiment(model: str, **options: Any) -> Experiment:
    """The experiment of ``circuitsim train MODEL`` with these options, ready to start.

    Parameters
    ----------
    model : str
        circuit, drn, dhn, ffebm or rbm.
    **options
        As on the command line, with ``_`` for ``-``; omitted ones have the command's default.

    Raises
    ------
    UsageError
        A model or an option that does not exist.

    Examples
    --------
    >>> made = experiment("circuit", deck="netlists/learn-divider.cir", data="netlists/learn-divider.csv", epochs=3)
    >>> print(made.title)
    A voltage divider that learns its ratio: 1 input, 1 output, 5 trainable elements; ep, 4 samples
    """
    made: Experiment = family_of(model).build(new_options({"model": model, **options}))
    return made


def _resume(args: argparse.Namespace) -> int:
    """Continue the run of a folder."""
    if "out" not in args:
        raise UsageError("name the run: circuitsim train resume --out DIR")
    directory = RunDirectory(args.out)
    recorded = directory.options()
    source, model = str(directory.config), str(recorded.get("model"))
    if model not in MODELS:
        raise UsageError(f"{source}: this version has no model {model!r}; start the run anew")
    known = {name: one for name, one in family_options(model).items() if one.recorded}
    stated = {name: value for name, value in recorded.items() if value is not None}
    empty = {name: None for name, one in known.items() if name in recorded and one.default is not None}
    check_values({**empty, **stated}, known, source)
    missing = [name for name in known if name not in recorded and name not in RUN]
    if missing:
        raise UsageError(f"the recorded configuration lacks {', '.join(missing)}; it cannot be resumed")
    changed = {name: value for name, value in vars(args).items() if name in _MAY_CHANGE}
    check_values(changed, known)
    new_options({"model": model, **changed})  # an error where the family has no such option
    config = {**recorded, **changed}
    made = family_of(model).build(options_again(config))

    def begin(trainer: Trainer) -> None:
        resume(trainer, directory)
        note = _stretched(made.plan, recorded.get("epochs"), trainer.epoch)
        if note is not None:
            print(f"note: {note}", file=sys.stderr)
        for change in directory.update(config):
            print(f"note: the software has changed, bits may differ: {change}", file=sys.stderr)

    return _train(made, directory, "no_pictures" not in args, _callbacks(getattr(args, "tensorboard", None)), begin)


def _stretched(plan: TrainingPlan, before: int | None, done: int) -> str | None:
    """The note that a cosine schedule over another number of epochs changes the learning rate; None otherwise."""
    from dataclasses import replace

    if not isinstance(plan.schedule, Cosine) or not before or done >= plan.epochs:
        return None
    old, new = replace(plan.schedule, epochs=before).factor(done), plan.schedule.factor(done)
    if old == new:
        return None
    return (
        f"the cosine schedule now ends at epoch {plan.epochs}, not {before}: the factor on the learning rate in "
        f"epoch {done + 1} is {new:.3g} instead of {old:.3g} (column rate_factor)"
    )


def _train(
    experiment: Experiment,
    directory: RunDirectory | None,
    pictures: bool,
    callbacks: Sequence[Callback],
    begin: Callable[[Trainer], None] = lambda trainer: None,
) -> int:
    """Train an experiment after ``begin(trainer)``, and write its model and, with ``pictures``, its pictures."""
    print(experiment.title)
    for note in experiment.notes:
        print(f"note: {note}", file=sys.stderr)
    with Interrupt() as stopped, nullcontext() if directory is None else directory.locked():
        trainer = Trainer(
            experiment.trainable,
            experiment.data,
            experiment.plan,
            experiment.evaluate,
            directory,
            ProgressLine(sys.stderr, "training"),
            stopped,
            callbacks,
        )
        begin(trainer)
        outcome = trainer.train()
    if outcome.interrupted:
        saved = "nothing saved (no --out)"
        if directory is not None:
            saved = f"saved in {directory.path}; continue with circuitsim train resume --out {directory.path}"
        print(f"interrupted after {outcome.updates} updates: {saved}", file=sys.stderr)
        return 130
    files: list[str] = []  # written before anything is printed: nobody may read it to its end
    if directory is not None:
        files = experiment.save(directory.path)
        files += experiment.draw(directory.path, outcome.history) if pictures else []
    nothing = ["nothing was trained (0 epochs)"]
    for line in experiment.summary(outcome.history) if outcome.history.rows else nothing:
        print(line)
    if outcome.skipped:
        print(f"note: {outcome.skipped} steps were skipped because their gradients were not certified", file=sys.stderr)
    if directory is not None:
        print(f"written to {directory.path}: {', '.join(files)}, history, checkpoint")
    outcome.require_steps()
    return 0


@command(
    """
run_directory RUN  the directory given to circuitsim train --out
!--data FILE  samples, or the name of a data set
@format csv table json
@output the predictions
""",
    """\
FILE is as the training data: .csv, .npz, idx files or the name of a data set. Where it has targets, the
error and the loss follow (JSON: "evaluation").

examples:
  circuitsim train circuit netlists/learn-divider.cir --data netlists/learn-divider.csv --out run
  circuitsim predict run --data netlists/learn-divider.csv
""",
)
def run_predict(args: argparse.Namespace) -> int:
    """Print one row per sample: number, class if there are classes, outputs; then the errors."""
    from circuitsim.trained import load_run

    check_target(args.output, [])
    model, why = load_run(args.run_directory), None
    try:
        samples = model.read(args.data)
    except UsageError as error:
        samples, why = model.read(args.data, targets=False), error
        print(f"note: no errors are computed: {why}", file=sys.stderr)
    outputs = model.outputs(samples.x)
    evaluation = {} if why else model.evaluate(samples, outputs)
    width = len(model.classes)
    classes = [model.classes[k] for k in outputs[:, :width].argmax(axis=1).tolist()] if width else []
    columns = {"sample": [str(k) for k in range(len(outputs))], **({"class": classes} if width else {})}
    found = Table(
        (*columns, *model.output_names), ("",) * (len(columns) + len(outputs.T)), (*columns.values(), *outputs.T)
    )
    longest = max(map(len, evaluation), default=0)
    measures = "".join(f"{name.replace('_', ' '):{longest}}  {x:.6g}\n" for name, x in evaluation.items())
    if args.format == "json":
        content = {"schema": 2, "outputs": list(model.output_names), "values": outputs.tolist()}
        content |= {"classes": classes or None} | ({"evaluation": evaluation} if evaluation else {})
        deliver(dumps(content), args.output)
    elif args.format == "csv":
        deliver(found.csv(), args.output)
        print(measures, end="", file=sys.stderr)
    else:
        deliver(found.text() + "\n" * bool(measures) + measures, args.output)
    return 0
