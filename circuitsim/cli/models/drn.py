"""``circuitsim train drn``: deep resistive networks as published, with every number open to change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Imported for ``train --help`` as well: heavy modules are imported at use.
from circuitsim.cli.options import Option, OptionGroup, add_options, chosen_preset, plan_of
from circuitsim.errors import UsageError
from circuitsim.training.experiment import Experiment, save_model
from circuitsim.training.history import History

# None stands for the published model's own number (circuitsim/layered/architectures.toml).
DEFAULTS: dict[str, Any] = {
    "preset": "drn-xs",
    "epochs": None,
    "batch": None,
    "lr": None,
    "dataset": None,
    "data_dir": None,
    "method": "ep",
    "variant": "centred",
    "beta": None,
    "sweeps": None,
    "nudged_sweeps": None,
    "tolerance": 0.0,
    "input_gain": None,
    "precision": "float32",
    "threads": 1,
}


ONLY_WITH = {"variant": ("method", ("ep",)), "beta": ("method", ("ep",))}


EPILOG = """\
presets: drn-xs, drn-1h, drn-2h, drn-3h, drn-xl (circuitsim/layered/architectures.toml); options replace their values

examples:
  circuitsim train drn --preset drn-xs --dataset digits --input-gain 30
  circuitsim train drn --preset drn-1h --dataset mnist --out run       MNIST: circuitsim data fetch mnist, once
  circuitsim train drn --preset drn-1h --method bp --seed 3
"""


OPTIONS: dict[str, Option] = {
    "--preset": (str, "NAME", "a published network (drn-xs)"),
    "--method": (("ep", "bp", "implicit"), "", "how gradients are found (ep)"),
    "--variant": (("centred", "positive", "negative"), "", "which nudges ep compares (centred)"),
    "--beta": (float, "B", "strength of the nudge, S"),
    "--sweeps": (int, "T", "free sweeps (with --tolerance: at most)"),
    "--nudged-sweeps": (int, "K", "nudged, or backpropagated, sweeps"),
    "--tolerance": (float, "R", "sweep to this relative residual (0: T sweeps)"),
    "--input-gain": (float, "A", "volts for a white pixel"),
    "--precision": (("float32", "float64"), "", "of parameters and states (float32)"),
    "--threads": (int, "N", "threads; the result does not depend on it (1)"),
}


def add_arguments(group: OptionGroup) -> None:
    """The options of this family."""
    add_options(group, OPTIONS)


def build(options: Mapping[str, Any]) -> Experiment:
    """A run from options (see `DEFAULTS`)."""
    from dataclasses import replace

    import numpy as np

    from circuitsim.datasets import choose, load
    from circuitsim.layered.architecture import published_models
    from circuitsim.layered.evaluation import Evaluation
    from circuitsim.layered.learner import LayeredLearner
    from circuitsim.training import SGD, Exponential

    preset = chosen_preset(options["preset"], published_models())
    name, notes = choose(options["dataset"], options["data_dir"])
    data = load(name, options["data_dir"])
    architecture = replace(
        preset.architecture,
        units=(data.train.shape[1], *preset.architecture.units[1:-1], data.classes),
        input_gain=_given(options["input_gain"], preset.architecture.input_gain),
    )
    learning = replace(
        preset.learning,
        variant=options["variant"],
        tolerance=options["tolerance"],
        **{key: options[key] for key in ("beta", "sweeps", "nudged_sweeps") if options[key] is not None},
    )
    if options["threads"] < 1:
        raise UsageError(f"at least one thread is needed, not {options['threads']}")
    extent = {name: _given(options[name], getattr(preset, name)) for name in ("epochs", "batch")}
    rates = preset.rates() if options["lr"] is None else options["lr"]
    plan = plan_of({**options, **extent}, SGD(rates), Exponential(preset.rate_decay))
    learner = LayeredLearner(
        # A stream of its own, so that the start does not repeat the trainer's draws.
        architecture,
        learning,
        plan.batch,
        np.random.default_rng((plan.seed, 3)),
        options["method"],
        np.dtype(options["precision"]),
        options["threads"],
    )
    learner.warm_up(data.train, data.train_labels)
    return Experiment(
        learner,
        (data.train, data.train_labels),
        plan,
        title=f"{preset.title}: layers {'-'.join(map(str, architecture.units))}, inputs doubled and times "
        f"{architecture.input_gain:g}, {options['method']}, {name}, {len(data.train)} samples",
        evaluate=Evaluation(learner, data.test, data.test_labels),
        notes=notes,
        chosen={"dataset": name},
        save=lambda directory: save_model(learner.network(), directory),
        draw=_draw,
        summary=_summary,
    )


def _given(value: Any, default: Any) -> Any:
    return default if value is None else value


def _draw(directory: Path, history: History) -> list[Path]:
    """The learning curve."""
    from circuitsim.training.curves import KINKS, draw_history

    panels = {
        "error, share of samples": ["error", "test_error"],
        "loss, V²": ["loss", "test_loss"],
        "relative residual": ["residual"],
        KINKS: ["kink_share"],
    }
    return draw_history(history, directory / "learning.png", panels)


def _summary(history: History) -> list[str]:
    """The last row in words."""
    row = history.rows[-1]
    return [
        f"test error      {100 * row['test_error']:.2f} %",
        f"training error  {100 * row['error']:.2f} % (as it went, before each step)",
        f"loss            {row['loss']:.5f} V² (mean of ½‖v − y‖² before each step)",
        f"residual        {row['residual']:.1e} (relative, of hidden units at the free state)",
        f"training        {row['train_seconds']:.3g} s for the last row's epochs, test {row['test_seconds']:.2g} s",
    ]
