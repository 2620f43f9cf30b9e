"""What ``train circuit DECK`` learns from: a deck, its data, a loss, an estimator."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim.cli import deck as reading
from circuitsim.cli.options import Option, add_options
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from circuitsim.blocks.circuit import CircuitBlock
    from circuitsim.datasets.samples import Samples
    from circuitsim.learning import Estimator, Loss
    from circuitsim.netlist.roles import Roles

METHODS = ("ep", "coupled", "frequency", "agnostic", "implicit")
LOSSES = ("squared", "cross-entropy")

DEFAULTS: dict[str, Any] = {
    "deck": None,
    **reading.DEFAULTS,
    "data": None,
    "inputs": None,
    "outputs": None,
    "trainable": None,
    "gain": 1.0,
    "scatter": 0.0,
    "loss": None,
    "low": 0.0,
    "high": 1.0,
    "temperature": None,
    "tolerance": 1e-9,
    "method": "ep",
    "variant": "centred",
    "nudge": "constant",
    "beta": None,
    "kink_share": None,
    "eta": 0.1,
    "gamma": None,
    "times": 8,
    "epsilon": None,
}
"""Options; None is worked out from the circuit (`chosen`)."""

ONLY_WITH: dict[str, tuple[str, tuple[str, ...]]] = {
    "variant": ("method", ("ep",)),
    "nudge": ("method", ("ep", "agnostic", "frequency")),
    "beta": ("method", ("ep", "agnostic")),
    "kink_share": ("method", ("ep",)),
    "eta": ("method", ("coupled",)),
    "gamma": ("method", ("frequency",)),
    "times": ("method", ("frequency",)),
    "epsilon": ("method", ("agnostic",)),
}
"""Options that act only with some values of another."""


OPTIONS: dict[str, Option] = {
    "--data": (str, "FILE", "samples: .csv or .npz (docs/learning.md), or iris or digits (bundled)"),
    "--gain": (float, "A", "multiply the inputs of all samples (1)"),
    "--scatter": (float, "S", "multiply each trainable resistance by exp(S N(0,1)) before the start (0)"),
    "--loss": (str, "NAME", "squared or cross-entropy (squared where the data have voltages)"),
    "--low": (float, "V", "squared loss: target of the outputs of other classes (0)"),
    "--high": (float, "V", "squared loss: target of the output of the class (1)"),
    "--temperature": (float, "V", "cross-entropy: volts that count as one (spread of the first outputs)"),
    "--tolerance": (float, "T", "largest relative residual of the certificate (1e-09)"),
    "--nudge": (str, "KIND", "how outputs are pulled: resistor, current (follows the state) or constant (default)"),
    "--variant": (str, "NAME", "of equilibrium propagation: centred (default), positive or negative"),
    "--beta": (float, "B", "strength of the nudge"),
    "--kink-share": (float, "S", "choose beta at each step: at most this share of diodes changes between the phases"),
    "--eta": (float, "E", "coupled: size of the step (0.1)"),
    "--gamma": (float, "G", "frequency: amplitude (as --beta)"),
    "--times": (int, "N", "frequency: times in a period (8)"),
    "--epsilon": (float, "E", "agnostic: compliance of the parameters"),
    "--inputs": (str, "NAMES", "input sources: 'V1 V2'"),
    "--outputs": (str, "PAIRS", "outputs: 'v(out) v(p,q)'"),
}


def add_learning(parser: Any) -> None:
    """Add the options of decks that learn."""
    add_options(parser, OPTIONS)
    parser.add_argument(
        "--trainable",
        metavar="LINE",
        action="append",
        default=argparse.SUPPRESS,
        help="what may change: 'R* min=1k max=1MEG' (repeatable)",
    )
    reading.add_reading(parser)


class Setting(NamedTuple):
    """A deck ready to learn.

    Attributes
    ----------
    block : CircuitBlock
    roles : Roles
    samples : Samples
    loss : Loss
    warnings : list
        `Problem` values of the deck.
    """

    block: CircuitBlock
    roles: Roles
    samples: Samples
    loss: Loss
    warnings: list[Any]


def setting_of(options: Mapping[str, Any]) -> Setting:
    """Deck, data and loss from options."""
    import numpy as np

    from circuitsim.blocks.circuit import CircuitBlock
    from circuitsim.datasets.samples import read_samples
    from circuitsim.netlist.roles import make_roles, numbers_of, read_roles

    if options["data"] is None:
        raise UsageError("no training data: give --data FILE (.csv or .npz)")
    if not 0.0 < options["tolerance"] < 1.0:
        raise UsageError(f"--tolerance must be between 0 and 1, not {options['tolerance']:g}")
    deck = reading.read_with(options)
    stated, notes = read_roles(deck)
    roles = make_roles(
        deck.operating_circuit, options["inputs"], options["outputs"], options["trainable"], stated, numbers_of(deck)
    ).require()
    samples = amplified(read_samples(options["data"], roles), options["gain"])
    block = CircuitBlock(deck.where_change(None)[0], roles, options["tolerance"])
    if options["scatter"]:
        from circuitsim.learning.start import scattered

        rng = np.random.default_rng((options["seed"], 3))
        block = CircuitBlock(scattered(block, options["scatter"], rng), roles, options["tolerance"])
    loss = _loss(options, block, samples)
    return Setting(block, roles, samples, loss, [*deck.notes, *notes])


def amplified(samples: Samples, gain: float) -> Samples:
    """The samples with all inputs multiplied."""
    return samples._replace(x=gain * samples.x)


def _loss(options: Mapping[str, Any], block: CircuitBlock, samples: Samples) -> Loss:
    from circuitsim.learning import CrossEntropy, SquaredError
    from circuitsim.learning.start import output_spread

    name = options["loss"] or ("cross-entropy" if samples.classes else "squared")
    _check(name, LOSSES, "loss")
    levels = [f"--{word}" for word in ("low", "high") if options[word] != DEFAULTS[word]]
    if levels and (name != "squared" or not samples.classes):
        raise UsageError(f"{levels[0]} acts only with --loss squared and data of classes")
    if options["temperature"] is not None and name == "squared":
        raise UsageError("--temperature acts only with --loss cross-entropy")
    if name == "squared":
        return SquaredError(options["low"], options["high"])
    if not samples.classes:
        raise UsageError("cross-entropy needs classes; the data have target voltages: use --loss squared")
    temperature = options["temperature"]
    return CrossEntropy(output_spread(block, samples.x) if temperature is None else temperature)


def estimator_of(options: Mapping[str, Any], setting: Setting) -> tuple[Estimator, dict[str, Any]]:
    """The gradient estimator, and the values of the options that were left open."""
    from circuitsim.learning import (
        NUDGES,
        AgnosticPropagation,
        CoupledLearning,
        EquilibriumPropagation,
        FrequencyPropagation,
        ImplicitDifferentiation,
    )
    from circuitsim.learning.start import default_beta, default_epsilon

    method = options["method"]
    _check(method, METHODS, "method")
    _check(options["nudge"], NUDGES, "nudge")
    nudging = NUDGES[options["nudge"]]
    if method == "implicit":
        return ImplicitDifferentiation(), {}
    if method == "coupled":
        return CoupledLearning(options["eta"]), {}

    def nudge_of(name: str) -> float:
        given = options[name]
        return default_beta(setting.block, setting.loss) if given is None else float(given)

    if method == "frequency":
        gamma = nudge_of("gamma")
        return FrequencyPropagation(gamma, options["times"], nudging), {"gamma": gamma}
    if options["kink_share"] is not None:
        if options["beta"] is not None:
            raise UsageError("--kink-share chooses beta for equilibrium propagation: give it without --beta")
        return EquilibriumPropagation("auto", options["variant"], nudging, options["kink_share"]), {}
    beta = nudge_of("beta")
    if method == "ep":
        return EquilibriumPropagation(beta, options["variant"], nudging), {"beta": beta}
    epsilon = options["epsilon"]
    if epsilon is None:
        epsilon = default_epsilon(setting.block, setting.samples.x)
    return AgnosticPropagation(epsilon, beta, nudging), {"beta": beta, "epsilon": epsilon}


def _check(name: str, known: Iterable[str], what: str) -> None:
    if name not in known:
        raise UsageError(f"there is no {what} {name!r}; there are {', '.join(known)}")
