"""``circuitsim train circuit DECK``: any deck with inputs, outputs and trainable elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

# Imported for ``train --help`` as well: heavy modules are imported at use.
from circuitsim.cli.deck import read_with
from circuitsim.cli.models import OWN, Options, optimizer_of, own_options, plan_of, rule_of, schedule_of
from circuitsim.cli.options import READING
from circuitsim.errors import UsageError
from circuitsim.training.experiment import Experiment, HeldOut

if TYPE_CHECKING:
    from circuitsim.blocks.circuit import CircuitBlock
    from circuitsim.datasets.samples import Samples
    from circuitsim.learning import Loss, Rule
    from circuitsim.netlist.deck import Deck
    from circuitsim.netlist.roles import Roles

METHODS = ("ep", "coupled", "frequency", "agnostic", "implicit")
LOSSES = ("squared", "cross-entropy")

EPILOG = """\
examples:
  circuitsim train circuit netlists/learn-divider.cir --data netlists/learn-divider.csv --out run
  circuitsim train circuit my.cir --data samples.csv --split 0.25 --method implicit
  circuitsim train circuit --config my.toml epochs=300 --out run
  circuitsim train circuit my.cir --data samples.csv --beta 1m --nudge resistor --compare csv
"""

NOTES = """\
  circuitsim train circuit netlists/learn-filter.cir --data netlists/learn-filter.csv --epochs 200 --out run
  circuitsim train circuit netlists/learn-ripple.cir --data netlists/learn-ripple.csv --steady --epochs 200 --out run

--compare prints the gradient of the mean loss at the deck's values, over the first 64 samples (or --batch N), by every
method. Implicit differentiation is exact; the relative error and the cosine of the others are against it. kinks: diodes
that change between the phases, over all samples; of implicit differentiation diodes without current and voltage.

Data with a column time are waveforms, with a column measurement values of .meas (docs/learning.md): then the
gradient is exact, capacitors, inductors and numbers of diodes and switches (D1.vfwd, S1.vt) are trainable too, and the
learning rate is relative (0.05 of each value per step).
"""


OPTIONS = own_options(
    "epochs=50 batch=16 lr weight_decay=0",
    f"""
*deck DECK  a SPICE deck
*data FILE  samples: .csv or .npz (docs/learning.md), or iris or digits (bundled)
*test FILE  samples held out, measured after each epoch
*split F  hold out a random fraction of the samples
*inputs NAMES  input sources: 'V1 V2'
*outputs PAIRS  outputs: 'v(out) v(p,q)'
*trainable LINE  what may change: 'R* min=1k max=1MEG' (repeatable)
*method NAME = ep  {", ".join(METHODS)}{OWN}
*~compare FORM {{table csv json}}  train nothing: print the gradient by every method, as a table, csv or json
*gain A = 1  multiply the inputs of all samples
scatter S = 0  multiply each trainable resistance by exp(S N(0,1)) before the start
*loss NAME  squared or cross-entropy (squared where the data have voltages)
low V = 0  squared loss: target of the outputs of other classes
high V = 1  squared loss: target of the output of the class
temperature V  cross-entropy: voltage scale (spread of the initial outputs)
tolerance T = 1e-9  largest relative residual of the certificate
variant NAME = centred if method ep  of equilibrium propagation: centred, positive or negative
nudge KIND = constant if method ep agnostic frequency  how outputs are pulled: resistor, current or constant; \
a current follows the state
*beta B if method ep agnostic  strength of the nudge
kink_share S if method ep  choose beta at each step: at most this fraction of diodes changes between the phases
eta E = 0.1 if method coupled  coupled: size of the step
gamma G if method frequency  frequency: amplitude (as --beta)
times N = 8 if method frequency  frequency: times in a period
epsilon E if method agnostic  agnostic: compliance of the parameters
optimizer NAME = adam  adam, momentum or sgd
momentum M = 0.9 if optimizer momentum  momentum, 0 to 1
schedule NAME = constant  learning rate: constant, exponential or cosine
lr_decay D = 0.99 if schedule exponential  exponential schedule: factor for each epoch
lr_final F = 0 if schedule cosine  cosine schedule: final fraction of the rate
lr_current R  learning rate of trainable current sources (as --lr)
lr_device R  learning rate of trainable parameters of devices (0.02 with Adam)
uncertified WHAT = skip  steps with uncertified states: skip (and count) or stop
steady  waveforms: fit the periodic steady state; times are within its period
allow_include DIR  {READING["--allow-include DIR"]}
lib FILE  {READING["--lib FILE"]}
search DIR  {READING["-I DIR"]}
no_title  {READING["--no-title"]}
""",
    deck={"flag": "deck"},
    trainable={"default": None},
    compare={"bare": "table"},
    search={"flag": "-I"},
)
"""None: derived from the circuit; most options are for static data."""


def build(options: Options) -> Experiment:
    """A run from options."""
    from circuitsim._files import atomic_write
    from circuitsim.datasets.samples import is_over_time
    from circuitsim.learning import Learner
    from circuitsim.netlist import dumps

    if options.deck is None:
        raise UsageError("no deck given: circuitsim train circuit DECK --data FILE")
    if options.test is not None and options.split is not None:
        raise UsageError("either --test FILE or --split F, not both")
    if options.steady or (options.data is not None and is_over_time(options.data)):
        from circuitsim.cli.models.waveforms import build as build_waveforms

        return build_waveforms(options, *deck_of(options, None))
    setting = setting_of(options)
    estimator, chosen = estimator_of(options, setting)
    train, test = _sets(options, setting)
    optimizer, rates = _optimizer(options, setting)
    plan = plan_of(options, optimizer, schedule_of(options))
    learner = Learner(setting.block, estimator, setting.loss, options.uncertified, _fingerprint(setting))
    chosen = {**chosen, **rates, "classes": list(setting.samples.classes)}
    if options.temperature is None and hasattr(setting.loss, "temperature"):
        chosen["temperature"] = setting.loss.temperature
    roles, block = setting.roles, setting.block
    counts = {"input": roles.inputs, "output": roles.outputs, "trainable element": roles.trainable}
    sizes = ", ".join(f"{len(names)} {what}{'s' * (len(names) != 1)}" for what, names in counts.items())
    held = f", {test.size} held out" if test is not None else ""
    name = setting.block.circuit.title or options.deck
    return Experiment(
        learner,
        (train.x, train.y),
        plan,
        title=f"{name}: {sizes}; {options.method}, {train.size} samples{held}",
        evaluate=None if test is None else HeldOut(test.x, test.y, learner.evaluate),
        notes=[str(problem) for problem in setting.warnings],
        files={"trained.cir": lambda path: atomic_write(path, dumps(block.trained(), block.roles).encode())},
        summary=lambda history: [*history.last(), f"parameters on a bound: {block.at_bound()}"],
        chosen=chosen,
    )


def _sets(options: Options, setting: Setting) -> tuple[Samples, Samples | None]:
    """Samples to train on, and those held out."""
    import numpy as np

    from circuitsim.datasets.samples import read_samples, split

    if options.test is not None:
        test = read_samples(options.test, setting.roles, setting.samples.classes)
        return setting.samples, amplified(test, options.gain)
    if options.split is not None:
        return split(setting.samples, options.split, np.random.default_rng((options.seed, 5)))
    return setting.samples, None


def _optimizer(options: Options, setting: Setting) -> tuple[Any, dict[str, Any]]:
    """The optimiser, and the learning rates that were not given."""
    from circuitsim.learning.start import learning_rates

    for name, kind, what in (
        ("lr_current", "current", "current source"),
        ("lr_device", "law", "parameter of a device"),
    ):
        if getattr(options, name) is not None and kind not in setting.block.parameters:
            raise UsageError(f"--{name.replace('_', '-')} applies only where a {what} is trainable")
    given = options.optimizer, options.lr, options.lr_current, options.lr_device
    rates = learning_rates(setting.block, setting.samples.x, *given)
    chosen = {"lr_device": rates["law"]} if "law" in rates else {}
    return optimizer_of(options, rates), {"lr": rates.get("conductance", options.lr), **chosen}


def _fingerprint(setting: Setting) -> bytes:
    """Hash of circuit, roles and data: a run resumes only with the same."""
    import hashlib

    from circuitsim.netlist import dumps

    digest = hashlib.sha256(dumps(setting.block.whole, setting.roles).encode())
    digest.update(setting.samples.x.tobytes() + setting.samples.y.tobytes())
    return digest.digest()


class Setting(NamedTuple):
    """A deck prepared for learning.

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


def setting_of(options: Options) -> Setting:
    """Deck, data and loss from options."""
    import numpy as np

    from circuitsim.blocks.circuit import CircuitBlock
    from circuitsim.datasets.samples import read_samples

    if options.data is None:
        raise UsageError("no training data: give --data FILE (.csv or .npz)")
    if not 0.0 < options.tolerance < 1.0:
        raise UsageError(f"--tolerance must be between 0 and 1, not {options.tolerance:g}")
    deck, roles, notes = deck_of(options, options.outputs)
    roles.require()
    samples = amplified(read_samples(options.data, roles), options.gain)
    block = CircuitBlock(deck.where_change(None)[0], roles, options.tolerance)
    if options.scatter:
        from circuitsim.learning.start import scattered

        rng = np.random.default_rng((options.seed, 3))
        block = CircuitBlock(scattered(block, options.scatter, rng), roles, options.tolerance)
    loss = _loss(options, block, samples)
    return Setting(block, roles, samples, loss, [*deck.notes, *notes])


def deck_of(options: Options, outputs: str | None) -> tuple[Deck, Roles, Sequence[Any]]:
    """The deck, its roles and their notes."""
    from circuitsim.netlist.roles import make_roles, read_roles

    deck = read_with(vars(options))
    stated, notes = read_roles(deck)
    own = options.inputs, outputs, options.trainable
    return deck, make_roles(deck.operating_circuit, *own, stated, deck.following.switches), notes


def amplified(samples: Samples, gain: float) -> Samples:
    """The samples with all inputs multiplied."""
    return samples._replace(x=gain * samples.x)


def _loss(options: Options, block: CircuitBlock, samples: Samples) -> Loss:
    from circuitsim.blocks.propagation import check_named
    from circuitsim.learning import CrossEntropy, SquaredError
    from circuitsim.learning.start import output_spread

    name = options.loss or ("cross-entropy" if samples.classes else "squared")
    check_named(loss=(name, LOSSES))
    levels = [f"--{word}" for word in ("low", "high") if getattr(options, word) != OPTIONS[word].default]
    if levels and (name != "squared" or not samples.classes):
        raise UsageError(f"{levels[0]} applies only with --loss squared and data of classes")
    if options.temperature is not None and name == "squared":
        raise UsageError("--temperature applies only with --loss cross-entropy")
    if name == "squared":
        return SquaredError(options.low, options.high)
    if not samples.classes:
        raise UsageError("cross-entropy needs classes; the data have target voltages: use --loss squared")
    temperature = options.temperature
    return CrossEntropy(output_spread(block, samples.x) if temperature is None else temperature)


STRENGTHS = ("variant", "beta", "kink_share", "eta", "gamma", "times", "epsilon")
"""Options that are fields of rules."""

OPEN = {"ep": ["beta"], "frequency": ["gamma"], "agnostic": ["beta", "epsilon"]}
"""Method → its strengths that are derived from the circuit by default."""


def estimator_of(options: Options, setting: Setting) -> tuple[Rule, dict[str, Any]]:
    """The gradient estimator, and the values of the options that were not given."""
    from circuitsim.blocks.propagation import check_named
    from circuitsim.learning.nudges import NUDGES
    from circuitsim.learning.rules import rule_named
    from circuitsim.learning.start import default_beta, default_epsilon

    method, share, chosen = rule_of(options), options.kink_share, dict[str, Any]()
    check_named(nudge=(options.nudge, NUDGES))
    given: dict[str, Any] = {name: getattr(options, name) for name in STRENGTHS}
    given["nudging"] = options.nudge
    if share is not None and options.beta is not None:
        raise UsageError("--kink-share chooses beta for equilibrium propagation: give it without --beta")
    if share is None:
        del given["kink_share"]
    elif method == "ep":
        given["beta"] = "auto"
    for name in OPEN.get(method, ()):
        if given[name] is None:
            found = default_epsilon(setting.block, setting.samples.x) if name == "epsilon" else None
            chosen[name] = default_beta(setting.block, setting.loss) if found is None else found
    return rule_named(method, METHODS, **{**given, **chosen}), chosen
