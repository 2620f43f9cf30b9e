"""``circuitsim train rbm``: restricted Boltzmann machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Imported for ``train --help`` as well: heavy modules are imported at use.
from circuitsim.cli.models import Options, data_options, plan_of
from circuitsim.errors import UsageError
from circuitsim.training.experiment import Experiment

EPILOG = """\
examples:
  circuitsim train rbm --dataset digits --hidden 64 --k 1 --k-max 10 --epochs 30 --out runs/digits
  circuitsim train rbm --dataset diag --units 6 --hidden 6
"""


OPTIONS = data_options(
    "epochs=10 batch=10 lr=0.05",
    """
*hidden N = 64  hidden units
*k N = 1  Gibbs steps for each update, CD-k
*k_max N  raise k with the weights up to this
*nats_per_step X = 0.5  adaptive k: one step for each X nats of the largest energy change
*persistent N = 0  persistent chains (0: CD-k)
*momentum M = 0  momentum, 0 to 1
*weight_decay D = 0  L2 penalty on the weights
spread S = 0.01  standard deviation of initial weights
units N = 6  visible units of diag and 1dball
grey  take grey values as probabilities; otherwise pixels are on from half intensity
""",
)


def build(options: Options) -> Experiment:
    """A run from options."""
    import numpy as np

    from circuitsim.boltzmann.contrastive import AdaptiveSteps, ContrastiveDivergence
    from circuitsim.boltzmann.machine import RestrictedBoltzmannMachine
    from circuitsim.boltzmann.monitor import Monitor, draw_filters
    from circuitsim.datasets import choose
    from circuitsim.training import SGD

    name, notes = choose(options.dataset, options.data_dir)
    data, shape, binary = _data(name, options)
    k, k_max = options.k, options.k_max
    rule = AdaptiveSteps(k, k if k_max is None else k_max, options.nats_per_step)
    if options.spread < 0:
        raise UsageError(f"the spread of the initial weights must not be negative, not {options.spread}")
    optimizer = SGD(options.lr, {"weights": options.weight_decay}, options.momentum)
    plan = plan_of(options, optimizer)
    # A separate random stream, so that initialisation does not repeat the trainer's draws.
    rng = np.random.default_rng((plan.seed, 3))
    machine = RestrictedBoltzmannMachine.random(
        data.shape[1], options.hidden, rng, options.spread, np.dtype(options.precision)
    )
    learner = ContrastiveDivergence(machine, rule, options.persistent)
    monitor = Monitor(learner, data, binary)
    if binary and not monitor.exact_likelihood:
        notes.append("too many units to enumerate: the distance in the bound is replaced by 1")
    method = "persistent CD" if options.persistent else "CD"
    steps = f"k = {k}" if k_max is None else f"k from {k} to {k_max}"
    return Experiment(
        learner,
        (data,),
        plan,
        title=f"rbm: {machine.visible} visible and {machine.hidden} hidden units, {method}, {steps}, "
        f"{len(data)} samples",
        evaluate=monitor,
        notes=notes,
        files={"model.npz": machine.save},
        pictures={"filters.png": lambda path: draw_filters(machine, shape, path)},
        chosen={"dataset": name},
    )


GREY = ("digits", "mnist")
"""Data sets of images without colours."""


def _data(name: str, options: Options) -> tuple[Any, tuple[int, int], bool]:
    """Training data, the shape of a sample as an image, and whether it is binary."""
    import numpy as np

    from circuitsim.boltzmann.study import PATTERNS, pattern_set
    from circuitsim.datasets import load

    if name in PATTERNS:
        return pattern_set(name, options.units).astype(np.float32), (1, options.units), True
    if name not in GREY and not Path(name).is_dir():
        raise UsageError(f"there is no data set '{name}' for rbm; there are {', '.join([*GREY, *PATTERNS])}")
    images = load(name, options.data_dir)
    if options.grey:
        return images.train, (images.shape[0], images.shape[1]), False
    # 0 or 255, so that the states are exactly 0 or 1 and the data stay bytes.
    return np.where(images.train >= 128, np.uint8(255), np.uint8(0)), (images.shape[0], images.shape[1]), True
