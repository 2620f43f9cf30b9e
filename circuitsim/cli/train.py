"""``circuitsim train``: one command for every model that can learn.

A model family is a module with

    DEFAULTS                 its options and their default values
    add_arguments(group)     the options that only it has, each with ``default=argparse.SUPPRESS``
    build(options)           an `Experiment` from a complete table of options
    FILE_OPTIONS             if it has any: how options are read that only a file can give

and a row in `MODELS`. Everything else (progress, history, checkpoints, resumption) is the same for all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim.cli.options import OptionGroup, Reading, check_values
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from circuitsim.training import TrainingPlan

# --model NAME → module of its family. Two names may share a module, which then reads options["model"].
MODELS: dict[str, str] = {
    "circuit": "circuitsim.cli.models.circuit",
    "ffebm": "circuitsim.cli.models.ffebm",
    "rbm": "circuitsim.cli.models.rbm",
    **dict.fromkeys(("drn-xs", "drn-1h", "drn-2h", "drn-3h", "drn-xl"), "circuitsim.cli.models.drn"),
    "dhn-1h": "circuitsim.cli.models.dhn",
    "dhn-2h": "circuitsim.cli.models.dhn",
    "dhn-3h": "circuitsim.cli.models.dhn",
}

# Options of every family, with the defaults that a family may replace.
COMMON: dict[str, Any] = {"seed": 0, "evaluate_every": 1, "checkpoint_seconds": 30.0}

# What a resumed run may change: how long it trains, how often it saves, and threads, which change no bit of a result.
# All else would give another run.
_MAY_CHANGE = ("epochs", "checkpoint_seconds", "threads")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of all families; without defaults: an absent one is None."""
    none = argparse.SUPPRESS
    readings: dict[str, Reading] = {}
    common = OptionGroup(parser, readings)
    common.add_argument("deck", nargs="?", metavar="DECK", default=none, help="a deck to train (--model circuit)")
    common.add_argument("--config", metavar="FILE", default=none, help="options from a TOML file; others override it")
    common.add_argument("--model", metavar="NAME", default=none, help=f"what to train: {', '.join(MODELS)}")
    common.add_argument("--dataset", metavar="NAME", default=none, help="what to train on, or a folder of idx files")
    common.add_argument("--data-dir", metavar="DIR", default=none, help="directory of data sets (docs/data.md)")
    common.add_argument("--epochs", type=int, metavar="N", default=none, help="passes over the data")
    common.add_argument("--batch", type=int, metavar="N", default=none, help="samples in a step")
    common.add_argument("--lr", type=float, metavar="R", default=none, help="learning rate")
    common.add_argument("--momentum", type=float, metavar="M", default=none, help="momentum, 0 to 1")
    common.add_argument("--weight-decay", type=float, metavar="D", default=none, help="L2 penalty on the weights")
    common.add_argument("--seed", type=int, metavar="S", default=none, help="source of all chance (0)")
    common.add_argument(
        "--evaluate-every", type=int, metavar="N", default=none, help="epochs between two rows of the history (1)"
    )
    common.add_argument(
        "--checkpoint-seconds", type=float, metavar="S", default=none, help="least time between checkpoints (30)"
    )
    common.add_argument("--out", metavar="DIR", default=none, help="write history, checkpoints, model, pictures here")
    common.add_argument("--no-pictures", action="store_true", default=none, help="write no pictures into --out")
    common.add_argument(
        "--resume", action="store_true", default=none, help="continue the run in --out, bit for bit as if never stopped"
    )
    for module in sorted(set(MODELS.values())):
        names = ", ".join(name for name, home in MODELS.items() if home == module)
        group = parser.add_argument_group(f"options of {names}")
        family = import_module(module)
        family.add_arguments(OptionGroup(group, readings))
        readings.update(getattr(family, "FILE_OPTIONS", {}))
    parser.set_defaults(readings=readings)


def run(args: argparse.Namespace) -> int:
    """Train; 0 when done, 130 when interrupted and saved."""
    from circuitsim.training import RunDirectory

    given = {name: value for name, value in vars(args).items() if name not in ("command", "debug", "run", "readings")}
    check_values(given, args.readings)
    if "config" in given:
        given = {**configured(given.pop("config"), args.readings), **given}
    if "deck" in given:
        given.setdefault("model", "circuit")
    if "elements" in given:
        given.setdefault("model", "ffebm")
    out, resume, plain = (given.pop(name, None) for name in ("out", "resume", "no_pictures"))
    directory = None if out is None else RunDirectory(out)
    if resume:
        if directory is None:
            raise UsageError("--resume needs --out: the directory of the run to continue")
        recorded = _recorded(directory, args.readings)
        options = _resumed_options(recorded, given)
        experiment = _family(options["model"]).build(options)
        return _train(experiment, directory, _Continued(options, recorded.get("epochs")), not plain)
    options = _options(given)
    experiment = _family(options["model"]).build(options)
    if directory is not None:
        directory.create({**options, **experiment.chosen})
    return _train(experiment, directory, None, not plain)


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
    options = {name.replace("-", "_"): value for name, value in found.items()}
    check_values(options, readings, path)
    return options


def _family(model: str | None) -> ModuleType:
    if model is None:
        raise UsageError(f"no model given: --model is one of {', '.join(MODELS)}")
    if model not in MODELS:
        raise UsageError(f"there is no model '{model}'; there are {', '.join(MODELS)}")
    return import_module(MODELS[model])


def _options(given: dict[str, Any]) -> dict[str, Any]:
    """All options of a new run: what was given, over the family's defaults, over the common ones."""
    model = given.get("model")
    defaults = {"model": model, **COMMON, **_family(model).DEFAULTS}
    for name in given:
        if name not in defaults:
            raise UsageError(f"--{name.replace('_', '-')} is not an option of --model {model}")
    return {**defaults, **given}


def _recorded(directory: Any, readings: Mapping[str, Reading]) -> dict[str, Any]:
    """The options of the run to resume; none is missing its value but those that a family may leave open."""
    recorded: dict[str, Any] = directory.options()
    source = str(directory.config)
    check_values({"model": recorded.get("model")}, readings, source)
    defaults = {**COMMON, **_family(recorded["model"]).DEFAULTS}
    stated = {name: value for name, value in recorded.items() if value is not None or defaults.get(name) is not None}
    check_values(stated, readings, source)
    return recorded


def _resumed_options(recorded: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The recorded options; what is given again must agree with them, but for the few that may change."""
    for name, value in given.items():
        if name not in _MAY_CHANGE and recorded.get(name) != value:
            raise UsageError(
                f"--{name.replace('_', '-')} {value} contradicts the run to resume, which has {recorded.get(name)}"
            )
    missing = [name for name in _family(recorded.get("model")).DEFAULTS if name not in recorded]
    if missing:
        raise UsageError(f"the recorded configuration lacks {', '.join(missing)}; it cannot be resumed")
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


def _train(experiment: Any, directory: Any, resumed: _Continued | None, pictures: bool) -> int:
    """Train an experiment, new or ``resumed``, and write its model and, with ``pictures``, its pictures."""
    from circuitsim.training import ProgressLine, Trainer
    from circuitsim.training.interrupt import interrupt_flag

    print(experiment.title)
    for note in experiment.notes:
        print(f"note: {note}", file=sys.stderr)
    with interrupt_flag() as stopped:
        trainer = Trainer(
            experiment.trainable, experiment.data, experiment.plan, experiment.evaluate, directory,
            ProgressLine(sys.stderr, "training"), stopped,
        )  # fmt: skip
        if resumed is not None:
            trainer.resume()
            note = _stretched(experiment.plan, resumed.epochs, trainer.epoch)
            if note is not None:
                print(f"note: {note}", file=sys.stderr)
            for change in directory.update(resumed.options):
                print(f"note: other software than before, the bits may differ: {change}", file=sys.stderr)
        outcome = trainer.train()
    if outcome.interrupted:
        saved = f"saved in {directory.path}; continue with --resume" if directory else "nothing saved (no --out)"
        print(f"interrupted after {outcome.updates} updates: {saved}", file=sys.stderr)
        return 130
    for line in experiment.summary(outcome.history):
        print(line)
    if outcome.skipped:
        print(f"note: {outcome.skipped} steps were skipped, their gradients were not to be trusted", file=sys.stderr)
    if directory is not None:
        files: list[Path] = experiment.save(directory.path)
        files += experiment.draw(directory.path, outcome.history) if pictures else []
        print(f"written to {directory.path}: {', '.join(file.name for file in files)}, history, checkpoint")
    return 0
