"""What ``tran`` and ``steady`` share: what is shown of waveforms, and how."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from circuitsim.cli.deck import read, report
from circuitsim.cli.output import Listed, add_format, add_output, check_target, deliver
from circuitsim.cli.solving import add_tolerance
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from circuitsim.analysis.probes import Formula, Probe
    from circuitsim.errors import Problem
    from circuitsim.netlist.deck import Deck
    from circuitsim.time_domain import TransientResult


ELSEWHERE = frozenset(("tran", "ac", "amplitude"))
"""Kinds of notes about what an operating point leaves out: over time nothing, or what another analysis takes."""


def add_shown(parser: argparse.ArgumentParser) -> None:
    """Add the options of what is shown."""
    parser.add_argument("--columns", metavar="LIST", action=Listed,
                        help="what to show: v(node), v(a,b), i(element), p(element)")  # fmt: skip
    parser.add_argument("--events", action="store_true", help="show the changes of diodes instead of the waveforms")
    parser.add_argument(
        "--measure", metavar="'NAME …'", action="append", default=[],
        help="as .meas tran: 'ripple PP v(out) FROM=1m', 't1 WHEN v(out)=2 RISE=1' (repeatable); shown in place of "
        "waveforms",
    )  # fmt: skip
    add_format(parser, "csv", "table", "json", "raw")
    add_tolerance(parser)
    add_output(parser)
    parser.add_argument("--plot", metavar="FILE", help="also plot columns and states of diodes (.png, .svg or .pdf)")


def read_shown(args: argparse.Namespace) -> tuple[Deck, list[Probe | Formula]]:
    """The deck, and the columns that are asked for."""
    from circuitsim.analysis.probes import all_probes, parse_probes
    from circuitsim.cli.sweep import OVER_TIME, printed

    if args.format == "raw" and (args.events or args.measure):
        raise UsageError("rawfiles hold waveforms: leave out --events and --measure, or choose another --format")
    check_target(args.output, [args.deck])
    if args.plot:
        from circuitsim.cli.drawing import check_drawing

        check_drawing(args.plot, [args.deck], args.output)
    deck = read(args)
    report_over_time(deck)
    columns = args.columns or printed(deck, OVER_TIME)
    return deck, parse_probes(columns, deck.circuit) if columns else [*all_probes(deck.circuit)]


def report_over_time(deck: Deck) -> None:
    """Print the warnings and notes of a deck that hold over time."""
    report(w for w in [*deck.problems, *deck.notes] if w.kind not in ELSEWHERE and not acts_over_time(w))


def lower_names(deck: Deck) -> dict[str, float]:
    """Values of the deck's parameters by their names in lower case."""
    return {name.lower(): value for name, value in deck.parameters.items()}


def acts_over_time(note: Problem) -> bool:
    """Whether it says that a card has no effect which has one over time."""
    from circuitsim.netlist.refused import OVER_TIME

    return note.kind == "coupled" or (note.kind == "no-effect" and any(name in OVER_TIME for name in note.names))


def show(
    args: argparse.Namespace, deck: Deck, probes: Sequence[Probe | Formula], found: TransientResult,
    measured: Sequence[str], more: Mapping[str, Any],
) -> None:  # fmt: skip
    """Print waveforms, events or measurements; ``more`` is for JSON beside certificate and energies."""
    from circuitsim.formats.rawfile import swept
    from circuitsim.formats.table import table_text
    from circuitsim.time_domain.measure import measure_all, measurements_table
    from circuitsim.time_domain.table import events_table, waveform_table

    names = lower_names(deck)
    waves = waveform_table(found, probes, names)
    values = measure_all(found, measured, names)
    shown = measurements_table(values) if args.measure else events_table(found) if args.events else waves
    proof = {"certificate": found.certificate._asdict(), "energies": found.energies._asdict(), **more}
    if args.format == "raw":
        text = swept(found.circuit.title, zip(waves.header, waves.units, waves.columns), "Transient Analysis")
    else:
        text = table_text(shown, args.format, proof | ({"measurements": values} if values else {}))
    if values and not args.measure and args.format == "table":
        text += "\n" + table_text(measurements_table(values), args.format, {})
    deliver(text, args.output)
    if values and not args.measure and args.format in ("csv", "raw"):
        said = ", ".join(f"{name} = {'failed' if value is None else f'{value:g}'}" for name, value in values.items())
        print(f"measured: {said}", file=sys.stderr)
    if args.plot:
        from circuitsim.cli.drawing import draw_waveforms

        draw_waveforms(found, waves, args.plot)
