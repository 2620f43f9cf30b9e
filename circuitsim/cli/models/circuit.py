"""``circuitsim train circuit DECK``: decks with inputs, outputs and trainable elements, on samples or waveforms."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from circuitsim._files import atomic_write
from circuitsim.blocks.protocol import check_named
from circuitsim.cli import READING, Values
from circuitsim.cli.common import elsewhere, read, report, say
from circuitsim.cli.models import OWN, Options, family_options, optimizer_of, own_options, plan_of, rule_of, schedule_of
from circuitsim.datasets.samples import Samples, held_out, is_over_time, read_samples, split
from circuitsim.errors import CircuitError, ConvergenceError, UsageError
from circuitsim.formats import Table, table
from circuitsim.formats import dumps as json_text
from circuitsim.learning import CrossEntropy, Estimate, GradientProblem, Learner, Loss, Rule, SquaredError
from circuitsim.learning.estimate import NUDGES
from circuitsim.learning.rules import rule_named
from circuitsim.netlist import dumps
from circuitsim.netlist.deck import Deck
from circuitsim.netlist.roles import Roles, make_roles, read_roles
from circuitsim.training.experiment import Experiment, HeldOut
from circuitsim.training.history import History

if TYPE_CHECKING:
    from circuitsim.blocks.circuit import CircuitBlock  # imports heavy modules
    from circuitsim.fitting import Targets, TimedDeck, WaveformFit

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
method; that of a resistor is by its conductance. Implicit differentiation is exact; the relative error and the cosine
of the others are against it. kinks: diodes that change between the phases, over all samples; of implicit
differentiation diodes without current and voltage.

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
&*outputs PAIRS  outputs: 'v(out) v(p,q)'
*trainable LINE  what may change: 'R* min=1k max=1MEG' (repeatable)
&*method NAME = ep  {", ".join(METHODS)}{OWN}
*~compare FORM {{table csv json}}  train nothing: print the gradient by every method, as a table, csv or json
&*gain A = 1  multiply the inputs of all samples
scatter S = 0  multiply each trainable resistance by exp(S N(0,1)) before the start
&*loss NAME  squared or cross-entropy (squared where the data have voltages)
&low V = 0  squared loss: target of the outputs of other classes
&high V = 1  squared loss: target of the output of the class
&temperature V  cross-entropy: voltage scale (spread of the initial outputs)
tolerance T = 1e-9  largest relative residual of the certificate
&variant NAME = centred if method ep  of equilibrium propagation: centred, positive or negative
&nudge KIND = constant if method ep agnostic frequency  how outputs are pulled: resistor, current or constant; \
a current follows the state
&*beta B if method ep agnostic  strength of the nudge
&kink_share S if method ep  choose beta at each step: at most this fraction of diodes changes between the phases
&eta E = 0.1 if method coupled  coupled: size of the step
&gamma G if method frequency  frequency: amplitude (as --beta)
&times N = 8 if method frequency  frequency: times in a period
&epsilon E if method agnostic  agnostic: compliance of the parameters
optimizer NAME = adam  adam, momentum or sgd
momentum M = 0.9 if optimizer momentum  momentum, 0 to 1
schedule NAME = constant  learning rate: constant, exponential or cosine
lr_decay D = 0.99 if schedule exponential  exponential schedule: factor for each epoch
lr_final F = 0 if schedule cosine  cosine schedule: final fraction of the rate
&lr_current R  learning rate of trainable current sources (as --lr)
&lr_device R  learning rate of trainable parameters of devices (0.02 with Adam)
&uncertified WHAT = skip  steps with uncertified states: skip (and count) or stop
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
    if options.deck is None:
        raise UsageError("no deck given: circuitsim train circuit DECK --data FILE")
    if options.test is not None and options.split is not None:
        raise UsageError("either --test FILE or --split F, not both")
    if options.steady or (options.data is not None and is_over_time(options.data)):
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
    if options.test is not None:
        test = read_samples(options.test, setting.roles, setting.samples.classes)
        return setting.samples, amplified(test, options.gain)
    if options.split is not None:
        return split(setting.samples, options.split, np.random.default_rng((options.seed, 5)))
    return setting.samples, None


def _optimizer(options: Options, setting: Setting) -> tuple[Any, Values]:
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
    from circuitsim.blocks.circuit import CircuitBlock

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
    deck = read(options)
    stated, notes = read_roles(deck)
    own = options.inputs, outputs, options.trainable
    return deck, make_roles(deck.operating_circuit, *own, stated, deck.following.switches), notes


def amplified(samples: Samples, gain: float) -> Samples:
    """The samples with all inputs multiplied."""
    return samples._replace(x=gain * samples.x)


def _loss(options: Options, block: CircuitBlock, samples: Samples) -> Loss:
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


def estimator_of(options: Options, setting: Setting) -> tuple[Rule, Values]:
    """The gradient estimator, and the values of the options that were not given."""
    from circuitsim.learning.start import default_beta, default_epsilon

    method, share, chosen = rule_of(options), options.kink_share, Values()
    check_named(nudge=(options.nudge, NUDGES))
    given: Values = {name: getattr(options, name) for name in STRENGTHS}
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


RATE = 0.05
"""Learning rate: relative change of a parameter in one step of Adam."""


def build_waveforms(options: Any, deck: Deck, roles: Roles, notes: Sequence[Any]) -> Experiment:
    """A run from the options of ``train circuit``."""
    from circuitsim.fitting import MeasureTarget, WaveformFit, draw_fit

    known = family_options(options.model)
    wrong = [name for name, one in known.items() if one.static and getattr(options, name) != one.default]
    if wrong:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in wrong)
        raise UsageError(f"{flags}: not for waveforms (data with a column time or measurement)")
    targets, test = _targets(options, deck, roles)
    fit = WaveformFit(_timed(options, deck, roles, targets), targets)
    if options.scatter:
        fit.scatter(options.scatter, np.random.default_rng((options.seed, 3)))
    held = None if test is None else WaveformFit(_timed(options, deck, roles, test), test)
    if held is not None:
        held.parameters = fit.parameters
    rate = RATE if options.lr is None else options.lr
    plan = plan_of(options, optimizer_of(options, rate), schedule_of(options))
    measures = [own.name for own in targets if isinstance(own, MeasureTarget)]
    waves = f"{len(targets)} waveform{'s' * (len(targets) != 1)}"
    what = f"{len(measures)} measurement{'s' * (len(measures) != 1)}" if measures else waves
    count = f"{len(fit.timed.names)} number{'s' * (len(fit.timed.names) != 1)}"
    first = fit.values()
    return Experiment(
        fit,
        (fit.samples,),
        plan,
        title=f"{deck.operating_circuit.title or options.deck}: {count} to fit, {what}"
        + f"{', periodic steady state' * bool(options.steady)}",
        evaluate=None if held is None else HeldOut(held.samples, held.samples, lambda x, _: held.measured(x.tolist())),
        notes=[str(note) for note in [*(note for note in deck.notes if not elsewhere(note)), *notes]],
        files={"trained.cir": lambda path: atomic_write(path, fit.timed.text(fit.values()).encode())},
        pictures={"waveforms.png": lambda path: draw_fit(fit, first, path)},
        summary=lambda history: _summary(fit, first, history),
        chosen={"lr": rate, "over_time": True},
    )


def _targets(options: Any, deck: Deck, roles: Roles) -> tuple[Targets, Targets | None]:
    """Targets to fit, and those held out."""
    from circuitsim.fitting import WaveTarget, read_targets

    if options.data is None:
        raise UsageError("no data: give --data FILE with a column time or measurement")
    targets = read_targets(options.data, deck, roles.inputs)
    if options.test is not None:
        return targets, read_targets(options.test, deck, roles.inputs)
    if options.split is None:
        return targets, None
    waves = [own for own in targets if isinstance(own, WaveTarget)]
    held = held_out(np.zeros(len(waves)), options.split, np.random.default_rng((options.seed, 5)), "waveforms")
    train, test = ([own for own, out in zip(waves, held.tolist()) if out is which] for which in (False, True))
    return train, test


def _timed(options: Any, deck: Deck, roles: Roles, targets: Targets) -> TimedDeck:
    """The deck, with run times that cover its targets."""
    from circuitsim.fitting import TimedDeck, WaveTarget

    ends = [float(own.times[-1]) for own in targets if isinstance(own, WaveTarget)]
    stop = max(ends) if ends and not options.steady else None
    return TimedDeck(deck, roles, options.steady, stop, options.tolerance)


def _summary(fit: WaveformFit, first: Any, history: History) -> list[str]:
    """The parameters and measurements before and after, as columns."""
    from circuitsim.fitting import MeasureTarget

    rows = [
        [name, f"{old:.6g}", f"{new:.6g}", "" if low < new < high else "on its bound"]
        for name, old, new, low, high in zip(
            fit.timed.names, first.tolist(), fit.values().tolist(), fit.timed.low.tolist(), fit.timed.high.tolist()
        )
    ]
    before, after = fit.loss(0, fit.run(0, first)), fit.measured(fit.samples.tolist())
    rows.append(["loss", f"{history.rows[0]['loss']:.6g}", f"{after['loss']:.6g}", ""])
    asked = {own.name: own.asked() for own in fit.targets if isinstance(own, MeasureTarget)}
    rows += [[name, f"{before.measured[name]:.6g}", f"{after[name]:.6g}", word] for name, word in asked.items()]
    if not asked:
        rows.append(["rms", f"{before.measured['rms']:.6g}", f"{after['rms']:.6g}", "of the deviations"])
    return list(table(["number", "before", "after", ""], rows))


SAMPLES = 64
"""Default number of samples, whose mean shows each method's bias."""

SHOWN = 12
"""Number of elements in the table of derivatives."""


COLUMNS = ("method", "strength", "norm", "relative_error", "cosine", "kinks")
"""What is compared of a gradient: its error relative to the exact one and its cosine with it; ``kinks`` over all
samples, None where unknown."""

STRENGTH_NAMES = ("beta", "eta", "gamma", "epsilon")


def compare(options: Options, given: set[str]) -> str:
    """The gradients of the mean loss over the first samples, at the deck's values, as ``options.compare`` says.

    Implicit differentiation is exact; relative errors and cosines of the other methods refer to it. Methods that do not
    apply to the circuit are left out with a note.

    Parameters
    ----------
    options : Options
    given : set of str
        Names of the options given: ``batch`` samples are used, and only one ``variant`` if it is among them.

    Raises
    ------
    ConvergenceError
        A sample without a certified operating point.
    """
    if options.data is not None and is_over_time(options.data):
        raise UsageError(
            "--compare: not for waveforms (data with a column time or measurement), whose gradient is exact"
        )
    setting = setting_of(options)
    report(setting.warnings)
    count = options.batch if "batch" in given else SAMPLES
    x, y = (array[:count] for array in setting.samples[:2])
    free = setting.block.relax(x)
    if not free.certified.all():
        raise ConvergenceError(f"{(~free.certified).sum()} of {len(x)} samples have no certified operating point")
    problem = GradientProblem(setting.block, x, y, setting.loss, free, np.full(len(x), 1.0 / len(x)))
    variants = (options.variant,) if "variant" in given else ("centred", "positive", "negative")
    names, rows, vectors = _names(setting), list[tuple[Any, ...]](), list[np.ndarray]()
    for name, strength, estimate in _estimates(options, setting, problem, variants):
        vectors.append(np.concatenate(list(estimate.parameters.values())))
        exact, found = vectors[0], vectors[-1]
        size, norm, off = (float(np.linalg.norm(vector)) for vector in (exact, found, found - exact))
        cosine = float(found @ exact) / (norm * size) if norm and size else float(norm == size)
        kinks = None if estimate.kinks is None else int(estimate.kinks.changes.sum())
        rows.append((name, strength, norm, off / size if size else float(norm > 0.0), cosine, kinks))
    title, form = setting.block.circuit.title, options.compare
    if form == "json":
        methods = [
            dict(zip(COLUMNS, row)) | {"gradient": dict(zip(names, vector.tolist()))}
            for row, vector in zip(rows, vectors)
        ]
        return json_text({"schema": 2, "title": title, "methods": methods})
    shown = names if form == "csv" else names[:SHOWN]
    header, columns = (*COLUMNS, *shown), (*zip(*rows), *np.transpose(vectors)[: len(shown)].tolist())
    compared = Table(header, ("",) * len(header), columns)
    if form == "csv":
        return compared.csv()
    more = len(names) - SHOWN
    return f"{title}\n{compared.text()}" + f"… and {more} more elements (--compare csv has all)\n" * (more > 0)


def _estimates(
    options: Options, setting: Setting, problem: GradientProblem, variants: tuple[str, ...]
) -> Iterator[tuple[str, str, Estimate]]:
    """(method, its strength, estimate) for implicit differentiation and every other applicable method."""
    without: dict[str, list[str]] = {}
    plans = {"implicit": options.but(method="implicit", kink_share=None)}
    plans |= {f"ep {variant}": options.but(method="ep", variant=variant) for variant in variants}
    for name in ("coupled", "frequency", "agnostic"):
        plans[name] = options.but(method=name, variant="centred", kink_share=None)
    for name, asked in plans.items():
        try:
            estimator, _ = estimator_of(asked, setting)
            estimate = estimator.estimate(problem)
            if not estimate.certified.all():
                raise ConvergenceError("a state is not certified")
        except CircuitError as error:
            if type(error) is UsageError:  # of an option, not of this method and circuit
                raise
            without.setdefault(str(error), []).append(name)
            continue
        if name == "implicit" and estimate.kinks is not None and estimate.kinks.changes.any():
            many, diodes = (estimate.kinks.changes > 0).sum(), estimate.kinks.changes.sum()
            say(
                f"note: implicit is a one-sided derivative: {diodes} diodes of {many} samples are degenerate "
                "(no current, no voltage)"
            )
        strengths = {own: getattr(estimator, own) for own in STRENGTH_NAMES if hasattr(estimator, own)}
        if estimate.beta is not None:
            strengths["beta"] = estimate.beta
        yield name, ", ".join(f"{own} {value:.3g}" for own, value in strengths.items()), estimate
    for why, names in without.items():
        say(f"note: {', '.join(names)} {'is' if len(names) == 1 else 'are'} left out: {why}")


def _names(setting: Setting) -> list[str]:
    """Elements in the order of a gradient: resistors (derivatives by conductance, V²/S), sources (V²/A), parameters of
    devices (V² per unit of their coordinate)."""
    circuit, order = setting.block.circuit, ("resistor", "current source", "parameter")
    names = [a.name for a in setting.roles.trainable]
    return sorted(names, key=lambda name: order.index(circuit[name].kind if name in circuit else "parameter"))
