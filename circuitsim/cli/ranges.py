"""Commands with a row for each value, time or frequency: ``sweep``, ``tran``, ``ac``, and their measurements."""

from __future__ import annotations

import argparse
import cmath
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from circuitsim.analysis.probes import Formula, Probe, all_probes, parse_probes
from circuitsim.analysis.sweep import Sweep, sweep
from circuitsim.circuit import Circuit
from circuitsim.cli.deck import alone, elsewhere, opened, printed, read, report
from circuitsim.cli.options import command, ranged, spice_number
from circuitsim.cli.output import check_targets, present
from circuitsim.cli.progress import INTERRUPTED, Interrupt, LateProgress, workers_of
from circuitsim.errors import CircuitError, ConvergenceError, UsageError
from circuitsim.formats.rawfile import swept
from circuitsim.formats.result import Result
from circuitsim.formats.table import Table
from circuitsim.netlist.deck import (
    OVER_TIME,
    STEADY,
    TIME,
    DcSweep,
    Deck,
    SmallSignal,
    Spacing,
    Transient,
    Vary,
    measurements_of,
    memory,
    ranges_of,
    steps_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from circuitsim.time_domain import TransientResult
    from circuitsim.time_domain.fourier import FourierRequest
    from circuitsim.time_domain.measure import Failed, MeasurementError


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
        print(f"measured: {_said(values)}", file=sys.stderr)


def _said(values: Mapping[str, float | None]) -> str:
    """Measurements in a line."""
    words = ("failed" if value is None or value != value else f"{value:g}" for value in values.values())
    return ", ".join(map("{} = {}".format, values, words))


def _measured(deck: Deck, found: Any, own: Sequence[str], asked: Sequence[str]) -> dict[str, float | None]:
    """See `circuitsim.analyses.measured`."""
    if not own and not asked:
        return {}
    from circuitsim.analyses import measured

    return measured(deck, found, own, asked, warner(deck))


def warner(deck: Deck) -> Failed:
    """What warns of a measurement without a result."""
    from circuitsim.time_domain.measure import not_measured

    return lambda error: report([not_measured(deck, error)])


def read_shown(args: argparse.Namespace) -> tuple[Deck, list[Probe | Formula]]:
    """The deck, and the requested columns."""
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
    from circuitsim.time_domain.gradients import measurement_error
    from circuitsim.time_domain.measure import measure_all
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


def run_all(args: argparse.Namespace, deck: Deck, vary: Mapping[Any, Any], columns: str | None, **options: Any) -> int:
    """Run transients of a deck at all combinations of varied values, and print the requested output: waveforms, changes
    of diodes, or measurements.

    Raises
    ------
    ConvergenceError
        Some run failed; the others are printed.
    """
    from circuitsim.time_domain import transient_sweep
    from circuitsim.time_domain.deck import setting

    own = setting(deck, options.get("step"), options.get("stop"), options.get("initial"))
    span, moving = (own.begin, own.grid.stop), [*map(str, vary), *deck.parameters]  # parameters may depend on others
    wanted, _ = answerable(own.circuit, span, warner(deck), measurements_of(deck, "tran"), lower_names(deck), moving)
    wanted += args.measure
    pool = workers_of(args.workers, getattr(args, "dask", None))
    with Interrupt() as interrupt, LateProgress("tran") as line, pool as (workers, executor):
        found = transient_sweep(
            deck,
            vary,
            columns,
            wanted,
            tolerance=args.tolerance,
            progress=interrupt.watch(line),
            workers=workers or 1,
            executor=executor,
            **options,
        )
    report(found.measured.warnings)
    if getattr(args, "events", False):
        present(found, args, [found.events])
    else:
        present_runs(found.measured if args.measure else found.waves, found.measured, args)
    if interrupt.asked:
        print(f"interrupted after {len(found.measured)} runs; results so far", file=sys.stderr)
    check_runs(found.measured, "runs ended with an error")
    return INTERRUPTED if interrupt.asked else 0


def present_runs(
    chosen: Sweep, measured: Sweep, args: argparse.Namespace, figure: Callable[[], Figure] | None = None
) -> None:
    """Write the columns of several runs, or with ``--measure`` their measurements; those of the deck are a table below,
    in JSON, otherwise a line per run on standard error."""
    columns = {} if args.measure else measured.to_dict()["columns"]
    more = {"measurements": columns} if columns else {}
    tables = [found.tables()["points"] for found in (chosen, measured)[: 1 + bool(columns)]]
    present(chosen, args, tables, more, figure=figure, whole=True)
    failed = {failure.row for failure in measured.failures}
    for row in range(len(measured)) if columns and args.format in ("csv", "raw") else ():
        if row not in failed:
            values = {name: float(column[row]) for name, column in measured.columns.items()}
            print(f"measured at {_place(measured, row)}: {_said(values)}", file=sys.stderr)


def check_runs(found: Sweep, what: str) -> None:
    """Refuse a result with failed runs or points.

    Raises
    ------
    ConvergenceError
        The number and kind of failures, and the first one.
    """
    if found.failures:
        first = found.failures[0]
        count = f"{len(found.failures)} of {len(found)} {what}"
        raise ConvergenceError(f"{count}; the first, at {_place(found, first.row)}: {first.error}")


def _place(runs: Sweep, row: int) -> str:
    """The values of a run."""
    return ", ".join(f"{name}={values[row]:g}" for name, values in runs.axes.items()) or "the deck's values"


@command(
    """
@vary element, parameter, temp or time
@columns
@measure dc: 'vth FIND v(in) WHEN v(out)=1'
@solver
@workers this one
@dask
@checkpoint
@deck
@tolerance
@format csv table json raw
@binary
@output the result
@plot plot the columns
""",
    """\
Without --vary: the deck's .dc, .step and .temp, the first name fastest. A point without a solution is
a row with its status and empty columns (exit code 3). Waveforms: circuitsim tran --vary.

examples:
  circuitsim sweep netlists/limiter-two-sided.cir --vary V1=-10:10:0.5 --columns 'v(out)'
  circuitsim sweep netlists/divider.cir --vary R1=1k,2k,5k --format table --plot a.png
  circuitsim sweep netlists/sweep-dead-zone.cir --format raw --output zone.raw
""",
)
def run_sweep(args: argparse.Namespace) -> int:
    """Solve all points and print them as rows."""
    check_targets(args)
    vary = varied(args.vary)
    deck = read(args)
    if not vary and runs_over_time(deck):
        return _over_time(args, deck)
    texts = [] if vary else measurements_of(deck, "dc")
    report([w for w in deck.notes if not texts or not set(w.names) & {".meas", ".measure"}], args.verbose)
    asked = vary or ranges_of(deck)
    for card in (
        [] if vary or TIME in asked or not alone() else [card for card in deck.analyses if isinstance(card, Transient)]
    ):
        print(f"note: .tran (line {card.location.line}) is not run beside .dc; --vary time=… runs it", file=sys.stderr)
    columns = args.columns or printed(deck, OVER_TIME if TIME in asked else STEADY)
    with LateProgress("sweep") as line, workers_of(args.workers, args.dask) as (workers, executor):
        found = sweep(
            deck, asked, columns, args.solver, args.tolerance, line.update, workers or 1, executor, args.checkpoint
        )
    report([w for w in found.warnings if w not in deck.notes], args.verbose)
    values = _measured(deck, found, texts, args.measure)
    present_measured(found, args, [found.tables()["points"]], values, whole=True)
    check_runs(found, "points have no operating point")
    return 0


def runs_over_time(deck: Deck) -> bool:
    """Whether the deck's sweep is its ``.tran`` card, for a circuit that stores energy."""
    sweeps = [card for card in deck.analyses if isinstance(card, DcSweep)]
    cards = [card for card in deck.analyses if isinstance(card, Transient)]
    return len(cards) == 1 and not sweeps and bool(memory(deck.operating_circuit))


def _over_time(args: argparse.Namespace, deck: Deck) -> int:
    """The deck's ``.tran``, within its ``.step`` cards."""
    report([note for note in deck.notes if not elsewhere(note)], args.verbose)
    if args.solver != "auto" or args.checkpoint:
        option = "--checkpoint" if args.checkpoint else "--solver"
        raise UsageError(f"{option} is for operating points; this deck's .tran runs over time: leave it out")
    return run_all(args, deck, steps_of(deck), args.columns or printed(deck, OVER_TIME))


def varied(texts: Sequence[str]) -> Vary:
    """What ``--vary`` options vary."""
    vary: Vary = dict(_named(text) for text in texts)
    if len(vary) < len(texts):
        raise UsageError("--vary names one thing twice; give it one range or one list")
    return vary


def _named(text: str) -> tuple[str, tuple[float, ...]]:
    """Name and values of one ``--vary``."""
    name, equals, values = text.partition("=")
    if not equals or not name.strip() or not values.strip():
        raise UsageError(f"--vary {text!r}: write NAME=start:stop:step or NAME=a,b,c, for instance V1=0:5:0.1")
    return name.strip(), ranged("--vary", values.strip(), text)


def note_steps(deck: Deck, analysis: str) -> None:
    """Note that an analysis of one circuit ignores ``.step``."""
    if steps_of(deck):
        print(f"note: {analysis} uses the values on the cards; .step and .temp are ignored", file=sys.stderr)


@command(
    """
--stop TIME  end of the run: 20m (the deck's .tran)
--step TIME  output step (the deck's .tran)
--initial NAME=VALUE  capacitor voltage or inductor current at time 0 (repeatable)
--steady  one period of the periodic steady state
--period TIME  period of --steady (least common period of the sources)
--points N  output times of --steady (1001)
@vary element, parameter or temp
--method METHOD {exact implicit}  {0} (exact where it applies)
--accuracy X = 1e-4  implicit method: relative error of the waveforms (1e-4)
@columns
--events  show the changes of diodes and switches instead
@measure tran: 'ripple PP v(out) FROM=1m'
--fourier 'FREQ …'  show harmonics, as .four: '1k v(out)', '1k 20 5 v(out)' (repeatable)
@workers this one
@deck
@tolerance
@format csv table json raw
@binary
@output the result
@plot plot columns and states of diodes
""",
    """\
Circuits with ideal or piecewise-linear diodes are solved exactly between events; smooth devices, controlled
sources, or more than 60 capacitors and inductors need the implicit method. A run starts at the operating
point of time 0, with UIC at the ic= values. Ctrl-C prints the results so far.

examples:
  circuitsim tran netlists/half-wave-smoothed.cir --columns 'v(in) v(out) i(D1)' --plot waves.png
  circuitsim tran netlists/boost-converter.cir --measure 'ripple PP v(out) FROM=3m'
  circuitsim tran netlists/boost-converter.cir --steady --columns 'v(out) i(L1)' --plot steady.png
""",
)
def run_tran(args: argparse.Namespace) -> int:
    """Run the transient analysis and print the waveforms."""
    from circuitsim.time_domain import ImplicitResult, TransientResult, transient
    from circuitsim.time_domain.deck import fourier_requested, setting
    from circuitsim.time_domain.measure import check_measurements

    check_steady(args)
    deck, probes = read_shown(args)
    if args.steady:
        return run_steady(args, deck, probes)
    vary = varied(args.vary) or steps_of(deck)
    if vary and args.fourier:
        raise UsageError("--fourier is for one run: leave out --vary and .step")
    if vary and fourier_requested(deck):
        print("note: .four is for one run; it is ignored for several", file=sys.stderr)
    run: dict[str, Any] = {"stop": args.stop, "step": args.step, "initial": initial_values(args.initial)}
    how: dict[str, Any] = {"method": args.method, "accuracy": args.accuracy}
    if vary:
        return run_all(args, deck, vary, " ".join(map(str, probes)), **run, **how)
    own, names = setting(deck, **run), lower_names(deck)
    harmonics = harmonics_requested(args, deck, own.grid.stop)
    span = own.begin, own.grid.stop
    wanted, outside = answerable(own.circuit, span, warner(deck), measurements_of(deck, "tran"), names)
    wanted += args.measure
    check_measurements(own.circuit, span, wanted, names)
    with Interrupt() as interrupt, LateProgress("tran") as line:
        try:
            found = transient(deck, **run, tolerance=args.tolerance, **how, progress=interrupt.watch(line))
        except CircuitError as error:
            line.close()
            if isinstance(partial := error.partial_result, TransientResult):
                show(args, deck, probes, partial, _measurable(deck, partial, wanted, names), {})
                print(f"stopped at {partial.stop:g} s by an error; results so far", file=sys.stderr)
            raise
        more, ended = dict[str, float | None](), interrupt.asked
        if not ended and isinstance(found, ImplicitResult):
            more["difference"] = found.difference
    if ended:
        wanted, harmonics = _measurable(deck, found, wanted, names), []
    show(args, deck, probes, found, wanted, more, harmonics, outside)
    tell_method(args, found)
    if ended:
        print(f"interrupted at {found.stop:g} s; results so far", file=sys.stderr)
        return INTERRUPTED
    return 0


def check_steady(args: argparse.Namespace) -> None:
    """Refuse options of a run together with ``--steady``, and those of ``--steady`` without it."""
    run = {"--stop": args.stop, "--step": args.step, "--vary": args.vary, "--method": args.method}
    period = {"--period": args.period, "--points": args.points}
    wrong = next((name for name, value in (run if args.steady else period).items() if value), None)
    if wrong is not None and args.steady:
        raise UsageError(f"{wrong} is for a run from time 0; --steady takes --period and --points")
    if wrong is not None:
        raise UsageError(f"{wrong} is for the periodic steady state: add --steady")


def run_steady(args: argparse.Namespace, deck: Deck, probes: Sequence[Probe | Formula]) -> int:
    """Find the periodic steady state and print one period of it."""
    from circuitsim.time_domain import steady_state

    note_steps(deck, "--steady")
    harmonics = harmonics_requested(args, deck, None)
    initial, period = initial_values(args.initial), args.period
    points = 1001 if args.points is None else args.points
    with LateProgress("steady") as line:
        found = steady_state(
            deck,
            period=period,
            initial=initial,
            points=points,
            tolerance=args.tolerance,
            progress=line.update,
            accuracy=args.accuracy,
        )
    more = {"difference": found.difference} if found.reason else {}
    show(args, deck, probes, found, args.measure, more, harmonics)
    tell_method(args, found)
    return 0


def tell_method(args: argparse.Namespace, found: TransientResult) -> None:
    """Report why the run needed the implicit method, and its warnings."""
    if found.reason:
        print(f"note: implicit method: {found.reason}", file=sys.stderr)
    report(found.warnings, args.verbose)


def _measurable(deck: Deck, found: TransientResult, wanted: Sequence[str], names: Mapping[str, float]) -> list[str]:
    """The measurements that need only the completed part of a run."""
    return answerable(found.circuit, (float(found.times[0]), found.stop), warner(deck), wanted, names)[0]


def initial_values(pairs: list[str]) -> dict[str, float] | None:
    """The values of ``--initial``, by element."""
    found = {}
    for text in pairs:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--initial {text!r}: write NAME=VALUE, for instance C1=5")
        found[name.strip()] = spice_number(f"--initial {name.strip()}=", value)
    return found or None


@command(
    """
--from HERTZ as first  first frequency (the deck's .ac, or 1)
--to HERTZ as last  last frequency (the deck's .ac, or 1MEG)
--points N  points per decade (20)
--linear  linear spacing; --points is the total
--source NAME[=A[<DEGREES]]  amplitude of a source, others 0 (repeatable; AC of the cards)
--columns LIST  v(node), v(a,b), i(element) (.print ac, or all)
--over QUANTITY  divide by this quantity: transfer functions
@measure ac: 'f3 WHEN vdb(out)=-3 FALL=1'
@vary element, parameter or temp
--poles  show the poles instead
@deck
@tolerance
@format csv table json raw
@binary
@output the result
@plot draw a Bode plot
""",
    """\
Small-signal analysis at the operating point: ideal diodes keep their state, smooth devices are linearised.
Columns are magnitude, decibels and degrees. Measurements accept vm, vdb, vp, vr, vi, the same of i, and
db, mag, ph, re, im of a quotient.

examples:
  circuitsim ac netlists/lowpass-butterworth.cir --columns 'v(out)' --over 'v(in)' --plot bode.png
  circuitsim ac netlists/lowpass-butterworth.cir --measure 'f3 WHEN db(v(out)/v(in))=-9 FALL=1'
  circuitsim ac netlists/lowpass-butterworth.cir --from 10 --to 100k --points 5 --format table
  circuitsim ac netlists/lowpass-butterworth.cir --poles
""",
)
def run_ac(args: argparse.Namespace) -> int:
    """Run the AC analysis and print the responses, or the poles."""
    from circuitsim.small_signal import ac
    from circuitsim.small_signal.frequency import phasor_columns, response_table

    vary, deck = varied(args.vary), opened(args, elsewhere)
    if args.poles:
        note_steps(deck, "ac --poles")
        return _poles(args, deck)
    columns = args.columns or printed(deck, ("ac",), amplitudes) or _all(deck)
    if vary := vary or steps_of(deck):
        return _at_values(args, deck, vary, columns)
    probes = parse_probes(columns, deck.operating_circuit)
    over = parse_probes(args.over, deck.operating_circuit)[0] if args.over else None
    sources = dict(_source(text) for text in args.source) or None
    found = ac(deck, _frequencies(args), sources, args.tolerance)
    _warn(found.kinks)
    table, title = response_table(found, probes, over), found.circuit.title  # type: ignore[arg-type]
    values = _measured(deck, found, measurements_of(deck, "ac"), args.measure)

    def figure() -> Figure:
        from circuitsim.plotting.curves import plot_bode

        return plot_bode(title, table)

    def raw() -> str:
        return swept(title, Table(*zip(*phasor_columns(found, probes, over))), "AC Analysis")  # type: ignore[arg-type]

    present_measured(found, args, [table], values, found.checks(), figure=figure, raw=raw)
    return 0


def _at_values(args: argparse.Namespace, deck: Deck, vary: Vary, columns: str) -> int:
    """The responses at all combinations of varied values."""
    from circuitsim.small_signal import ac_sweep
    from circuitsim.time_domain.measure import EventError

    if args.format == "raw":
        raise UsageError("a rawfile holds one response: choose another --format, or leave out .step and --vary")
    texts, said = [*measurements_of(deck, "ac"), *args.measure], set[str]()

    def failed(error: MeasurementError) -> None:
        if error.text in args.measure and not isinstance(error, EventError):
            raise error
        if str(error) not in said:
            warner(deck)(error)
        said.add(str(error))

    sources = dict(_source(text) for text in args.source) or None
    with LateProgress("ac") as line:
        found = ac_sweep(
            deck, vary, columns, args.over, texts, _frequencies(args), sources, args.tolerance, failed, line.update
        )
    measured = found.measured
    present_runs(measured if args.measure else found.responses, measured, args, None if args.measure else found.plot)
    check_runs(measured, "runs have no response")
    return 0


def _poles(args: argparse.Namespace, deck: Deck) -> int:
    from circuitsim.small_signal import poles

    if args.plot:
        raise UsageError("--plot draws responses; leave out --poles")
    if args.format == "raw":
        raise UsageError("a rawfile holds responses: leave out --poles, or choose another --format")
    found = poles(deck)
    _warn(found.kinks)
    present(found, args)
    return 0


def amplitudes(words: str) -> str:
    """``vm(out) vp(out) vdb(out)`` are all the amplitude ``v(out)``; each is listed once."""
    plain = re.sub(r"\b([vi])(?:m|p|db|r|i)\(", r"\1(", words, flags=re.IGNORECASE)
    return " ".join(dict.fromkeys(plain.split()))


def _all(deck: Deck) -> str:
    return " ".join(f"v({node})" for node in deck.operating_circuit.node_names[1:])


def _warn(kinks: Sequence[str]) -> None:
    if kinks:
        print(
            f"warning: {', '.join(kinks)} {'is' if len(kinks) == 1 else 'are'} degenerate at the operating point "
            "(no current, no voltage): the result holds for one of two states",
            file=sys.stderr,
        )


def _frequencies(args: argparse.Namespace) -> np.ndarray | None:
    """The frequencies of the options; None where the deck decides."""
    from circuitsim.small_signal.deck import DEFAULT, frequencies

    if (args.first is None) != (args.last is None):
        raise UsageError("give both --from and --to")
    if args.first is None:
        if args.points is not None or args.linear:
            raise UsageError("--points and --linear need --from and --to")
        return None
    first, last, points = args.first, args.last, DEFAULT.points if args.points is None else args.points
    if points < 1 or last < first or first < 0.0 or (first == 0.0 and not args.linear):
        raise UsageError("--from must be below --to, and above 0 unless --linear; --points must be at least 1")
    spacing = Spacing.LINEAR if args.linear else Spacing.DECADE
    return frequencies(SmallSignal(spacing, points, (first, last), DEFAULT.location))


def _source(text: str) -> tuple[str, complex]:
    """``V1``, ``V1=2`` or ``V1=2<90``."""
    import math

    name, _, amplitude = text.partition("=")
    if not name.strip():
        raise UsageError(f"--source {text!r}: write NAME, NAME=MAGNITUDE or NAME=MAGNITUDE<DEGREES")
    magnitude, _, degrees = amplitude.partition("<")
    size = spice_number("--source", magnitude) if amplitude else 1.0
    return name.strip(), cmath.rect(size, math.radians(spice_number("--source", degrees) if degrees else 0.0))
