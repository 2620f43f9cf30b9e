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
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from circuitsim._files import atomic_write
from circuitsim.cli import Option, Parser, Values, add_option, check_values, command
from circuitsim.cli.common import INTERRUPTED, Interrupt, check_target, deliver, say, workers_of
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
from circuitsim.errors import UsageError
from circuitsim.formats import Table, csv, dumps
from circuitsim.points import computed
from circuitsim.training import Callback, Cosine, ProgressLine, RunDirectory, TensorBoard, Trainer, TrainingPlan
from circuitsim.training.checkpoint import load_checkpoint
from circuitsim.training.experiment import Experiment
from circuitsim.training.history import History, Row
from circuitsim.training.trainer import Outcome

MEASURES = ("loss", "error", "accuracy", "likelihood")
"""Endings of the names of columns shown."""

MAY_CHANGE = ("epochs", "checkpoint_seconds", "threads")
"""Options that a continued run may change: training time, checkpoint interval, and threads, which do not affect
results. Any other change would give another run."""

RESUME = "resume"


# ---------------------------------------------------------------------- one run
class Task(NamedTuple):
    """A model to train, or to continue, in any process.

    Attributes
    ----------
    name : str
        Of its progress line.
    options : Options
        Those of a new run; a stored one must have the same, except for `MAY_CHANGE`.
    folder : Path or None
        Its folder; None: nothing is stored.
    epochs : int or None
        Total number, by default the model's own. A longer run is not changed.
    after : callable
        Called in the run's process with the experiment, its history and whether it was interrupted.
    end : float
        When training ends (`time.time`).
    """

    name: str
    options: Options
    folder: Path | None
    epochs: int | None = None
    after: Callable[[Experiment, History, bool], Any] | None = None
    end: float = math.inf


def train_run(
    task: Task,
    late: Callable[[], bool],
    tell: Callable[[str], None] | None = None,
    callbacks: Sequence[Callback] = (),
) -> tuple[Experiment, Outcome]:
    """Train a model, or continue the run in its folder.

    Parameters
    ----------
    task : Task
    late : callable
        Called after every step: whether to stop.
    tell : callable, optional
        Called with the title and with each note; None shows neither these nor progress.
    callbacks : sequence of callable
        As `Trainer` takes them.

    Raises
    ------
    UsageError
        The folder holds a run with other options, or another process trains in it.
    """
    options, recorded, done = task.options, Values(), 0
    directory = None if task.folder is None else RunDirectory(task.folder)
    if directory is not None and directory.config.exists():
        check_recorded(directory, options)
        changed = {name: vars(options).get(name) for name in MAY_CHANGE}
        recorded = directory.options() | {name: value for name, value in changed.items() if value is not None}
        options = options_again(recorded)
    if task.epochs is not None:
        done = _epochs_begun(directory) if directory is not None and recorded else 0
        options = options.but(epochs=max(task.epochs, done))
    made: Experiment = family_of(options.model).build(options)
    if directory is not None and not recorded:
        directory.create({**task.options.recorded(), **made.chosen})
    progress, tell = (ProgressLine(sys.stderr, task.name), tell) if tell else (None, lambda line: None)
    for line in (made.title, *(f"note: {note}" for note in made.notes)):
        tell(line)
    with nullcontext() if directory is None else directory.locked():
        trainer = Trainer(made.trainable, made.data, made.plan, made.evaluate, directory, progress, late, callbacks)
        if directory is not None and recorded:
            before = directory.options().get("epochs")
            trainer.resume()
            for note in (*_restarted(directory, made.plan, before, trainer.epoch), *directory.update(recorded)):
                tell(f"note: {note}")
        if late() or (task.epochs is not None and done >= task.epochs):
            return made, Outcome(trainer.history, False, 0, 0)
        return made, trainer.train()


def check_recorded(directory: RunDirectory, options: Options) -> None:
    """Refuse a folder that holds a run with other options."""
    recorded = directory.options()
    for name, asked in json.loads(json.dumps(options.recorded())).items():
        if asked is not None and name not in (*MAY_CHANGE, "seed") and recorded.get(name, asked) != asked:
            found = f"{name} = {recorded[name]!r}, not {asked!r}" if len(repr(asked)) < 80 else f"other {name}"
            raise UsageError(f"{directory.path} holds a run with {found}; name another --out, or --runs")


def _epochs_begun(directory: RunDirectory) -> int:
    """Epochs begun by the run in a directory."""
    if not directory.checkpoint.exists():
        return 0
    counters = load_checkpoint(directory.checkpoint)[1]["counters"]
    return int(counters["epoch"]) + (counters["batch"] > 0)


def _restarted(directory: RunDirectory, plan: TrainingPlan, before: int | None, done: int) -> Iterator[str]:
    """Notes on a run that continues: without a checkpoint, or by a cosine schedule over another number of epochs, which
    changes the learning rate."""
    if not directory.checkpoint.exists():
        yield f"{directory.path} has no checkpoint: training begins again"
    if isinstance(plan.schedule, Cosine) and before and done < plan.epochs:
        old, new = replace(plan.schedule, epochs=before).factor(done), plan.schedule.factor(done)
        if old != new:
            yield (
                f"the cosine schedule now ends at epoch {plan.epochs}, not {before}: the factor on the learning rate "
                f"in epoch {done + 1} is {new:.3g} instead of {old:.3g} (column rate_factor)"
            )


def _kept(folder: Path | None, pictures: bool, made: Experiment, history: History, interrupted: bool) -> list[str]:
    """Write the model of a finished run, and its pictures; the names of the files."""
    if folder is None or interrupted:
        return []
    files = made.save(folder)
    RunDirectory(folder).seal(files)
    return [*files, *(made.draw(folder, history) if pictures else [])]


def _train(task: Task, pictures: bool, tensorboard: str | None) -> int:
    """Train one model with all that is shown; 0 when done, 130 when interrupted and saved."""

    def tell(line: str) -> None:
        print(line, file=sys.stderr if line.startswith("note: ") else sys.stdout)

    with Interrupt() as stopped:
        made, outcome = train_run(task, stopped, tell, [] if tensorboard is None else [TensorBoard(tensorboard)])
    if outcome.interrupted:
        saved = "nothing saved (no --out)"
        if task.folder is not None:
            saved = f"saved in {task.folder}; continue with circuitsim train resume --out {task.folder}"
        say(f"interrupted after {outcome.updates} updates: {saved}")
        return INTERRUPTED
    # Written before anything is printed: nobody may read it to its end.
    files = _kept(task.folder, pictures, made, outcome.history, False)
    nothing = ["nothing was trained (0 epochs)"]
    for line in made.summary(outcome.history) if outcome.history.rows else nothing:
        print(line)
    if outcome.skipped:
        say(f"note: {outcome.skipped} steps were skipped because their gradients were not certified")
    if task.folder is not None:
        print(f"written to {task.folder}: {', '.join(files)}, history, checkpoint")
    outcome.require_steps()
    return 0


# ---------------------------------------------------------------------- several runs
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
    """One of several runs; lines in ``shown`` are not shown again, None shows none."""

    def tell(line: str) -> None:
        if shown is not None and line not in shown:
            say(line)
            shown.add(line)

    with Interrupt() as stopped:

        def late() -> bool:
            return stopped() or time.time() >= task.end

        # Stored runs are shown even after the time limit; new ones are not started.
        if late() and (task.folder is None or not task.folder.exists()):
            return Finished("", [], None, stopped())
        made, outcome = train_run(task, late, None if shown is None else tell)
        rows, given = outcome.history.rows, vars(task.options)
        after = task.after(made, outcome.history, stopped()) if task.after and rows else {}
        name = given.get("dataset") or Path(given.get("data") or "").stem
        return Finished(str(made.chosen.get("dataset", name)), rows, after, stopped())


def run_seeds(options: Options) -> int:
    """Train with every seed; 0 when done, 130 when interrupted and saved."""
    folder = None if options.out is None else Path(options.out).resolve()
    seeds, tasks = range(options.seed, options.seed + options.seeds), []
    for seed in seeds:
        own = None if folder is None else folder / f"seed-{seed}"
        task = Task(f"seed-{seed}", options.but(seed=seed), own, options.epochs)
        tasks.append(task._replace(after=partial(_kept, own, not options.no_pictures)))
        if own is not None and (directory := RunDirectory(own)).config.exists():
            check_recorded(directory, task.options)
    found: list[Finished] = []
    for finished in train_all(tasks, options.workers, options.dask):
        say(f"seed {seeds[len(found)]} done ({len(found) + 1} of {len(seeds)})")
        found.append(finished)
    done = {str(seed): one.rows[-1] for seed, one in zip(seeds, found) if one.rows}
    if done:
        names = list(next(iter(done.values())))
        shown = [name for name in names if name.endswith(MEASURES)]
        values = np.array([[row[name] for name in shown] for row in done.values()], dtype=float)
        spread = [values.mean(axis=0), values.std(axis=0, ddof=1)] if len(done) > 1 else []
        rows = [(label, *row.tolist()) for label, row in zip([*done, "mean", "deviation"], [*values, *spread])]
        if folder is not None:
            text = csv(["seed", *names], [[seed, *row.values()] for seed, row in done.items()])
            atomic_write(folder / "seeds.csv", text.encode())
        print(Table.of(", ".join(["seed", *shown]), rows).text(), end="")
        if folder is not None:
            print(f"written to {folder}: seeds.csv, a folder for each seed")
    if found[-1].interrupted:
        saved = "repeat the command to continue" if folder else "nothing saved (no --out)"
        say(f"interrupted: {saved}")
        return INTERRUPTED
    return 0


# ---------------------------------------------------------------------- the command
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
        self.options, common, self._helps = options, SHARED | RUN, dict[argparse.Action, str]()
        self.add_argument("--help-all", action="store_true", default=argparse.SUPPRESS, help="all options and notes")
        own, run = (self.add_argument_group(f"options of {what}") for what in ("this model", "the run"))
        for name in [*(name for name in options if name not in common), *(name for name in common if name in options)]:
            one = options[name]
            words = one.help if one.usual else argparse.SUPPRESS
            if action := add_option(run if name in common else own, name, one, argparse.SUPPRESS, words):
                self._helps[action] = one.help

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As in `argparse`, with words ``name=value`` too, which override options."""
        rest, stated = list[str](), Values()
        for word in args or ():
            name, equals, text = word.partition("=")
            name = name.replace("-", "_")
            before = self._option_string_actions.get(rest[-1]) if rest else None
            if not equals or name not in self.options or (before and before.nargs not in (0, "?")):
                rest.append(word)
                continue
            try:
                value = self.options[name].kind.read(text)
            except argparse.ArgumentTypeError as error:
                self.error(f"{name}: {error}")
            stated[name] = [*stated.get(name, []), *value] if isinstance(value, list) else value
        if "--help-all" in rest:
            for action, help in self._helps.items():
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
    names = (*MAY_CHANGE, "out", "no_pictures", "tensorboard")
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
    folder = None if options.out is None else Path(options.out)
    if folder is not None:
        RunDirectory(folder).require_new()
    return _train(Task("training", options, folder), not options.no_pictures, options.tensorboard)


def configured(path: str, known: Mapping[str, Option]) -> Values:
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
    # What may be left open is recorded as null.
    empty = {name for name, one in known.items() if one.default is None and recorded.get(name) is None}
    check_values({name: value for name, value in recorded.items() if name not in empty}, known, source)
    missing = [name for name in known if name not in recorded and name not in RUN]
    if missing:
        raise UsageError(f"the recorded configuration lacks {', '.join(missing)}; it cannot be resumed")
    changed = {name: value for name, value in vars(args).items() if name in MAY_CHANGE}
    check_values(changed, known)
    new_options({"model": model, **changed})  # an error where the family has no such option
    task = Task("training", options_again({**recorded, **changed}), directory.path)
    return _train(task, "no_pictures" not in args, getattr(args, "tensorboard", None))


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
def run_predict(args: argparse.Namespace) -> None:
    """Print one row per sample: number, class if there are classes, outputs; then the errors."""
    from circuitsim.trained import load_run

    check_target(args.output, [])
    model, why = load_run(args.run_directory), None
    try:
        samples = model.read(args.data)
    except UsageError as error:
        samples, why = model.read(args.data, targets=False), error
        say(f"note: no errors are computed: {why}")
    outputs = model.outputs(samples.x)
    evaluation = {} if why else model.evaluate(samples, outputs)
    width = len(model.classes)
    classes = [model.classes[k] for k in outputs[:, :width].argmax(axis=1).tolist()] if width else []
    columns = {"sample": [str(k) for k in range(len(outputs))], **({"class": classes} if width else {})}
    columns |= dict(zip(model.output_names, outputs.T))
    found = Table(tuple(columns), ("",) * len(columns), tuple(columns.values()))
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
