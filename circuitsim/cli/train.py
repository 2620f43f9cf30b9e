"""``circuitsim train MODEL``: every model that can learn (`circuitsim.cli.models`), each with options of its own."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from circuitsim.cli import Parser
from circuitsim.cli.models import (
    MODELS,
    RUN,
    SHARED,
    check_acting,
    family_of,
    family_options,
    new_options,
    no_model,
    options_again,
)
from circuitsim.cli.options import Option, add_option, check_values
from circuitsim.cli.progress import Interrupt
from circuitsim.cli.seeds import resume, run_seeds
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from circuitsim.training import Callback, RunDirectory, Trainer, TrainingPlan
    from circuitsim.training.experiment import Experiment

RESUME = "resume"

# Options that a resumed run may change: training time, checkpoint interval, and threads, which do not affect results.
# Any other change would give another run.
_MAY_CHANGE = ("epochs", "checkpoint_seconds", "threads")

EPILOG = """\
Give options as --name value, as name=value, or in a TOML file (--config), which the others override.

examples:
  circuitsim train circuit netlists/learn-divider.cir --data netlists/learn-divider.csv --out run
  circuitsim train drn preset=drn-xs dataset=digits input-gain=30
  circuitsim train resume --out run --epochs 100
  circuitsim train drn --preset drn-xs --seeds 5 --workers 2 --out runs
  circuitsim train rbm --help
"""


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


def run(args: argparse.Namespace) -> int:
    """Train; 0 when done, 130 when interrupted and saved."""
    from circuitsim.training import RunDirectory

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
        from circuitsim.cli.compare import compare

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
    from circuitsim.training import TensorBoard

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
    from circuitsim.training import RunDirectory

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

    from circuitsim.training import Cosine

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
    from circuitsim.training import ProgressLine, Trainer

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
    nothing = ["nothing was trained (0 epochs)"]
    for line in experiment.summary(outcome.history) if outcome.history.rows else nothing:
        print(line)
    if outcome.skipped:
        print(f"note: {outcome.skipped} steps were skipped because their gradients were not certified", file=sys.stderr)
    if directory is not None:
        files = experiment.save(directory.path)
        files += experiment.draw(directory.path, outcome.history) if pictures else []
        print(f"written to {directory.path}: {', '.join(files)}, history, checkpoint")
    outcome.require_steps()
    return 0
