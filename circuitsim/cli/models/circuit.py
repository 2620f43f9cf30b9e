"""``circuitsim train circuit DECK``: any deck with inputs, outputs and trainable elements."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Imported for ``train --help`` as well: heavy modules are imported at use.
from circuitsim.cli import learning
from circuitsim.cli.options import Option, add_options, plan_of
from circuitsim.errors import UsageError
from circuitsim.training.experiment import Experiment
from circuitsim.training.history import History

if TYPE_CHECKING:
    from circuitsim.blocks.circuit import CircuitBlock
    from circuitsim.cli.learning import Setting
    from circuitsim.datasets.samples import Samples
    from circuitsim.learning import Learner

DEFAULTS: dict[str, Any] = {
    **learning.DEFAULTS,
    "epochs": 50,
    "batch": 16,
    "lr": None,
    "lr_current": None,
    "lr_device": None,
    "optimizer": "adam",
    "momentum": 0.9,
    "weight_decay": 0.0,
    "schedule": "constant",
    "lr_decay": 0.99,
    "lr_final": 0.0,
    "test": None,
    "split": None,
    "uncertified": "skip",
    "steady": False,
}

OPTIONS: dict[str, Option] = {
    "--method": (str, "NAME", "ep (default), coupled, frequency, agnostic or implicit"),
    "--optimizer": (str, "NAME", "adam (default), momentum or sgd"),
    "--schedule": (str, "NAME", "of the rate: constant (default), exponential or cosine"),
    "--lr-decay": (float, "D", "exponential schedule: factor for each epoch (0.99)"),
    "--lr-final": (float, "F", "cosine schedule: share of the rate at the end (0)"),
    "--lr-current": (float, "R", "learning rate of trainable current sources (as --lr)"),
    "--lr-device": (float, "R", "learning rate of trainable parameters of devices (0.02 with Adam)"),
    "--test": (str, "FILE", "samples held out, measured after each epoch"),
    "--split": (float, "F", "hold out a random share of the samples"),
    "--uncertified": (str, "WHAT", "to do with a step of uncertified states: skip (and count) or stop"),
    "--steady": (bool, "", "data over time: fit the periodic steady state, times count within its period"),
}


ONLY_WITH = {
    **learning.ONLY_WITH,
    "momentum": ("optimizer", ("momentum",)),
    "lr_decay": ("schedule", ("exponential",)),
    "lr_final": ("schedule", ("cosine",)),
}


EPILOG = """\
--compare prints the gradient of the mean loss at the deck's values, over the first 64 samples (or --batch N), by every
method. Implicit differentiation is exact; the relative error and the cosine of the others are against it. kinks: diodes
that change between the phases, over all samples; of implicit differentiation diodes without current and voltage.

examples:
  circuitsim train circuit netlists/learn-divider.cir --data netlists/learn-divider.csv --epochs 300 --out run
  circuitsim train circuit my.cir --data samples.csv --split 0.25 --method implicit
  circuitsim train circuit --config my.toml --out run
  circuitsim train circuit my.cir --data samples.csv --beta 1m --nudge resistor --compare csv
  circuitsim train circuit netlists/learn-filter.cir --data netlists/learn-filter.csv --epochs 200 --out run
  circuitsim train circuit netlists/learn-ripple.cir --data netlists/learn-ripple.csv --steady --epochs 200 --out run

Data with a column time are waveforms, with a column measurement values of .meas (docs/learning.md): then the
gradient is exact, capacitors, inductors, numbers of diodes and switches (D1.vfwd, S1.vt) may change too, and the
learning rate is relative (0.05 of each value a step).
"""


def add_arguments(group: Any) -> None:
    """The options of this family."""
    group.add_argument("deck", nargs="?", metavar="DECK", default=argparse.SUPPRESS, help="a SPICE deck")
    learning.add_learning(group)
    add_options(group, OPTIONS)
    group.add_argument(
        "--compare",
        nargs="?",
        choices=("table", "csv", "json"),
        const="table",
        default=argparse.SUPPRESS,
        help="train nothing: print the gradient by every method, as a table, csv or json",
    )


def build(options: Mapping[str, Any]) -> Experiment:
    """A run from options (see `DEFAULTS`)."""
    from circuitsim.datasets.samples import is_over_time
    from circuitsim.learning import Learner

    if options["deck"] is None:
        raise UsageError("no deck given: circuitsim train circuit DECK --data FILE")
    if options["steady"] or (options["data"] is not None and is_over_time(options["data"])):
        from circuitsim.cli.models.waveforms import build as build_waveforms

        return build_waveforms(options, DEFAULTS)
    setting = learning.setting_of(options)
    estimator, chosen = learning.estimator_of(options, setting)
    train, test = _sets(options, setting)
    optimizer, rates = _optimizer(options, setting)
    plan = plan_of(options, optimizer, schedule_of(options))
    learner = Learner(setting.block, estimator, setting.loss, options["uncertified"], _fingerprint(setting))
    chosen = {**chosen, **rates, "classes": list(setting.samples.classes)}
    if options["temperature"] is None and hasattr(setting.loss, "temperature"):
        chosen["temperature"] = setting.loss.temperature
    roles = setting.roles
    counts = {"input": roles.inputs, "output": roles.outputs, "trainable element": roles.trainable}
    sizes = ", ".join(f"{len(names)} {what}{'s' * (len(names) != 1)}" for what, names in counts.items())
    held = f", {test.size} held out" if test is not None else ""
    name = setting.block.circuit.title or options["deck"]
    return Experiment(
        learner,
        (train.x, train.y),
        plan,
        title=f"{name}: {sizes}; {options['method']}, {train.size} samples{held}",
        evaluate=None if test is None else lambda rng: _measured(learner, test),
        notes=[str(problem) for problem in setting.warnings],
        save=lambda directory: _save(learner.block, directory),
        draw=lambda directory, history: _draw(learner.block, train, directory, history),
        summary=lambda history: _summary(history, learner.block.at_bound()),
        chosen=chosen,
    )


def _sets(options: Mapping[str, Any], setting: Setting) -> tuple[Samples, Samples | None]:
    """Samples to train on, and those held out."""
    import numpy as np

    from circuitsim.datasets.samples import read_samples, split

    if options["test"] is not None and options["split"] is not None:
        raise UsageError("either --test FILE or --split F, not both")
    if options["test"] is not None:
        test = read_samples(options["test"], setting.roles, setting.samples.classes)
        return setting.samples, learning.amplified(test, options["gain"])
    if options["split"] is not None:
        return split(setting.samples, options["split"], np.random.default_rng((options["seed"], 5)))
    return setting.samples, None


def _measured(learner: Learner, test: Samples) -> dict[str, float]:
    return {f"test_{name}": value for name, value in learner.evaluate(test.x, test.y).items()}


def _optimizer(options: Mapping[str, Any], setting: Setting) -> tuple[Any, dict[str, Any]]:
    """The optimiser, and the learning rates that were left open."""
    from circuitsim.learning.start import default_device_rate, default_learning_rate

    name = options["optimizer"]
    lr = options["lr"]
    if lr is None:
        lr = default_learning_rate(setting.block, setting.samples.x, name)
    for option, kind, what in (
        ("lr_current", "current", "current source"),
        ("lr_device", "law", "parameter of a device"),
    ):
        if options[option] is not None and kind not in setting.block.parameters:
            raise UsageError(f"--{option.replace('_', '-')} acts only where a {what} is trainable")
    other = lr if options["lr_current"] is None else options["lr_current"]
    device = options["lr_device"]
    if device is None:
        device = default_device_rate(setting.samples.x, name)
    by_kind = {"conductance": lr, "current": other, "law": device}
    rates = {kind: by_kind[kind] for kind in setting.block.parameters}
    return optimizer_of(options, rates), {"lr": lr, **({"lr_device": device} if "law" in rates else {})}


def optimizer_of(options: Mapping[str, Any], rates: Any) -> Any:
    """The optimiser that the options name, with one rate or one for each parameter."""
    from circuitsim.training import SGD, Adam, Momentum

    name, decay = options["optimizer"], options["weight_decay"]
    made = {
        "sgd": lambda: SGD(rates, decay),
        "momentum": lambda: Momentum(rates, options["momentum"], decay),
        "adam": lambda: Adam(rates, decay=decay),
    }
    if name not in made:
        raise UsageError(f"there is no optimizer {name!r}; there are {', '.join(made)}")
    return made[name]()


def schedule_of(options: Mapping[str, Any]) -> Any:
    from circuitsim.training import Constant, Cosine, Exponential

    made = {
        "constant": Constant,
        "exponential": lambda: Exponential(options["lr_decay"]),
        "cosine": lambda: Cosine(max(1, options["epochs"]), options["lr_final"]),
    }
    if options["schedule"] not in made:
        raise UsageError(f"there is no schedule {options['schedule']!r}; there are {', '.join(made)}")
    return made[options["schedule"]]()


def _fingerprint(setting: Setting) -> bytes:
    """Of circuit, roles and data: a run resumes only with the same."""
    import hashlib

    from circuitsim.netlist import dumps

    digest = hashlib.sha256(dumps(setting.block.whole, setting.roles).encode())
    digest.update(setting.samples.x.tobytes() + setting.samples.y.tobytes())
    return digest.digest()


def _save(block: CircuitBlock, directory: Path) -> list[Path]:
    """The trained deck."""
    from circuitsim._files import atomic_write
    from circuitsim.netlist import dumps

    deck = directory / "trained.cir"
    atomic_write(deck, dumps(block.trained(), block.roles).encode())
    return [deck]


def _draw(block: CircuitBlock, train: Samples, directory: Path, history: History) -> list[Path]:
    """The learning curve, the conductances and the circuit."""
    from circuitsim.learning.pictures import draw_conductance_histogram, draw_trained
    from circuitsim.training.curves import draw_history

    panels = {
        "loss": ["loss", "test_loss", "lower", "upper"],
        "error": ["error", "test_error"],
        "worst violation of Kirchhoff's laws": ["certificate"],
        "share of diodes that change between the phases": ["kink_share"],
    }
    written = draw_history(history, directory / "learning.png", panels)
    if "conductance" in block.parameters:
        written.append(draw_conductance_histogram(block, directory / "conductances.png"))
    return [*written, draw_trained(block, train.x[0], directory / "circuit.png")]


def _summary(history: History, at_bound: int) -> list[str]:
    """The last row in words, and how many parameters lie on a bound now."""
    row = history.rows[-1]
    lines = [f"loss   {row['loss']:.6g}" + (f"   held out {row['test_loss']:.6g}" if "test_loss" in row else "")]
    lines.append(f"error  {row['error']:.6g}" + (f"   held out {row['test_error']:.6g}" if "test_error" in row else ""))
    if "lower" in row and "upper" in row:
        # What is left of the first loss after rounding is zero.
        least = 1e-12 * max(abs(other["loss"]) for other in history.rows)
        low, high = (0.0 if abs(row[key]) <= least else row[key] for key in ("lower", "upper"))
        lines.append(f"L_β ≤ loss ≤ L_−β: {low:.6g} … {high:.6g}")
    lines.append(f"worst certificate {row['certificate']:.1e}; parameters on a bound: {at_bound}")
    return lines
