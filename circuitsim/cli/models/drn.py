"""``circuitsim train drn``: deep resistive networks as published, with every number open to change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Imported for ``train --help`` as well: heavy modules are imported at use.
from circuitsim.cli.models import PRECISIONS, RunOptions, chosen_preset, plan_of
from circuitsim.cli.options import option
from circuitsim.errors import UsageError
from circuitsim.training.experiment import Experiment, ImageTest
from circuitsim.training.history import History

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
    from functools import partial

    import numpy as np

    from circuitsim.datasets import choose, load
    from circuitsim.layered.architecture import published_models
    from circuitsim.layered.learner import LayeredLearner
    from circuitsim.training import SGD, Exponential
    from circuitsim.training.curves import KINKS

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
        evaluate=ImageTest(data.test, data.test_labels, partial(_measured, learner)),
        notes=notes,
        chosen={"dataset": name},
        files={"model.npz": lambda path: learner.network().save(path)},
        panels={
            "error, share of samples": ["error", "test_error"],
            "loss, V²": ["loss", "test_loss"],
            "relative residual": ["residual"],
            KINKS: ["kink_share"],
        },
        summary=_summary,
    )


def _measured(learner: Any, images: Any, labels: Any) -> tuple[Any, dict[str, float]]:
    """Outputs, V, their mean loss ½‖v − y‖², and the seconds they took."""
    import time

    import numpy as np

    begun = time.perf_counter()
    outputs = learner.outputs(images).astype(float)
    loss = float(0.5 * ((outputs - np.eye(outputs.shape[1])[labels]) ** 2).sum() / len(outputs))
    return outputs, {"test_loss": loss, "test_seconds": round(time.perf_counter() - begun, 3)}


def _given(options: Options, *names: str) -> dict[str, Any]:
    """The options that replace a published number."""
    return {name: getattr(options, name) for name in names if getattr(options, name) is not None}


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
