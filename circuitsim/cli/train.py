"""``circuitsim train MODEL``: every model that can learn, each with options and help of its own.

A model family is a module with

    DEFAULTS                 its options and their default values
    add_arguments(group)     its options, each with ``default=argparse.SUPPRESS``, but for those of `COMMON_OPTIONS`
    build(options)           an `Experiment` from a complete table of options
    EPILOG                   if it has any: examples for its help
    FILE_OPTIONS             if it has any: how options are read that only a file can give

and a row in `MODELS`. Everything else (progress, history, checkpoints, resumption) is the same for all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim.cli.options import Kind, Option, OptionGroup, Reading, add_options, check_values
from circuitsim.cli.seeds import add_seeds, run_seeds
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from circuitsim.training import Callback, TrainingPlan
    from circuitsim.training.experiment import Experiment

# MODEL → (module of its family, its line in the help).
MODELS: dict[str, tuple[str, str]] = {
    "circuit": ("circuitsim.cli.models.circuit", "a deck with inputs, outputs and trainable elements"),
    "drn": ("circuitsim.cli.models.drn", "deep resistive networks (Scellier 2024)"),
    "dhn": ("circuitsim.cli.models.dhn", "deep Hopfield networks (Scellier 2024)"),
    "ffebm": ("circuitsim.cli.models.ffebm", "chains of digital stages and blocks (Nest & Ernoult 2024)"),
    "rbm": ("circuitsim.cli.models.rbm", "restricted Boltzmann machines (Fischer & Igel 2011)"),
}

RESUME = "resume"

# Options of every family, with the defaults that a family may replace.
COMMON: dict[str, Any] = {"seed": 0, "evaluate_every": 1, "checkpoint_seconds": 30.0}

COMMON_OPTIONS: dict[str, Option] = {
    "dataset": (str, "NAME", "what to train on, or a folder of idx files"),
    "data_dir": (str, "DIR", "directory of data sets (docs/models.md)"),
    "epochs": (int, "N", "passes over the data"),
    "batch": (int, "N", "samples in a step"),
    "lr": (float, "R", "learning rate"),
    "momentum": (float, "M", "momentum, 0 to 1"),
    "weight_decay": (float, "D", "L2 penalty on the weights"),
    "seed": (int, "N", "of all random numbers"),
    "evaluate_every": (int, "N", "epochs between two rows of the history"),
    "checkpoint_seconds": (float, "S", "least time between checkpoints"),
}
"""Options that mean the same in every family that has them in its `DEFAULTS`: type, word for the value, help."""

# What a resumed run may change: how long it trains, how often it saves, and threads, which change no bit of a result.
# All else would give another run.
_MAY_CHANGE = ("epochs", "checkpoint_seconds", "threads")

EPILOG = """\
examples:
  circuitsim train circuit netlists/learn-divider.cir --data netlists/learn-divider.csv --out run
  circuitsim train drn --preset drn-xs --dataset digits --input-gain 30
  circuitsim train resume --out run --epochs 100
  circuitsim train drn --preset drn-xs --seeds 5 --workers 2 --out runs
  circuitsim train rbm --help
"""


NOT_OPTIONS = ("command", "debug", "quiet", "verbose", "color", "run", "readings")
"""What a parsed command line has beside the options of a run."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One sub-parser for each model; options have no defaults: an absent one is None."""
    parser.epilog = EPILOG
    models = parser.add_subparsers(
        dest="model", metavar="MODEL", required=True, action=_Models, title="models", parser_class=type(parser)
    )
    for name, (home, line) in MODELS.items():
        family = import_module(home)
        _add_family(_sub_parser(models, name, line, getattr(family, "EPILOG", None)), family)
    resumed = _sub_parser(models, RESUME, "continue a run, bit for bit as if it had never stopped", None)
    group = OptionGroup(resumed, {})
    for name in ("epochs", "checkpoint_seconds"):
        _add_common(group, name, None)
    group.add_argument("--threads", type=int, metavar="N", default=argparse.SUPPRESS, help="threads (drn)")
    _add_output(group, required=True)
    resumed.set_defaults(readings=group.readings)


def _sub_parser(models: Any, name: str, line: str, epilog: str | None) -> Any:
    return models.add_parser(
        name,
        help=line,
        description=line[0].upper() + line[1:] + ".",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _add_family(parser: Any, family: ModuleType) -> None:
    """Options of one model: its own, then those that it shares with others."""
    readings: dict[str, Reading] = {}
    family.add_arguments(OptionGroup(parser.add_argument_group("options of this model"), readings))
    run = OptionGroup(parser.add_argument_group("options of the run"), readings)
    run.add_argument(
        "--config", metavar="FILE", default=argparse.SUPPRESS, help="options from a TOML file; others override it"
    )
    defaults = {**COMMON, **family.DEFAULTS}
    for name in COMMON_OPTIONS:
        if name in defaults:
            _add_common(run, name, defaults[name])
    _add_output(run)
    add_seeds(run, argparse.SUPPRESS)
    readings.update(getattr(family, "FILE_OPTIONS", {}))
    parser.set_defaults(readings=readings)


def _add_common(group: OptionGroup, name: str, default: Any) -> None:
    kind, metavar, words = COMMON_OPTIONS[name]
    shown = "" if default is None else f" ({default:g})" if isinstance(default, float) else f" ({default})"
    add_options(group, {f"--{name.replace('_', '-')}": (kind, metavar, words + shown)})


def _add_output(group: OptionGroup, required: bool = False) -> None:
    none = argparse.SUPPRESS
    group.add_argument(
        "--out", metavar="DIR", default=none, required=required, help="write history, checkpoints, model, pictures here"
    )
    group.add_argument("--no-pictures", action="store_true", default=none, help="write no pictures into --out")
    group.add_argument(
        "--tensorboard", metavar="DIR", default=none, help="write each row of the history for TensorBoard too (extra)"
    )


class _AnyWord(dict[str, Any]):
    """Parsers by name that every word passes for one of: `_Models` says more about a wrong word than `argparse`."""

    def __contains__(self, word: object) -> bool:
        return True


class _Models(argparse._SubParsersAction):  # type: ignore[type-arg]  # generic in typeshed alone
    """The choice of a model; what was written in earlier versions is refused with what to write now."""

    @property
    def choices(self) -> Any:
        """The parsers by name."""
        return _AnyWord(self._name_parser_map)

    @choices.setter
    def choices(self, value: Any) -> None:
        """Set by `argparse` to the map of names, which is known."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        word = values[0]
        if word not in self._name_parser_map:
            raise UsageError(_no_model(word))
        super().__call__(parser, namespace, values, option)


def _no_model(word: str) -> str:
    family, _, size = word.partition("-")
    if family in ("drn", "dhn") and size:
        return f"{word} is a preset: circuitsim train {family} --preset {word}"
    if Path(word).suffix or Path(word).is_file():
        return f"a deck is trained by circuitsim train circuit {word}"
    return f"there is no model '{word}'; there are {', '.join(MODELS)}"


def run(args: argparse.Namespace) -> int:
    """Train; 0 when done, 130 when interrupted and saved."""
    from circuitsim.training import RunDirectory, TensorBoard

    given = {name: value for name, value in vars(args).items() if name not in NOT_OPTIONS}
    check_values(given, args.readings)
    if "config" in given:
        given = {**configured(given.pop("config"), args.readings), **given}
    out, plain, board = (given.pop(name, None) for name in ("out", "no_pictures", "tensorboard"))
    compared = given.pop("compare", None)
    if compared is not None:
        from circuitsim.cli.compare import compare

        if out is not None:
            raise UsageError("--compare trains nothing: leave --out out, or --compare")
        print(compare(new_options(given), set(given), compared), end="")
        return 0
    seeds, workers, dask = (given.pop(name, None) for name in ("seeds", "workers", "dask"))
    if given["model"] != RESUME:
        check_acting(new_options(given), given)
    if seeds is not None:
        if board is not None:
            raise UsageError("--tensorboard is for one run: leave --seeds out, or --tensorboard")
        return run_seeds(new_options(given), seeds, out, workers, dask, not plain)
    if workers is not None or dask is not None:
        raise UsageError("--workers and --dask are for several runs: give --seeds N too")
    directory = None if out is None else RunDirectory(out)
    resumed = None
    if given["model"] == RESUME:
        assert directory is not None
        recorded = _recorded(directory)
        options = _resumed_options(recorded, {name: given[name] for name in _MAY_CHANGE if name in given})
        resumed = _Continued(options, recorded.get("epochs"))
    else:
        options = new_options(given)
    made = _family(options["model"]).build(options)
    callbacks: list[Callback] = [] if board is None else [TensorBoard(board)]
    if directory is not None and resumed is None:
        directory.create({**options, **made.chosen})
    return _train(made, directory, resumed, not plain, callbacks)


def configured(path: str, readings: Mapping[str, Reading]) -> dict[str, Any]:
    """Options from a TOML file: the names of the command line, with ``-`` or ``_``.

    Raises
    ------
    UsageError
        There is no such file, it is no TOML, or a value is of another kind than its option's.
    """
    import tomllib

    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)
    except FileNotFoundError:
        raise UsageError(f"no configuration {path!r}: there is no such file") from None
    except (ValueError, RecursionError) as error:
        # Bad TOML, bytes that are no UTF-8, a number of thousands of digits, lists in lists in lists.
        raise UsageError(f"{path}: {error}") from None
    if "model" in found:
        raise UsageError(f"{path}: the model stands on the command line: circuitsim train MODEL --config FILE")
    options = {name.replace("-", "_"): value for name, value in found.items()}
    check_values(options, readings, path)
    return options


def _family(model: str) -> ModuleType:
    if model not in MODELS:
        raise UsageError(_no_model(model))
    return import_module(MODELS[model][0])


def new_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """All options of a new run: what was given, over the family's defaults, over the common ones.

    Raises
    ------
    UsageError
        A model or an option that does not exist.
    """
    model = given["model"]
    defaults = {"model": model, **COMMON, **_family(model).DEFAULTS}
    for name in given:
        if name not in defaults:
            raise UsageError(f"{name} is not an option of circuitsim train {model}")
    return {**defaults, **given}


def experiment(model: str, **options: Any) -> Experiment:
    """What ``circuitsim train MODEL`` trains with these options, ready to start.

    Parameters
    ----------
    model : str
        circuit, drn, dhn, ffebm or rbm.
    **options
        As on the command line, with ``_`` for ``-``; what is left out has the command's default.

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
    made: Experiment = _family(model).build(new_options({"model": model, **options}))
    return made


def check_acting(options: Mapping[str, Any], given: Iterable[str]) -> None:
    """Check that each option that was given acts: some do only with some values of another (``ONLY_WITH``)."""
    for name, (other, values) in getattr(_family(options["model"]), "ONLY_WITH", {}).items():
        if name in given and options[other] not in values:
            flag, needed = (f"--{word.replace('_', '-')}" for word in (name, other))
            raise UsageError(f"{flag} acts only with {needed} {' or '.join(values)}, not with {options[other]}")


def family_readings(model: str) -> dict[str, Reading]:
    """How the options of a model are read."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    _add_family(parser, _family(model))
    readings: dict[str, Reading] = parser.get_default("readings")
    return readings


def _recorded(directory: Any) -> dict[str, Any]:
    """The options of the run to resume; none is missing its value but those that a family may leave open."""
    recorded: dict[str, Any] = directory.options()
    source, model = str(directory.config), recorded.get("model")
    check_values({"model": model}, {"model": Reading(Kind.WORD)}, source)
    if model not in MODELS:
        raise UsageError(f"{source}: model '{model}' is no model of this version; start the run anew")
    defaults = {**COMMON, **_family(str(model)).DEFAULTS}
    stated = {name: value for name, value in recorded.items() if value is not None or defaults.get(name) is not None}
    check_values(stated, family_readings(str(model)), source)
    return recorded


def _resumed_options(recorded: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The recorded options with those that may change."""
    defaults = {**COMMON, **_family(recorded["model"]).DEFAULTS}
    missing = [name for name in _family(recorded["model"]).DEFAULTS if name not in recorded]
    if missing:
        raise UsageError(f"the recorded configuration lacks {', '.join(missing)}; it cannot be resumed")
    for name in given:
        if name not in defaults:
            raise UsageError(f"--{name.replace('_', '-')} is not an option of circuitsim train {recorded['model']}")
    return {**COMMON, **recorded, **given}


def _stretched(plan: TrainingPlan, before: int | None, done: int) -> str | None:
    """The note that a cosine over another number of epochs changes the learning rate; None where it does not."""
    from dataclasses import replace

    from circuitsim.training import Cosine

    if not isinstance(plan.schedule, Cosine) or not before or before == plan.epochs or done >= plan.epochs:
        return None
    old, new = replace(plan.schedule, epochs=before).factor(done), plan.schedule.factor(done)
    if old == new:
        return None
    return (
        f"the cosine schedule now ends at epoch {plan.epochs}, before at {before}: the factor on the learning rate in "
        f"epoch {done + 1} is {new:.3g} in place of {old:.3g} (column rate_factor)"
    )


class _Continued(NamedTuple):
    """A run to resume: its options, and the number of epochs it had before."""

    options: dict[str, Any]
    epochs: int | None


def _train(
    experiment: Any, directory: Any, resumed: _Continued | None, pictures: bool, callbacks: Sequence[Callback]
) -> int:
    """Train an experiment, new or ``resumed``, and write its model and, with ``pictures``, its pictures."""
    from circuitsim.training import ProgressLine, Trainer
    from circuitsim.training.interrupt import interrupt_flag

    print(experiment.title)
    for note in experiment.notes:
        print(f"note: {note}", file=sys.stderr)
    with interrupt_flag() as stopped, nullcontext() if directory is None else directory.locked():
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
        if resumed is not None:
            trainer.resume()
            note = _stretched(experiment.plan, resumed.epochs, trainer.epoch)
            if note is not None:
                print(f"note: {note}", file=sys.stderr)
            for change in directory.update(resumed.options):
                print(f"note: other software than before, the bits may differ: {change}", file=sys.stderr)
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
        print(f"note: {outcome.skipped} steps were skipped, their gradients were not to be trusted", file=sys.stderr)
    if directory is not None:
        files: list[Path] = experiment.save(directory.path)
        files += experiment.draw(directory.path, outcome.history) if pictures else []
        print(f"written to {directory.path}: {', '.join(file.name for file in files)}, history, checkpoint")
    outcome.require_steps()
    return 0
