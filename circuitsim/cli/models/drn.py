"""``circuitsim train drn``: deep resistive networks with the published settings as defaults."""

from __future__ import annotations

from typing import Any

# Imported for ``train --help`` as well: heavy modules are imported at use.
from circuitsim.cli.models import IMAGES, data_options, filled, published_run, rule_of
from circuitsim.errors import UsageError
from circuitsim.training.experiment import Experiment, HeldOut

EPILOG = """\
presets: drn-xs, drn-1h, drn-2h, drn-3h, drn-xl (circuitsim/training/presets.toml); options replace their values

examples:
  circuitsim train drn --preset drn-xs --dataset digits --input-gain 30
  circuitsim train drn --preset drn-1h --dataset mnist --out run  after circuitsim data fetch mnist
  circuitsim train drn --preset drn-1h --method bp --seed 3
"""


OPTIONS = data_options(
    "",
    f"""{IMAGES.strip()}
*preset NAME = drn-xs  a published network
tolerance R = 0  sweep to this relative residual (0: T sweeps)
*input_gain A  volts for a white pixel
*threads N = 1  threads; the result does not depend on it
""",
)


def build(options: Any) -> Experiment:
    """A run from options."""
    from circuitsim.layered import Architecture, DeepResistiveNetwork, published_models
    from circuitsim.layered.learner import COMPILED, LayeredLearner, resistive_chain
    from circuitsim.learning.estimate import SquaredError, measured
    from circuitsim.learning.stages import Normalise

    preset, options, chosen, data, notes, sweeps, plan = published_run(options, published_models(), "conductances")
    options, _ = filled(options, {"input_gain": preset.input_gain})
    name = chosen["dataset"]
    architecture = Architecture((data.train.shape[1], *preset.hidden, data.classes), options.input_gain)
    if options.threads < 1:
        raise UsageError(f"at least one thread is needed, not {options.threads}")
    # A separate random stream, so that initialisation does not repeat the trainer's draws.
    start = DeepResistiveNetwork(architecture, rng=(plan.seed, 3), dtype=options.precision)
    start.sweeps = sweeps
    rule = rule_of(options)
    given = start, plan.batch, rule, options.beta, options.variant
    trainable: Any
    if rule in COMPILED:
        trainable = LayeredLearner(*given, options.threads)
        trainable.warm_up(data.train, data.train_labels)
    else:
        # Other rules train the same network as a chain, without compiled steps.
        trainable, entry = resistive_chain(*given), Normalise()
        entry.initialise(None, trainable.dtype)
        trainable.elements = (entry, *trainable.elements)
    return Experiment(
        trainable,
        (data.train, data.train_labels),
        plan,
        title=f"{preset.title}: layers {'-'.join(map(str, architecture.units))}, inputs doubled and times "
        f"{architecture.input_gain:g}, {options.method}, {name}, {len(data.train)} samples",
        evaluate=HeldOut(
            data.test, data.test_labels, lambda x, y: measured(SquaredError(), trainable.output(x).astype(float), y)
        ),
        notes=notes,
        chosen={"dataset": name},
        files={"model.npz": lambda path: trainable.block.save(path)},
    )
