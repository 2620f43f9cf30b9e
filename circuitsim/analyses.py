"""`run`: every analysis that a deck requests."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

from circuitsim.analysis.solve import solve
from circuitsim.analysis.sweep import Sweep, sweep
from circuitsim.arguments import NAMES, checked, instance
from circuitsim.errors import CircuitError, ResultWarning
from circuitsim.formats import Result
from circuitsim.measurements import (
    Abscissa,
    EventError,
    Failed,
    MeasurementError,
    OverSweep,
    measure_all,
    measure_each,
    not_measured,
)
from circuitsim.netlist.deck import (
    OVER_TIME,
    Deck,
    analyses_of,
    columns_of,
    lowered,
    measurements_of,
    steps_of,
    transfers_of,
)
from circuitsim.small_signal import AcResult, ac, ac_sweep
from circuitsim.small_signal.sensitivity import sensitivity, transfer_function
from circuitsim.small_signal.stepped import OverFrequency
from circuitsim.time_domain import TransientResult, transient, transient_sweep
from circuitsim.time_domain.fourier import requests, series
from circuitsim.time_domain.signals import OverTime


class Results(dict[str, Any]):
    """Results by the name of the card that requests them: ``op``, ``dc``, ``tran``, ``meas``, ``four``,
    ``ac``, ``tf``, ``sens``."""

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {result!r}" for name, result in self.items())

    def _repr_html_(self) -> str:
        found = [one for result in self.values() for one in (result if isinstance(result, list) else [result])]
        return "".join(one._repr_html_() for one in found if isinstance(one, Result))


@checked(deck=instance("a deck: circuitsim.load(path) reads one", Deck), leave=NAMES)
def run(deck: Deck, leave: Collection[str] = (), **options: Any) -> Results:
    """Run every analysis that a deck requests, in the order of its cards; by default the operating point.

    Parameters
    ----------
    deck : Deck
        ``.step`` and a ``.temp`` of several values are outer loops of ``.dc``, ``.tran`` and ``.ac``; all other
        analyses use the values as written.
    leave : collection of str, optional
        Analyses to skip, by the names of their cards.
    **options
        ``tolerance``, for all analyses.

    Returns
    -------
    dict
        ``op``: `OperatingPoint`; ``dc``: `Sweep`, of several axes with its ``measured``; ``tran``: `TransientResult`,
        or with ``.step`` a `TransientSweep`; ``meas``: value or None by name (``ac x`` where another analysis has an
        ``x``); ``four``: list of `FourierSeries`; ``ac``: `AcResult`, or with ``.step`` an `AcSweep`; ``tf``: list of
        `Transfer`; ``sens``: `Sensitivity`.

    Raises
    ------
    CircuitError
        The first error of an analysis; its ``partial_result`` has the results of all others.

    Examples
    --------
    >>> from circuitsim import loads, run
    >>> deck = loads('''charging
    ... V1 in 0 5
    ... R1 in out 1k
    ... C1 out 0 1u ic=0
    ... .tran 10u 10m uic
    ... .meas tran half WHEN v(out)=2.5
    ... ''')
    >>> found = run(deck)
    >>> list(found), round(1e3 * found["meas"]["half"], 6)  # R C ln 2, ms
    (['tran', 'meas'], 0.693147)
    """
    calls: dict[str, Callable[..., Any]] = {
        "op": solve,
        "dc": sweep,
        "tran": _over_time,
        "ac": _over_frequency,
        "tf": _transfers,
        "sens": sensitivity,
    }
    found, failed = Results(), None
    for name in analyses_of(deck):
        if name in leave:
            continue
        try:
            result = calls[name](deck, **options)
        except CircuitError as error:
            failed = failed or error
            result = error.partial_result
        if result is not None:
            found[name] = result
        if isinstance(result, TransientResult | AcResult | Sweep) and (texts := measurements_of(deck, name)):
            values = measured(deck, result, texts)
            if isinstance(values, Sweep):
                found[name].measured = values
            else:
                held = found.setdefault("meas", {})
                held.update({f"{name} {key}" if key in held else key: value for key, value in values.items()})
        if isinstance(result, TransientResult):
            for request in requests(deck, (), result.stop):
                found.setdefault("four", []).extend(series(result, request, lowered(deck)))
    if failed is not None:
        failed.partial_result = found
        raise failed
    return found


def _over_time(deck: Deck, **options: Any) -> Any:
    """Waveforms, one run per value of ``.step``."""
    steps = steps_of(deck)
    if steps:
        return transient_sweep(deck, steps, columns_of(deck, OVER_TIME), **options)
    return transient(deck, **options)


def _over_frequency(deck: Deck, **options: Any) -> Any:
    """Responses, one run per value of ``.step``."""
    return ac_sweep(deck, failed=refusing(deck), **options) if steps_of(deck) else ac(deck, **options)


def _transfers(deck: Deck, **options: Any) -> list[Any]:
    return [transfer_function(deck, *pair, **options) for pair in transfers_of(deck)]


def refusing(deck: Deck, asked: Sequence[str] = ()) -> Failed:
    """What raises the errors of the measurements ``asked``, unless their events do not happen; of all others it warns,
    once in each text."""
    said = set[str]()

    def refuse(error: MeasurementError) -> None:
        if error.text in asked and not isinstance(error, EventError):
            raise error
        if str(error) not in said:
            warnings.warn(ResultWarning([not_measured(deck, error)]), stacklevel=6)
        said.add(str(error))

    return refuse


def measured(
    deck: Deck, found: TransientResult | AcResult | Sweep, own: Sequence[str], asked: Sequence[str] = ()
) -> dict[str, float | None] | Sweep:
    """Measurements of an analysis result; of a sweep of several axes a row for all values of those but the first.

    Parameters
    ----------
    deck : Deck
    found : TransientResult, AcResult or Sweep
    own : sequence of str
        Those of the deck: a failed one is None, with a warning.
    asked : sequence of str
        Further ones, which may refer to those of the deck.

    Raises
    ------
    UsageError
        One of ``asked`` failed.
    """
    texts = [*own, *asked]
    if not texts:
        return {}
    if isinstance(found, Sweep) and len(found.shape) > 1:
        return measure_each(deck, found, texts, asked)
    if isinstance(found, Sweep):
        over: Abscissa = OverSweep(deck, found)
    else:
        over = OverFrequency(found) if isinstance(found, AcResult) else OverTime(found)
    return measure_all(over, texts, lowered(deck), refusing(deck, asked))
