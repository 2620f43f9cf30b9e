"""Presentation of the results of a transient analysis."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from circuitsim.cli.deck import elsewhere, printed, report
from circuitsim.cli.output import present
from circuitsim.cli.solving import opened
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from circuitsim.analysis import Sweep
    from circuitsim.analysis.probes import Formula, Probe
    from circuitsim.circuit import Circuit
    from circuitsim.formats.result import Result
    from circuitsim.formats.table import Table
    from circuitsim.netlist.deck import Deck
    from circuitsim.small_signal import AcResult
    from circuitsim.time_domain import TransientResult
    from circuitsim.time_domain.fourier import FourierRequest
    from circuitsim.time_domain.measure import Failed


def measured(deck: Deck, found: Sweep | AcResult, own: Sequence[str], asked: Sequence[str]) -> dict[str, float | None]:
    """The deck's measurements and those of ``--measure``; a card without a result fails alone, with a warning."""
    if not own and not asked:
        return {}
    from circuitsim import analyses

    return analyses.measured(deck, found, own, asked, warner(deck))


def present_measured(
    found: Result,
    args: argparse.Namespace,
    tables: Sequence[Table],
    values: Mapping[str, float | None],
    more: Mapping[str, Any] = MappingProxyType({}),
    errors: Mapping[str, float | None] | None = None,
    **settings: Any,
) -> None:
    """`present` a result with measurements and their error bounds: below its table, in JSON, otherwise on a line of
    standard error; with ``--measure`` only the measurements are shown."""
    from circuitsim.time_domain.measure import measurements_table

    if values:
        measured, more = measurements_table(values, errors), {**more, "measurements": dict(values)}
        more |= {} if errors is None else {"measurement_errors": dict(errors)}
        tables = [measured] if args.measure else [*tables, measured]
        settings["whole"] = settings.get("whole", False) and not args.measure
    present(found, args, tables, more, **settings)
    if values and not args.measure and args.format in ("csv", "raw"):
        said = ", ".join(f"{name} = {'failed' if value is None else f'{value:g}'}" for name, value in values.items())
        print(f"measured: {said}", file=sys.stderr)


def warner(deck: Deck) -> Failed:
    """What warns of a measurement without a result."""
    from circuitsim.time_domain.measure import not_measured

    return lambda error: report([not_measured(deck, error)])


def read_shown(args: argparse.Namespace) -> tuple[Deck, list[Probe | Formula]]:
    """The deck, and the requested columns."""
    from circuitsim.analysis.probes import all_probes, parse_probes
    from circuitsim.netlist.deck import OVER_TIME

    if args.format == "raw" and (args.events or args.measure or args.fourier):
        raise UsageError(
            "rawfiles hold waveforms: leave out --events, --measure and --fourier, or choose another --format"
        )
    if args.measure and args.fourier:
        raise UsageError("--measure and --fourier both replace the waveforms: give one of them")
    deck = opened(args, elsewhere)
    columns = args.columns or printed(deck, OVER_TIME)
    return deck, parse_probes(columns, deck.operating_circuit) if columns else [*all_probes(deck.operating_circuit)]


def lower_names(deck: Deck) -> dict[str, float]:
    """Values of the deck's parameters by their names in lower case."""
    return {name.lower(): value for name, value in deck.parameters.items()}


def show(
    args: argparse.Namespace,
    deck: Deck,
    probes: Sequence[Probe | Formula],
    found: TransientResult,
    measured: Sequence[str],
    more: Mapping[str, Any],
    harmonics: Sequence[FourierRequest] = (),
    outside: Sequence[str] = (),
) -> None:
    """Print waveforms, events, measurements or harmonics; ``more`` is for JSON in addition to certificate and energies,
    measurements ``outside`` the run failed."""
    from circuitsim.time_domain.fourier import fourier_table, series
    from circuitsim.time_domain.measure import measure_all
    from circuitsim.time_domain.measure_gradients import measurement_error
    from circuitsim.time_domain.result import events_table, waveform_table

    names = lower_names(deck)
    waves = waveform_table(found, probes, names)
    values = measure_all(found, measured, names, warner(deck)) | dict.fromkeys(text.split()[0] for text in outside)
    errors = None
    if found.errors is not None:
        errors = {text.split()[0]: measurement_error(found, text, names) for text in measured}
    spectra = [own for request in harmonics for own in series(found, request, names)]
    tables, proof = [events_table(found) if args.events else waves], found.checks() | dict(more)
    if spectra:
        proof["fourier"] = [own.to_dict() for own in spectra]
        tables = [fourier_table(spectra)] if args.fourier else [*tables, fourier_table(spectra)]

    def figure() -> Figure:
        from circuitsim.plotting.curves import plot_waveforms

        drawn = waveform_table(found, probes, names, drawn=True)
        return plot_waveforms(found.circuit.title, drawn, found.conduction())

    present_measured(found, args, tables, values, proof, errors, figure=figure, plot="Transient Analysis")
    for own in spectra:
        print(
            f"{own.quantity} at {own.frequency:g} Hz: mean {own.mean:g}, first harmonic {own.amplitude[0]:g}, total "
            f"harmonic distortion {100.0 * own.distortion:.4g} %",
            file=sys.stderr,
        )


def answerable(
    circuit: Circuit,
    shown: tuple[float, float],
    failed: Failed,
    texts: Sequence[str],
    names: Mapping[str, float],
    varied: Sequence[str] = (),
) -> tuple[list[str], list[str]]:
    """The measurements of a deck that a run can have, and those that it cannot; ``failed`` receives their errors.
    ``varied``: names whose values vary between runs."""
    from circuitsim.time_domain.measure import MeasurementError, after_others, check_measurements, name_and_words

    found: list[str] = []
    outside: list[str] = []
    for text in after_others(texts):
        missing = name_and_words(text)[1] & {name_and_words(own)[0] for own in outside}
        try:
            if missing:
                raise MeasurementError.of(text, f"{', '.join(missing)} is not measured")
            check_measurements(circuit, shown, [*found, text], names, varied)
        except MeasurementError as error:
            failed(error)
            outside.append(text)
        else:
            found.append(text)
    return found, outside


def harmonics_requested(args: argparse.Namespace, deck: Deck, stop: float | None) -> list[FourierRequest]:
    """The Fourier series of ``--fourier``, or else of the deck's ``.four`` cards; a card that no run, or none up to
    ``stop`` s, could have is left out with a warning.

    Raises
    ------
    UsageError
        The same for ``--fourier``.
    """
    from circuitsim.time_domain.deck import fourier_requested
    from circuitsim.time_domain.fourier import check_request, parse_request

    found = []
    for text in args.fourier or fourier_requested(deck):
        try:
            request = parse_request(text, deck.operating_circuit, lower_names(deck))
            check_request(request, math.inf if stop is None else stop)
        except UsageError as error:
            if args.fourier:
                raise
            print(f"warning: .four is left out: {error}", file=sys.stderr)
        else:
            found.append(request)
    return found
