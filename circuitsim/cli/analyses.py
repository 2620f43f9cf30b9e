"""Commands with a row for each value, time or frequency, and their measurements (``sweep``, ``tran``, ``ac``); commands
about the values of a circuit (``sensitivity``, ``montecarlo``, ``worst-case``, ``optimise``, ``curve``).
"""

from __future__ import annotations

import math
import re
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import isclose
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from circuitsim._files import atomic_file
from circuitsim.analysis.probes import all_probes, drawn_probes, parse_probes
from circuitsim.analysis.sweep import Sweep, sweep
from circuitsim.cli import command, ranged
from circuitsim.cli.common import (
    INTERRUPTED,
    Interrupt,
    alone,
    called,
    check_target,
    check_targets,
    elsewhere,
    late_progress,
    opened,
    present,
    printed,
    read,
    report,
    save,
    say,
    working,
)
from circuitsim.errors import CircuitError, ConvergenceError, UsageError
from circuitsim.formats import Result, Table, csv, dumps, rawfile
from circuitsim.netlist.deck import (
    OVER_TIME,
    STEADY,
    TIME,
    DcSweep,
    Deck,
    FourierCard,
    SmallSignal,
    Spacing,
    Transient,
    Vary,
    lowered,
    measurements_of,
    memory,
    outputs_of,
    ranges_of,
    steps_of,
    transfers_of,
)
from circuitsim.plotting.charts import plot_bode, plot_waveforms

if TYPE_CHECKING:
    from circuitsim.time_domain import TransientResult
    from circuitsim.time_domain.fourier import FourierRequest


def show(
    found: Result,
    args: Namespace,
    shown: Mapping[str, Table | Result],
    measured: Sweep | Mapping[str, float | None],
    more: Mapping[str, Any] = MappingProxyType({}),
    **settings: Any,
) -> None:
    """`present` a result with its measurements, of one run or several: below its table, in JSON, else in lines of
    standard error; with ``--measure`` only the measurements are shown."""
    from circuitsim.measurements import measurements_table

    if isinstance(measured, Sweep):
        table: Table | Result = measured
        values: Mapping[str, Any] = measured.to_dict()["columns"]
        failed = {failure.row for failure in measured.failures}
        rows = [row for row in range(len(measured)) if row not in failed]
        said: dict[str, Mapping[str, Any]] = {
            f" at {measured.at(row)}": {name: column[row] for name, column in measured.columns.items()} for row in rows
        }
    else:
        table, values, said = measurements_table(measured, more.get("measurement_errors")), measured, {"": measured}
    if values:
        shown = {"meas": table} if args.measure else {**shown, "meas": table}
        more = more if args.measure and table is measured else {**more, "measurements": dict(values)}
    present(found, args, shown, more, **settings)
    for place, own in said.items() if values and not args.measure and args.format in ("csv", "raw") else ():
        words = ("failed" if value is None or value != value else f"{value:g}" for value in own.values())
        say(f"measured{place}: {', '.join(map('{} = {}'.format, own, words))}")


def _measured(deck: Deck, found: Any, own: Sequence[str], asked: Sequence[str] = ()) -> Any:
    """See `circuitsim.analyses.measured`; its modules are not imported for nothing."""
    if not own and not asked:
        return {}
    from circuitsim.analyses import measured

    return measured(deck, found, own, asked)


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
        raise ConvergenceError(f"{count}; the first, at {found.at(first.row)}: {first.error}")


def note_steps(deck: Deck, analysis: str) -> None:
    """Note that an analysis of one circuit ignores ``.step``."""
    if steps_of(deck):
        say(f"note: {analysis} uses the values on the cards; .step and .temp are ignored")


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
def run_sweep(args: Namespace) -> int:
    """Solve all points and print them as rows."""
    check_targets(args)
    vary, deck = args.vary, read(args)
    if not vary and runs_over_time(deck):
        return _over_time(args, deck)
    texts = [] if vary else measurements_of(deck, "dc")
    report([w for w in deck.notes if not texts or not set(w.names) & {".meas", ".measure"}], args.verbose)
    asked = vary or ranges_of(deck)
    if not vary and TIME not in asked and alone():
        for card in deck.of_kind(Transient):
            where = f".tran (line {card.location.line})"
            say(f"note: {where} is not run beside .dc; --vary time=… runs it")
    columns = args.columns or printed(deck, OVER_TIME if TIME in asked else STEADY)
    with working("sweep", args) as how:
        found = called(sweep, args, deck, **how | {"vary": asked, "columns": columns})
    report([w for w in found.warnings if w not in deck.notes], args.verbose)
    measured = _measured(deck, found, texts, args.measure)
    if isinstance(measured, Sweep):
        report(measured.warnings)
    show(found, args, {"points": found}, measured)
    check_runs(found, "points have no operating point")
    return 0


def runs_over_time(deck: Deck) -> bool:
    """Whether the deck's sweep is its ``.tran`` card, for a circuit that stores energy."""
    return len(deck.of_kind(Transient)) == 1 and not deck.of_kind(DcSweep) and bool(memory(deck.operating_circuit))


def _over_time(args: Namespace, deck: Deck) -> int:
    """The deck's ``.tran``, within its ``.step`` cards."""
    report([note for note in deck.notes if not elsewhere(note)], args.verbose)
    if args.solver != "auto" or args.checkpoint:
        option = "--checkpoint" if args.checkpoint else "--solver"
        raise UsageError(f"{option} is for operating points; this deck's .tran runs over time: leave it out")
    return run_all(args, deck, steps_of(deck), args.columns or printed(deck, OVER_TIME))


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
--accuracy T = 1e-4  implicit method: relative error of the waveforms (1e-4)
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
def run_tran(args: Namespace) -> int:
    """Run the transient analysis, or find the periodic steady state, and print the waveforms."""
    from circuitsim.measurements import check_asked
    from circuitsim.time_domain import TransientResult, steady_state, transient
    from circuitsim.time_domain.deck import setting
    from circuitsim.time_domain.fourier import requests

    check_steady(args)
    if args.format == "raw" and (args.events or args.measure or args.fourier):
        others = "leave out --events, --measure and --fourier, or choose another --format"
        raise UsageError(f"rawfiles hold waveforms: {others}")
    if args.measure and args.fourier:
        raise UsageError("--measure and --fourier both replace the waveforms: give one of them")
    deck = opened(args, elsewhere)
    columns = args.columns or printed(deck, OVER_TIME) or ""
    vary: Vary = {} if args.steady else args.vary or steps_of(deck)
    if vary and args.fourier:
        raise UsageError("--fourier is for one run: leave out --vary and .step")
    if vary and deck.of_kind(FourierCard):
        say("note: .four is for one run; it is ignored for several")
    if vary:
        return run_all(args, deck, vary, columns)
    parse_probes(columns, deck.operating_circuit)
    texts, span = [], (0.0, math.inf)
    if args.steady:
        note_steps(deck, "--steady")
    else:
        own = called(setting, args, deck)
        texts, span = measurements_of(deck, "tran"), (own.begin, own.stop)
        check_asked(deck, own.circuit, span, args.measure)
    harmonics = requests(deck, args.fourier, span[1])
    found: TransientResult
    try:
        with Interrupt() as interrupt, late_progress("steady" if args.steady else "tran") as update:
            if args.steady:
                points = 1001 if args.points is None else args.points
                found = called(steady_state, args, deck, points=points, progress=update)
            else:
                found = called(transient, args, deck, points=None, progress=interrupt.watch(update))
            ended = interrupt.asked
    except CircuitError as error:
        if isinstance(partial := error.partial_result, TransientResult):
            show_run(args, deck, columns, partial, _measured(deck, partial, [*texts, *args.measure]))
            say(f"stopped at {partial.stop:g} s by an error; results so far")
        raise
    if ended:
        values, harmonics = _measured(deck, found, [*texts, *args.measure]), []
    else:
        values = _measured(deck, found, texts, args.measure)
    show_run(args, deck, columns, found, values, harmonics)
    if found.reason:
        say(f"note: implicit method: {found.reason}")
    report(found.warnings, args.verbose)
    if ended:
        say(f"interrupted at {found.stop:g} s; results so far")
    return INTERRUPTED if ended else 0


def show_run(
    args: Namespace,
    deck: Deck,
    columns: str,
    found: TransientResult,
    values: Mapping[str, float | None],
    harmonics: Sequence[FourierRequest] = (),
) -> None:
    """Print waveforms, events, measurements or harmonics."""
    from circuitsim.time_domain.fourier import fourier_table, series
    from circuitsim.time_domain.gradients import measurement_error
    from circuitsim.time_domain.result import events_table, waveform_table

    names, probes = lowered(deck), parse_probes(columns, found.circuit) if columns else [*all_probes(found.circuit)]
    spectra = [own for request in harmonics for own in series(found, request, names)]
    more = found.checks()
    main = events_table(found) if args.events else waveform_table(found, probes, names)
    shown: dict[str, Table | Result] = {"waveforms": main}
    if spectra:
        more["fourier"] = [own.to_dict() for own in spectra]
        shown = {**({} if args.fourier else shown), "four": fourier_table(spectra)}
    if found.errors is not None and values:
        texts = [*measurements_of(deck, "tran"), *args.measure]
        errors = {text.split()[0]: measurement_error(found, text, names) for text in texts}
        more["measurement_errors"] = {name: errors[name] for name in values}

    def figure() -> Any:
        drawn = waveform_table(found, probes if columns else drawn_probes(found.circuit), names, drawn=True)
        return plot_waveforms(found.circuit.title, drawn, found.conduction())

    show(found, args, shown, values, more, figure=figure, plot="Transient Analysis")
    for own in spectra:
        say(
            f"{own.quantity} at {own.frequency:g} Hz: mean {own.mean:g}, first harmonic {own.amplitude[0]:g}, total "
            f"harmonic distortion {100.0 * own.distortion:.4g} %"
        )


def run_all(args: Namespace, deck: Deck, vary: Vary, columns: str | None) -> int:
    """Run transients of a deck at all combinations of varied values, and print the requested output: waveforms, changes
    of diodes, or measurements.

    Raises
    ------
    ConvergenceError
        Some run failed; the others are printed.
    """
    from circuitsim.time_domain import transient_sweep

    texts = [*measurements_of(deck, "tran"), *args.measure]
    with Interrupt() as interrupt, working("tran", args) as how:
        how |= {"vary": vary, "columns": columns or None, "measurements": texts}
        found = called(transient_sweep, args, deck, **how | {"progress": interrupt.watch(how["progress"])})
    report(found.measured.warnings)
    if getattr(args, "events", False):
        present(found, args, {"events": found.events})
    else:
        raw: dict[str, Any] = {} if args.measure else {"raw": partial(_plots, found.waves, found.measured)}
        show(found.waves, args, {"waveforms": found.waves}, found.measured, **raw)
    if interrupt.asked:
        say(f"interrupted after {len(found.measured)} runs; results so far")
    check_runs(found.measured, "runs ended with an error")
    return INTERRUPTED if interrupt.asked else 0


def _plots(waves: Sweep, runs: Sweep) -> str:
    """The rawfile of several transients: a plot for each, whose title has its values."""
    n, names, plots = waves.shape[0], (TIME, *waves.columns), ""
    units, columns = tuple(waves.units[name] for name in names), [waves[name].reshape(-1, n) for name in names]
    for row, values in enumerate(zip(*columns)):
        plots += rawfile(f"{waves.title} ({runs.at(row)})", Table(names, units, values), "Transient Analysis")
    return plots


def check_steady(args: Namespace) -> None:
    """Refuse options of a run together with ``--steady``, and those of ``--steady`` without it."""
    others = ("stop", "step", "vary", "method") if args.steady else ("period", "points")
    why = "a run from time 0; --steady takes --period and --points"
    for name in others:
        if getattr(args, name):
            raise UsageError(f"--{name} is for {why if args.steady else 'the periodic steady state: add --steady'}")


@command(
    """
--from HERTZ as first  first frequency (the deck's .ac, or 1)
--to HERTZ as last  last frequency (the deck's .ac, or 1MEG)
--points N  points per decade (20)
--linear  linear spacing; --points is the total
--source NAME[=A[<DEGREES]] as sources  amplitude of a source, others 0 (repeatable; AC of the cards)
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
def run_ac(args: Namespace) -> None:
    """Run the AC analysis and print the responses, or the poles."""
    from circuitsim.small_signal import ac
    from circuitsim.small_signal.frequency import phasor_columns, response_table

    deck = opened(args, elsewhere)
    if args.poles:
        note_steps(deck, "ac --poles")
        _poles(args, deck)
        return
    columns = args.columns or printed(deck, ("ac",), amplitudes)
    if vary := args.vary or steps_of(deck):
        _at_values(args, deck, vary, columns)
        return
    words = columns or " ".join(f"v({node})" for node in deck.operating_circuit.node_names[1:])
    probes = parse_probes(words, deck.operating_circuit)
    over = parse_probes(args.over, deck.operating_circuit)[0] if args.over else None
    found = called(ac, args, deck, frequencies=_frequencies(args))
    _warn(found.kinks)
    table, title = response_table(found, probes, over), found.circuit.title  # type: ignore[arg-type]

    def figure() -> Any:
        drawn = probes if columns else drawn_probes(found.circuit, "v")
        return plot_bode(title, response_table(found, drawn, over))  # type: ignore[arg-type]

    def raw() -> str:
        return rawfile(title, Table(*zip(*phasor_columns(found, probes, over))), "AC Analysis")  # type: ignore[arg-type]

    values = _measured(deck, found, measurements_of(deck, "ac"), args.measure)
    show(found, args, {"response": table}, values, found.checks(), figure=figure, raw=raw)


def _at_values(args: Namespace, deck: Deck, vary: Vary, columns: str | None) -> None:
    """The responses at all combinations of varied values."""
    from circuitsim.analyses import refusing
    from circuitsim.small_signal import ac_sweep

    if args.format == "raw":
        raise UsageError("a rawfile holds one response: choose another --format, or leave out .step and --vary")
    texts, failed = [*measurements_of(deck, "ac"), *args.measure], refusing(deck, args.measure)
    own: dict[str, Any] = {"vary": vary, "columns": columns, "measurements": texts, "failed": failed}
    with late_progress("ac") as update:
        found = called(ac_sweep, args, deck, frequencies=_frequencies(args), progress=update, **own)
    picture = None if args.measure else found.plot
    show(found.responses, args, {"responses": found.responses}, found.measured, figure=picture)
    check_runs(found.measured, "runs have no response")


def _poles(args: Namespace, deck: Deck) -> None:
    from circuitsim.small_signal import poles

    if args.plot:
        raise UsageError("--plot draws responses; leave out --poles")
    if args.format == "raw":
        raise UsageError("a rawfile holds responses: leave out --poles, or choose another --format")
    found = poles(deck)
    _warn(found.kinks)
    present(found, args)


def amplitudes(words: str) -> str:
    """``vm(out) vp(out) vdb(out)`` are all the amplitude ``v(out)``; each is listed once."""
    plain = re.sub(r"\b([vi])(?:m|p|db|r|i)\(", r"\1(", words, flags=re.IGNORECASE)
    return " ".join(dict.fromkeys(plain.split()))


def _warn(kinks: Sequence[str]) -> None:
    if kinks:
        say(
            f"warning: {', '.join(kinks)} {'is' if len(kinks) == 1 else 'are'} degenerate at the operating point "
            "(no current, no voltage): the result holds for one of two states"
        )


def _frequencies(args: Namespace) -> np.ndarray | None:
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


@command(
    """
--observe LIST  v(node), v(a,b), i(element), p(element) (the deck's .sens)
--input SOURCE  also gain, input and output resistance from this source (.tf)
--top N  the N values of largest effect
@deck
@tolerance
@format table csv json
@output the result
@plot draw the largest effects as bars
""",
    """\
Exact derivatives by each resistance, source, gain and device parameter, sorted by the effect of 1 %
of the value. Where a diode has neither voltage nor current, both one-sided derivatives are shown.

examples:
  circuitsim sensitivity netlists/wheatstone-unbalanced.cir --observe 'v(a,b)'
  circuitsim sensitivity netlists/divider.cir --observe 'v(out)' --input V1 --plot bars.png
""",
)
def run_sensitivity(args: Namespace) -> None:
    """Compute and print derivatives and transfer functions."""
    from circuitsim.small_signal.sensitivity import HEADER, sensitivity, transfer_function

    if args.top is not None and args.top < 0:
        raise UsageError(f"--top must be at least 0, not {args.top}")
    deck = opened(args)
    outputs, pairs = asked(deck, args.observe, args.input)
    transfers = [transfer_function(deck, output, source, args.tolerance) for output, source in pairs]
    found = sensitivity(deck, outputs, args.tolerance) if outputs else None
    tables = [one for t in transfers for one in t.tables().values()]
    rows = [
        (f"{t.output} / {t.source}", name, n.value, "", None, None, n.below, n.above, n.kink)
        for t in transfers
        for name, n, _ in t.numbers
    ]
    content: dict[str, Any] = {"schema": 2, "outputs": {}}
    if found is not None:
        content = found.to_dict()
        tables.append(found.tables(args.top)["derivatives"])
        rows = [*tables[-1].rows(), *rows]
    if any(kink for *_, kink in rows):
        say("note: a diode has neither current nor voltage: the one-sided derivatives differ")
    content["transfer"] = [t.to_dict() for t in transfers]
    present(
        found or transfers[0],
        args,
        dict(zip(map(str, range(len(tables))), tables)),
        json=lambda: dumps(content),
        csv=Table.of(HEADER, rows).csv,
    )


def asked(deck: Deck, observe: str | None, source: str | None) -> tuple[str, list[tuple[str, str]]]:
    """Outputs of the derivatives, and pairs of output and source of transfer functions."""
    outputs = observe or outputs_of(deck)
    if source is not None and outputs:
        return outputs, [(str(probe), source) for probe in parse_probes(outputs, deck.operating_circuit)]
    pairs = [] if observe else transfers_of(deck)
    if source is not None or not (outputs or pairs):
        raise UsageError("no output: the deck has no .sens and no .tf; give --observe, for instance --observe 'v(out)'")
    return outputs, pairs


TOLERANCES = """\
tolerances: NAMES=AMOUNT[,normal|truncated|ends][,lot]; in decks tol=5%, DEV, LOT, mc(), gauss()
  R*=1%            each resistor uniformly within ±1 % of its value
  R1=0.5%,normal   normal, with three standard deviations of 0.5 %
  V1=0.1           ±0.1 V; D1.vfwd=10% is a parameter of a device
  R*=5%,lot        one common deviation, added to their own
"""


def read_observed(args: Namespace) -> Deck:
    """The deck of a command that uses the tolerances that others ignore; its notes are reported."""
    return opened(args, lambda note: note.kind == "nominal", held=True)


@command(
    """
@tol
@observe p(element)
@spec of a good circuit
--samples N = 10000  circuits to draw
--latin  Latin hypercube within blocks of 1024 samples
--seed N = 0  seed of the random numbers
--confidence P = 0.95  of the intervals
@workers threads of this one
@dask
@checkpoint
--rows FILE  also write each sample's quantities as CSV
@deck
@tolerance
@format table csv json
@output the result
@plot draw histograms and contributions
""",
    f"""\
{TOLERANCES}
Results depend only on --seed. contributions: fraction of the variance that each tolerance explains.

examples:
  circuitsim montecarlo netlists/divider.cir --tol 'R*=1%' --observe 'v(out)'
  circuitsim montecarlo netlists/divider.cir --tol 'R*=5%,normal' --spec 'v(out)>1' --plot a.png
""",
)
def run_montecarlo(args: Namespace) -> None:
    """Sample, solve and summarise."""
    from circuitsim.tolerance import montecarlo

    check_target(args.rows, [args.deck], "--rows")
    deck = read_observed(args)
    with working("montecarlo", args, None) as how, _kept(args.rows) as rows:
        found = called(montecarlo, args, deck, observe=args.observe or "", rows=rows, **how)
    present(found, args)


@contextmanager
def _kept(path: str | None) -> Iterator[Callable[[Sequence[str], np.ndarray], None] | None]:
    """Writer of the samples of a run to a file, block by block."""
    if path is None:
        yield None
        return
    with atomic_file(Path(path)) as file:

        def write(names: Sequence[str], values: np.ndarray) -> None:
            if not file.tell():
                file.write(csv(names, []).encode())
            file.write("".join(",".join(map(repr, row)) + "\n" for row in values.tolist()).encode())

        yield write


@command(
    """
@tol
@observe dissipation
@spec to hold everywhere
--gap GAP  gap between value and bound that ends a search (1e-4 of the range)
--budget N = 4000  maximum linear systems of a search
@workers this one
@dask
@deck
@format table csv json
@output the result
@plot draw the ranges and limits
""",
    f"""\
Minimum and maximum over all values within the tolerances, each attained at a certified operating point,
with a proven bound: equal for resistors and sources, and as close as --gap or --budget allow for diodes.

{TOLERANCES}
examples:
  circuitsim worst-case netlists/divider.cir --tol 'R*=1%' --observe 'v(out) dissipation'
  circuitsim worst-case netlists/divider.cir --tol 'R*=5%' --spec '1.9<v(out)<2.1' --plot ranges.png
""",
)
def run_worst_case(args: Namespace) -> None:
    """Search and print the extremes."""
    from circuitsim.tolerance import worst_case

    if args.budget < 1:
        raise UsageError(f"--budget must be at least 1, not {args.budget}")
    deck = read_observed(args)
    with working("worst-case", args) as how:
        found = called(worst_case, args, deck, observe=args.observe or "", **how)
    present(found, args)


@command(
    """
!--adjust NAMES[=LOW:HIGH]  resistors, sources, parameters (D1.is) to adjust (repeatable)
!--target QUANTITY=VALUE[,weight=W] as targets  'v(out)=2.5' (repeatable)
--series SERIES {E6 E12 E24 E48 E96 E192}  round to preferred values: {0}
--deck FILE as written  also write the deck with these values
@deck
@format table csv json
@output the result
@plot draw errors and values
""",
    """\
Least squares of relative errors, starting from the deck's values. Resistances vary over three decades or
within bounds. After each rounding to a series the other values are adjusted again, then pairs are exchanged.

examples:
  circuitsim optimise netlists/divider.cir --adjust 'R*' --target 'v(out)=2' --series E24
  circuitsim optimise netlists/divider.cir --adjust R1=100:10k --target 'v(out)=2' --plot a.png
""",
)
def run_optimise(args: Namespace) -> None:
    """Find and print the values."""
    from circuitsim.tolerance.design import optimise

    check_target(args.written, [args.deck], "--deck")
    deck = opened(args, held=True)
    found = called(optimise, args, deck, series=args.series or "")
    if args.written:
        from circuitsim.netlist import dumps as deck_text

        save(deck_text(found.point.circuit).encode(), args.written)
    table = found.tables()["values"]
    present(found, args, csv=table._replace(header=("name", *table.header[1:])).csv)
    ends = found.bounds
    bound = [name for name, value in found.values.items() if any(isclose(value, x, rel_tol=1e-6) for x in ends[name])]
    if bound:
        say(f"note: at a bound: {', '.join(bound)} (--adjust NAMES=LOW:HIGH sets others)")


@command(
    """
--between NODE NODE  two nodes; the current flows into the first
--device NAME  one element alone, in place of --between
--volts RANGE = -1:1:0.02  start:stop:step or a,b,c (-1:1:0.02)
--without NAME  leave an element out (repeatable)
--breakpoints  show the breakpoints instead of the points
@deck
@tolerance
@format csv table json raw
@binary
@output the result
@plot draw the curve
""",
    """\
Sources keep their values; leave out the one that drives these nodes. Breakpoints of piecewise-linear
circuits are exact.

examples:
  circuitsim curve netlists/clipper-1n4148.cir --device D1 --volts -1:1:0.01 --plot diode.png
  circuitsim curve netlists/limiter-two-sided.cir --between out 0 --without V1 --breakpoints
""",
)
def run_curve(args: Namespace) -> None:
    """Find the curve and print it."""
    from circuitsim.analysis.curve import curve, device_curve
    from circuitsim.analysis.solve import circuit_at_operating_point

    if (args.between is None) == (args.device is None):
        raise UsageError("name two nodes, --between a b, or one element, --device D1")
    if args.device and args.without:
        raise UsageError("--device takes one element alone: leave out --without")
    if args.breakpoints and args.format == "raw":
        raise UsageError("a rawfile holds the points of the curve: leave --breakpoints out, or choose another --format")
    volts = ranged("--volts", args.volts)
    deck = opened(args, held=True)
    circuit = circuit_at_operating_point(deck)
    if args.device:
        found = device_curve(circuit, args.device, volts, args.tolerance)
    else:
        found = curve(circuit, tuple(args.between), volts, args.without, args.tolerance)
    report([w for w in found.points.warnings if w not in deck.notes], args.verbose)
    if args.breakpoints and found.breakpoints is None:
        raise UsageError("the curve is not piecewise linear: leave --breakpoints out")
    name = "breakpoints" if args.breakpoints else "points"
    present(found, args, {name: found.tables()[name]}, json=lambda: dumps(found.to_dict()))
