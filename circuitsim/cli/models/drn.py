"""``circuitsim train drn``: deep resistive networks as published, with every number open to change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Imported for ``train --help`` as well: heavy modules are imported at use.
from circuitsim.cli.models import PRECISIONS, RunOptions, chosen_preset, plan_of
from circuitsim.cli.options import option
from circuitsim.errors import UsageError
from circuitsim.training.experiment import Experiment, HeldOut

METHODS, VARIANTS = ("ep", "bp", "implicit"), ("centred", "positive", "negative")

EPILOG = """\
presets: drn-xs, drn-1h, drn-2h, drn-3h, drn-xl (circuitsim/training/presets.toml); options replace their values

examples:
  circuitsim train drn --preset drn-xs --dataset digits --input-gain 30
  circuitsim train drn --preset drn-1h --dataset mnist --out run       MNIST: circuitsim data fetch mnist, once
  circuitsim train drn --preset drn-1h --method bp --seed 3
"""


@dataclass(frozen=True)
class Options(RunOptions):
    """None stands for the published model's own number."""

    model = "drn"
    epochs: int | None = option(None)
    batch: int | None = option(None)
    lr: float | None = option(None)
    dataset: str | None = option(None)
    data_dir: str | None = option(None)
    preset: str = option("drn-xs", "a published network", "NAME", usual=True)
    method: str = option("ep", f"how gradients are found: {', '.join(METHODS)}", "NAME", choices=METHODS, usual=True)
    variant: str = option(
        "centred", f"nudges that ep compares: {', '.join(VARIANTS)}", "NAME", choices=VARIANTS, only=("method", "ep")
    )
    beta: float | None = option(None, "strength of the nudge, S", "B", only=("method", "ep"), usual=True)
    sweeps: int | None = option(None, "free sweeps (with --tolerance: at most)", "T", usual=True)
    nudged_sweeps: int | None = option(None, "nudged, or backpropagated, sweeps", "K", usual=True)
    tolerance: float = option(0.0, "sweep to this relative residual (0: T sweeps)", "R")
    input_gain: float | None = option(None, "volts for a white pixel", "A", usual=True)
    precision: str = option("float32", "of parameters and states", "NAME", choices=PRECISIONS)
    threads: int = option(1, "threads; the result does not depend on it", "N", usual=True)


def build(options: Options) -> Experiment:
    """A run from options."""
    from dataclasses import replace

    import numpy as np

    from circuitsim.datasets import choose, load
    from circuitsim.layered.architecture import published_models
    from circuitsim.layered.learner import LayeredLearner
    from circuitsim.learning.losses import SquaredError, measured
    from circuitsim.training import SGD, Exponential

    preset = chosen_preset(options.preset, published_models())
    name, notes = choose(options.dataset, options.data_dir)
    data = load(name, options.data_dir)
    architecture = replace(
        preset.architecture,
        units=(data.train.shape[1], *preset.architecture.units[1:-1], data.classes),
        **_given(options, "input_gain"),
    )
    learning = replace(
        preset.learning,
        variant=options.variant,
        tolerance=options.tolerance,
        **_given(options, "beta", "sweeps", "nudged_sweeps"),
    )
    if options.threads < 1:
        raise UsageError(f"at least one thread is needed, not {options.threads}")
    extent = {"epochs": preset.epochs, "batch": preset.batch, **_given(options, "epochs", "batch")}
    rates = preset.rates() if options.lr is None else options.lr
    plan = plan_of(replace(options, **extent), SGD(rates), Exponential(preset.rate_decay))
    learner = LayeredLearner(
        # A stream of its own, so that the start does not repeat the trainer's draws.
        architecture,
        learning,
        plan.batch,
        np.random.default_rng((plan.seed, 3)),
        options.method,
        np.dtype(options.precision),
        options.threads,
    )
    learner.warm_up(data.train, data.train_labels)
    return Experiment(
        learner,
        (data.train, data.train_labels),
        plan,
        title=f"{preset.title}: layers {'-'.join(map(str, architecture.units))}, inputs doubled and times "
        f"{architecture.input_gain:g}, {options.method}, {name}, {len(data.train)} samples",
        evaluate=HeldOut(
            data.test, data.test_labels, lambda x, y: measured(SquaredError(), learner.outputs(x).astype(float), y)
        ),
        notes=notes,
        chosen={"dataset": name},
        files={"model.npz": lambda path: learner.network().save(path)},
    )


def _given(options: Options, *names: str) -> dict[str, Any]:
    """The options that replace a published number."""
    return {name: getattr(options, name) for name in names if getattr(options, name) is not None}
