"""``circuitsim train dhn``: deep Hopfield networks with the published settings as defaults."""

from __future__ import annotations

from typing import Any

from circuitsim.cli.models import IMAGES, data_options, filled, published_run, rule_of
from circuitsim.training.experiment import Experiment, HeldOut

EPILOG = """\
presets: dhn-1h, dhn-2h, dhn-3h (circuitsim/training/presets.toml); options replace their values

examples:
  circuitsim train dhn --preset dhn-1h --dataset digits --hidden 64 --epochs 4 --out run
  circuitsim train dhn --preset dhn-2h --tolerance 1e-3
"""


OPTIONS = data_options(
    "",
    f"""{IMAGES.strip()}
*preset NAME = dhn-1h  a published network
*hidden N  units of each hidden layer
tolerance R  end a phase when no unit moves by more
cold  start each batch at zero
allow_nonconvex  count samples whose energy is not convex at −β; never certified
""",
)


def build(options: Any) -> Experiment:
    """A run from options."""
    import numpy as np

    from circuitsim.hopfield import HopfieldLearning, network, published_models

    preset, options, chosen, images, notes, sweeps, plan = published_run(options, published_models(), "weights")
    options, hidden = filled(options, {"hidden": preset.hidden[0]})
    units = (images.train.shape[1], *(options.hidden for _ in preset.hidden), images.classes)
    learning = HopfieldLearning(options.beta, rule_of(options), options.variant, options.allow_nonconvex)
    # A separate random stream, so that initialisation does not repeat the trainer's draws.
    rng = np.random.default_rng((plan.seed, 3))
    net = network(
        units, sweeps, learning, plan.batch, rng, np.dtype(options.precision), preset.spread, not options.cold
    )
    how = f"{options.method}, {sweeps.free} free and {sweeps.nudged} nudged sweeps"
    return Experiment(
        net,
        (images.train, images.train_labels),
        plan,
        title=f"{preset.name}: {'-'.join(map(str, units))}, {how}, {len(images.train)} samples of {images.name}",
        evaluate=HeldOut(images.test, images.test_labels, net.evaluate),
        notes=notes,
        files={"model.npz": net.block.save},
        chosen={**chosen, **hidden},
    )
