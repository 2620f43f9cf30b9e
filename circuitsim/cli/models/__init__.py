"""The families of ``circuitsim train``, one module each.

A family is a module with

    OPTIONS            its options by name (`own_options`)
    build(options)     an `Experiment` from their values
    EPILOG             examples for its help
    NOTES              if there are any: further text of its ``--help-all``

and a row in `MODELS`. Everything else (options, progress, history, checkpoints, resumption) is common to all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from circuitsim.blocks.protocol import check_named
from circuitsim.cli import Option, Values, options_in
from circuitsim.datasets import choose, load
from circuitsim.errors import UsageError, similar
from circuitsim.training import SGD, Adam, Constant, Cosine, Exponential, Optimizer, Schedule, TrainingPlan

MODELS = {
    "circuit": "a deck with inputs, outputs and trainable elements",
    "drn": "deep resistive networks (Scellier 2024)",
    "dhn": "deep Hopfield networks (Scellier 2024)",
    "ffebm": "chains of digital stages and blocks (Nest & Ernoult 2024)",
    "rbm": "restricted Boltzmann machines (Fischer & Igel 2011)",
}
"""Family → its line in the help."""

METHODS, VARIANTS = ("ep", "bp", "implicit"), ("centred", "positive", "negative")
OWN = ", or module:name of a rule of your own"
HOW = f"how gradients are found: {', '.join(METHODS)}{OWN}"


SHARED = options_in("""
*dataset NAME  data set, or a folder of idx files
*config FILE  options from a TOML file
data_dir DIR  directory of data sets (docs/models.md)
*epochs N  passes over the data
*batch N  samples per step
*lr R  learning rate
momentum M  momentum, 0 to 1
weight_decay D  L2 penalty on the weights
""")
"""Options of several families."""

RUN = options_in("""
*seed N = 0  seed of all random numbers
evaluate_every N = 1  epochs between two rows of the history
checkpoint_seconds S = 30  minimum time between checkpoints
*~out DIR  write history, checkpoints, model, pictures here
~no_pictures  write no pictures into --out
~tensorboard DIR  write the history for TensorBoard too (extra)
*~seeds N  train with N seeds from --seed on; show the spread
~workers N  processes (this one); results do not depend on it
~dask ADDRESS  run on the Dask cluster of this scheduler
""")
"""Options of every family."""

IMAGES = f"""
*method NAME = ep  {HOW}
variant NAME = centred if method ep  nudging of ep: {", ".join(VARIANTS)}
*beta B if method ep  strength of the nudge
*sweeps N  free sweeps (with --tolerance: at most)
*nudged_sweeps N  nudged, or backpropagated, sweeps
"""
"""Options of layered networks; those without a default have the published model's."""


def own_options(shared: str, lines: str, **own: Values) -> dict[str, Option]:
    """The options of a family.

    Parameters
    ----------
    shared : str
        Names from `SHARED`, with defaults after ``=``.
    lines, **own
        Its own (`options_in`).
    """
    taken = dict(RUN)
    for word in shared.split():
        name, _, default = word.partition("=")
        one = SHARED[name]
        taken[name] = one._replace(default=one.kind.read(default) if default else None)
    return taken | options_in(lines, **own)


def data_options(shared: str, lines: str, **own: Values) -> dict[str, Option]:
    """The options of a family that learns a data set, as for `own_options`."""
    precision = "precision NAME = float32 {float32 float64}  type of parameters and states"
    return own_options(f"epochs batch lr dataset data_dir {shared}", f"{precision}\n{lines.strip()}", **own)


class Options(SimpleNamespace):
    """The values of all options of a run, and its ``model``."""

    def but(self, **values: Any) -> Options:
        """The same options with other values."""
        return Options(**vars(self) | values)

    def recorded(self) -> Values:
        """The options stored in the run's folder."""
        known = family_options(self.model)
        return {name: value for name, value in vars(self).items() if name == "model" or known[name].recorded}


def filled(options: Options, values: Mapping[str, Any]) -> tuple[Options, Values]:
    """Options with gaps filled from a published model, and the values filled in."""
    chosen = {name: value for name, value in values.items() if getattr(options, name) is None}
    return options.but(**chosen), chosen


def rule_of(options: Any) -> Any:
    """The rule of ``--method``: a built-in rule's name, or a custom rule (``module:name`` of it or its class).

    Raises
    ------
    UsageError
        There is none.
    """
    module, own, name = options.method.partition(":")
    if not own:
        return module
    try:
        rule = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as problem:
        raise UsageError(f"--method {options.method}: {problem}") from None
    if not hasattr(rule, "estimate"):
        raise UsageError(f"--method {options.method}: a rule needs a method estimate(problem)")
    return rule


def family_of(model: str) -> ModuleType:
    """The module of a family.

    Raises
    ------
    UsageError
        There is none of this name.
    """
    if model not in MODELS:
        raise UsageError(no_model(model))
    return import_module(f"{__name__}.{model}")


def no_model(word: str) -> str:
    """A hint for a word that names no family."""
    family, _, size = word.partition("-")
    if family in ("drn", "dhn") and size:
        return f"{word} is a preset: circuitsim train {family} --preset {word}"
    if Path(word).suffix or Path(word).is_file():
        return f"{word} is a deck: circuitsim train circuit {word}"
    return f"there is no model '{word}'; there are {', '.join(MODELS)}"


def family_options(model: str) -> dict[str, Option]:
    """The options of a family by name."""
    found: dict[str, Option] = family_of(model).OPTIONS
    return found


def new_options(given: Mapping[str, Any]) -> Options:
    """All options of a new run of the family ``given["model"]``: those given, over the defaults.

    Raises
    ------
    UsageError
        A model or an option that does not exist.
    """
    model, given = given["model"], {name: value for name, value in given.items() if name != "model"}
    known = family_options(model)
    for name in given:
        if name not in known:
            raise UsageError(
                f"{name} is not an option of circuitsim train {model}; "
                f"{similar(name, known, f'circuitsim train {model} --help-all lists them')}"
            )
    return Options(model=model, **{name: one.default for name, one in known.items()} | given)


def options_again(recorded: Mapping[str, Any]) -> Options:
    """The options of a recorded run, whose folder may contain further facts."""
    known = family_options(recorded["model"])
    return new_options({name: value for name, value in recorded.items() if name == "model" or name in known})


def check_acting(options: Options, given: Iterable[str]) -> None:
    """Check that each option that was given has an effect: some require certain values of another."""
    for name, one in family_options(options.model).items():
        if one.only and name in given and getattr(options, one.only[0]) not in one.only[1:]:
            flag, needed = (f"--{word.replace('_', '-')}" for word in (name, one.only[0]))
            raise UsageError(f"{flag} needs {needed} {' or '.join(one.only[1:])}, not {getattr(options, one.only[0])}")


def published_run(options: Any, models: Mapping[str, Any], weights: str) -> tuple[Any, ...]:
    """What the runs of published layered networks share.

    Returns
    -------
    preset : Preset
    options : Options
        Those left open are the preset's.
    chosen : dict
        What became of them, and of the data set.
    images : ImageData
    notes : list of str
    sweeps : Sweeps
        In the same order in free and nudged phases, as in the published code.
    plan : TrainingPlan
    """
    from circuitsim.blocks.layered import Sweeps

    check_named(preset=(options.preset, models))
    preset = models[options.preset]
    values = {name: getattr(preset, name) for name in ("epochs", "beta", "sweeps", "batch")}
    options, chosen = filled(options, {**values, "nudged_sweeps": preset.nudged_sweeps or preset.sweeps})
    name, notes = choose(options.dataset, options.data_dir)
    sweeps = Sweeps(options.sweeps, options.nudged_sweeps, options.tolerance or None, reverse_nudged=False)
    rates = preset.rates(weights) if options.lr is None else options.lr
    plan = plan_of(options, SGD(rates), Exponential(preset.rate_decay))
    return preset, options, {**chosen, "dataset": name}, load(name, options.data_dir), notes, sweeps, plan


def plan_of(options: Any, optimizer: Optimizer, schedule: Schedule | None = None) -> TrainingPlan:
    """The plan of a run from the options common to all families."""
    return TrainingPlan(
        options.epochs,
        options.batch,
        options.seed,
        optimizer,
        schedule or Constant(),
        evaluate_every=options.evaluate_every,
        checkpoint_seconds=options.checkpoint_seconds,
    )


def optimizer_of(options: Any, rates: Any) -> Any:
    """The optimiser given by the options, with one rate or one per parameter."""
    decay = options.weight_decay
    made: dict[str, Optimizer] = {
        "sgd": SGD(rates, decay),
        "momentum": SGD(rates, decay, options.momentum),
        "adam": Adam(rates, decay=decay),
    }
    check_named(optimizer=(options.optimizer, made))
    return made[options.optimizer]


def schedule_of(options: Any) -> Any:
    """The schedule given by the options."""
    made: dict[str, Schedule] = {
        "constant": Constant(),
        "exponential": Exponential(options.lr_decay),
        "cosine": Cosine(max(1, options.epochs), options.lr_final),
    }
    check_named(schedule=(options.schedule, made))
    return made[options.schedule]
