"""``circuitsim ac``: AC analysis, and poles."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING

from circuitsim.cli.deck import elsewhere, printed
from circuitsim.cli.options import spice_number
from circuitsim.cli.output import present
from circuitsim.cli.over_time import measured, present_measured, warner
from circuitsim.cli.solving import opened
from circuitsim.errors import UsageError
from circuitsim.netlist.deck import measurements_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from matplotlib.figure import Figure

    from circuitsim.netlist.deck import Deck, Vary

EPILOG = """\
Small-signal analysis at the operating point: ideal diodes keep their state, smooth devices are linearised.
Columns are magnitude, decibels and degrees. Measurements accept vm, vdb, vp, vr, vi, the same of i, and
db, mag, ph, re, im of a quotient.

examples:
  circuitsim ac netlists/lowpass-butterworth.cir --columns 'v(out)' --over 'v(in)' --plot bode.png
  circuitsim ac netlists/lowpass-butterworth.cir --measure 'f3 WHEN db(v(out)/v(in))=-9 FALL=1'
  circuitsim ac netlists/lowpass-butterworth.cir --from 10 --to 100k --points 5 --format table
  circuitsim ac netlists/lowpass-butterworth.cir --poles
"""


OPTIONS = """
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
"""


def run(args: argparse.Namespace) -> int:
    """Run the AC analysis and print the responses, or the poles."""
    from circuitsim.analysis.probes import parse_probes
    from circuitsim.cli.sweep import note_steps, varied
    from circuitsim.formats.rawfile import swept
    from circuitsim.formats.table import Table
    from circuitsim.netlist.deck import steps_of
    from circuitsim.small_signal import ac
    from circuitsim.small_signal.frequency import phasor_columns, response_table

    vary, deck = varied(args.vary), opened(args, elsewhere)
    if args.poles:
        note_steps(deck, "ac --poles")
        return _poles(args, deck)
    columns = args.columns or printed(deck, ("ac",), _amplitudes) or _all(deck)
    if vary := vary or steps_of(deck):
        return _at_values(args, deck, vary, columns)
    probes = parse_probes(columns, deck.operating_circuit)
    over = parse_probes(args.over, deck.operating_circuit)[0] if args.over else None
    sources = dict(_source(text) for text in args.source) or None
    found = ac(deck, _frequencies(args), sources, args.tolerance)
    _warn(found.kinks)
    table, title = response_table(found, probes, over), found.circuit.title  # type: ignore[arg-type]
    values = measured(deck, found, measurements_of(deck, "ac"), args.measure)

    def figure() -> Figure:
        from circuitsim.plotting.bode import plot_bode

        return plot_bode(title, table)

    def raw() -> str:
        return swept(title, Table(*zip(*phasor_columns(found, probes, over))), "AC Analysis")  # type: ignore[arg-type]

    present_measured(found, args, [table], values, found.checks(), figure=figure, raw=raw)
    return 0


def _at_values(args: argparse.Namespace, deck: Deck, vary: Vary, columns: str) -> int:
    """The responses at all combinations of varied values."""
    from circuitsim.cli.progress import LateProgress
    from circuitsim.cli.stepped import check_runs, present_runs
    from circuitsim.small_signal import ac_sweep
    from circuitsim.time_domain.measure import EventError, MeasurementError

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


def _amplitudes(words: str) -> str:
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
    from circuitsim.netlist.deck import SmallSignal, Spacing
    from circuitsim.small_signal.deck import DEFAULT, frequencies

    if (args.first is None) != (args.last is None):
        raise UsageError("give both --from and --to")
    if args.first is None:
        if args.points is not None or args.linear:
            raise UsageError("--points and --linear need --from and --to")
        return None
    first, last = spice_number("--from", args.first), spice_number("--to", args.last)
    points = DEFAULT.points if args.points is None else args.points
    if points < 1 or last < first or first < 0.0 or (first == 0.0 and not args.linear):
        raise UsageError("--from must be below --to, and above 0 unless --linear; --points must be at least 1")
    spacing = Spacing.LINEAR if args.linear else Spacing.DECADE
    return frequencies(SmallSignal(spacing, points, (first, last), DEFAULT.location))


def _source(text: str) -> tuple[str, complex]:
    """``V1``, ``V1=2`` or ``V1=2<90``."""
    import cmath
    import math

    name, _, amplitude = text.partition("=")
    if not name.strip():
        raise UsageError(f"--source {text!r}: write NAME, NAME=MAGNITUDE or NAME=MAGNITUDE<DEGREES")
    magnitude, _, degrees = amplitude.partition("<")
    size = spice_number("--source", magnitude) if amplitude else 1.0
    return name.strip(), cmath.rect(size, math.radians(spice_number("--source", degrees) if degrees else 0.0))
