"""``circuitsim train ffebm``: chains of digital stages and blocks, from TOML, a preset, or by default."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from circuitsim.cli import Values
from circuitsim.cli.models import HOW, data_options, filled, plan_of, rule_of
from circuitsim.errors import UsageError
from circuitsim.training.experiment import Experiment, HeldOut
from circuitsim.training.presets import published

EPILOG = """\
presets: l6-bs2, l6-bs3, l6-bs6, l12-bs4, l12-cifar100 … (circuitsim/training/presets.toml)

examples:
  circuitsim train ffebm --dataset digits --epochs 5
  circuitsim train ffebm --config chain.toml --out run    elements of your own: docs/models.md
  circuitsim train ffebm --preset l6-bs3 --dataset cifar10
"""


OPTIONS = data_options(
    "weight_decay",
    f"""
*preset NAME  a published configuration, e.g. l6-bs3
elements TABLES  elements of the chain
*loss NAME = cross-entropy  loss of the last stage: cross-entropy or mse
*method NAME = ep  {HOW}
*beta B if method ep  strength of the nudge (0.02)
form NAME = explicit  chaining: explicit or implicit
last NAME  nudge of the last block: stationary or elastic
scale_errors  scale the error at the last block by its own size
allow_nonconvex  compute also where an elastic nudge leaves no convex energy
*optimizer NAME = adam  adam or sgd
lr_final R  final learning rate (0)
momentum M = 0 if optimizer sgd  momentum, 0 to 1
augment  flip and crop colour images at random
*samples N  train on the first N samples only
""",
    scale_errors={"default": None},
    augment={"default": None},
)
"""None: from the preset, otherwise from the plain runs of `presets.toml`."""


def build(options: Any) -> Experiment:
    """A run from options."""
    import numpy as np

    from circuitsim.datasets import choose, load
    from circuitsim.datasets.images import FlipAndCrop
    from circuitsim.ffebm import build_chain
    from circuitsim.training import SGD, Adam, Cosine

    options, chosen = _complete(options)
    name, notes = choose(options.dataset, options.data_dir)
    images = load(name, options.data_dir)
    chosen["dataset"] = images.name
    elements = options.elements or _plain_elements(images)
    # A resumed run has its elements here, and no preset that would bring others.
    chosen["preset"] = None
    chosen["elements"] = elements = [_with_deck(table) for table in elements]
    fields = ("beta", "form", "last", "scale_errors", "allow_nonconvex")
    rule = {"method": rule_of(options), **{name: getattr(options, name) for name in fields}}
    chain = build_chain(elements, options.loss, rule, options.precision, options.seed)
    if options.augment:
        if len(images.shape) != 3:
            raise UsageError("augmentation flips and crops colour images: give augment=false for others")
        chain.augment = FlipAndCrop((images.shape[0], images.shape[1], images.shape[2]))
    if options.lr <= 0:
        raise UsageError(f"the learning rate must be positive, not {options.lr}")
    rates, decay = chain.rates(options.lr), options.weight_decay
    optimizer = Adam(rates, decay=decay) if options.optimizer == "adam" else SGD(rates, decay, options.momentum)
    train, labels = images.train[: options.samples], images.train_labels[: options.samples]
    return Experiment(
        chain,
        (train, labels),
        plan_of(options, optimizer, Cosine(max(1, options.epochs), options.lr_final / options.lr)),
        title=f"ffebm: {_kinds(elements)}; {options.method}, "
        f"{sum(np.size(p) for p in chain.parameters.values())} parameters, {len(train)} samples of {images.name}",
        evaluate=HeldOut(images.test, images.test_labels, chain.evaluate),
        notes=notes,
        files={"model.npz": chain.save},
        chosen=chosen,
    )


FEW_ELEMENTS = 8
"""Maximum number of elements that a title lists; beyond, it counts those of each kind."""


def _kinds(elements: Sequence[Mapping[str, Any]]) -> str:
    """One-line description of the elements."""
    kinds = [f"{element['kind']}" for element in elements]
    if len(kinds) <= FEW_ELEMENTS:
        return ", ".join(kinds)
    return ", ".join(kind if count == 1 else f"{count} × {kind}" for kind, count in Counter(kinds).items())


def _complete(options: Any) -> tuple[Any, Values]:
    """Complete options, and those that were filled in."""
    from circuitsim.ffebm.architectures import preset

    runs = published("chains")["runs"]
    base = runs["plain"]
    if options.preset is not None:
        if options.elements is not None:
            raise UsageError("a preset has its own elements: give one of them")
        base = {**base, **runs["published"], **preset(options.preset)}
    if options.optimizer not in ("adam", "sgd"):
        raise UsageError(f"the optimizer is adam or sgd, not {options.optimizer}")
    options, chosen = filled(options, {"elements": None, **base})
    chosen.pop("elements", None)
    return options, chosen


def _plain_elements(images: Any) -> list[Values]:
    """Default elements: digital stages around two deep Hopfield blocks."""
    from circuitsim.ffebm.architectures import LayerSizes

    layers = LayerSizes(dense=[128] * 4, batch_norm="all", clamped="inner", free=15, nudged=10)
    return layers.cut((images.train.shape[1],), [2, 2], images.classes)


def _with_deck(table: Any) -> Values:
    """An element's table, with a circuit's deck as text, so that the run does not depend on the file."""
    if not isinstance(table, Mapping):
        raise UsageError(f"an element is a table with a kind, not {table!r}")
    table = dict(table)
    if table.get("kind") == "circuit" and "file" in table:
        from circuitsim.netlist import dumps, load
        from circuitsim.netlist.roles import read_roles

        deck = load(str(table.pop("file")))
        table["deck"] = dumps(deck.circuit, read_roles(deck)[0])
    return table
