"""``circuitsim train circuit DECK`` with waveforms or measurements as targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from circuitsim.cli.deck import elsewhere
from circuitsim.cli.models import family_options, optimizer_of, plan_of, schedule_of
from circuitsim.errors import UsageError
from circuitsim.training.experiment import Experiment, HeldOut
from circuitsim.training.history import History

if TYPE_CHECKING:
    from circuitsim.fitting import TimedDeck, WaveformFit
    from circuitsim.fitting.targets import Targets
    from circuitsim.netlist.deck import Deck
    from circuitsim.netlist.roles import Roles

RATE = 0.05
"""Learning rate: relative change of a parameter in one step of Adam."""
OTHER = (
    "gain",
    "loss",
    "low",
    "high",
    "temperature",
    "method",
    "variant",
    "nudge",
    "beta",
    "kink_share",
    "eta",
    "gamma",
    "times",
    "epsilon",
    "outputs",
    "lr_current",
    "lr_device",
    "uncertified",
)
"""Options for static data only."""


def build(options: Any, deck: Deck, roles: Roles, notes: Sequence[Any]) -> Experiment:
    """A run from the options of ``train circuit``."""
    import numpy as np

    from circuitsim._files import atomic_write
    from circuitsim.fitting import MeasureTarget, WaveformFit
    from circuitsim.fitting.pictures import draw_fit

    known = family_options(options.model)
    wrong = [f"--{name.replace('_', '-')}" for name in OTHER if getattr(options, name) != known[name].default]
    if wrong:
        raise UsageError(f"{', '.join(wrong)}: not for waveforms (data with a column time or measurement)")
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
    import numpy as np

    from circuitsim.fitting import WaveTarget, read_targets

    if options.data is None:
        raise UsageError("no data: give --data FILE with a column time or measurement")
    targets = read_targets(options.data, deck, roles.inputs)
    if options.test is not None:
        return targets, read_targets(options.test, deck, roles.inputs)
    if options.split is None:
        return targets, None
    waves = [own for own in targets if isinstance(own, WaveTarget)]
    held = round(options.split * len(waves))
    if not 0 < held < len(waves):
        raise UsageError(f"{len(waves)} waveforms cannot be split with a fraction of {options.split:g} held out")
    order = np.random.default_rng((options.seed, 5)).permutation(len(waves)).tolist()
    return [waves[k] for k in sorted(order[held:])], [waves[k] for k in sorted(order[:held])]


def _timed(options: Any, deck: Deck, roles: Roles, targets: Targets) -> TimedDeck:
    """The deck, with run times that cover its targets."""
    from circuitsim.fitting import TimedDeck, WaveTarget

    ends = [float(own.times[-1]) for own in targets if isinstance(own, WaveTarget)]
    stop = max(ends) if ends and not options.steady else None
    return TimedDeck(deck, roles, options.steady, stop, options.tolerance)


def _summary(fit: WaveformFit, first: Any, history: History) -> list[str]:
    """The parameters and measurements before and after, as columns."""
    from circuitsim.fitting import MeasureTarget
    from circuitsim.formats.columns import table

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
