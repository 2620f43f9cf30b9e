"""``circuitsim tran``: waveforms over time."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from circuitsim.cli.deck import add_deck, read, report
from circuitsim.cli.options import spice_number
from circuitsim.cli.output import add_output, check_target, deliver
from circuitsim.cli.progress import INTERRUPTED, Interrupt, LateProgress
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from circuitsim.errors import Problem

EPILOG = """\
Circuits of R, C, L, ideal diodes and sources (DC, PULSE, PWL, SIN, EXP, AM). Between two events the circuit is linear
and its waveforms are matrix exponentials; the times at which diodes change are roots of them. So there is no time step
to choose: --step is the distance of the output times alone.

The run begins at the operating point of time 0; .tran … UIC begins at the ic= of capacitors and inductors (0 without
one), --initial states them on the command line. .ic holds nodes and inductors at the operating point.

The deck's .meas tran cards are measured too; --measure adds to them and shows them in place of waveforms. Ctrl-C ends
the run and shows what is done.

columns: those of --columns, else those of the deck's .print tran or .save, else all v(node) and i(element).

examples:
  circuitsim tran netlists/half-wave-smoothed.cir > waves.csv
  circuitsim tran netlists/half-wave-smoothed.cir --columns 'v(in) v(out) i(D1)' --plot waves.png
  circuitsim tran netlists/buck-converter.cir --events
  circuitsim tran netlists/boost-converter.cir --measure 'ripple PP v(out) FROM=3m' --measure 'top MAX i(L1)'
  circuitsim tran my.cir --stop 5m --step 10u --initial C1=10 --initial L1=0.5 --format table
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``tran``."""
    parser.epilog = EPILOG
    add_deck(parser)
    parser.add_argument("--stop", metavar="TIME", help="end of the run, s (10m, 20u); default: the deck's .tran")
    parser.add_argument("--step", metavar="TIME", help="distance of the output times, s; default: the deck's .tran")
    parser.add_argument(
        "--initial", metavar="NAME=VALUE", action="append", default=[],
        help="capacitor voltage or inductor current at time 0, in place of the operating point (repeatable)",
    )  # fmt: skip
    parser.add_argument("--columns", metavar="LIST", help="what to show: v(node), v(a,b), i(element), p(element)")
    parser.add_argument("--events", action="store_true", help="show the changes of diodes instead of the waveforms")
    parser.add_argument(
        "--measure", metavar="'NAME …'", action="append", default=[],
        help="as .meas tran: 'ripple PP v(out) FROM=1m', 't1 WHEN v(out)=2 RISE=1' (repeatable); shown in place of "
        "waveforms",
    )  # fmt: skip
    parser.add_argument("--format", choices=("csv", "table", "json"), default="csv", help="default: csv")
    parser.add_argument("--tolerance", type=float, default=1e-9, help="of the certificate; default: 1e-9")
    add_output(parser)
    parser.add_argument("--plot", metavar="FILE", help="also plot columns and states of diodes (.png, .svg, .pdf)")


def run(args: argparse.Namespace) -> int:
    """Run through time and print the waveforms."""
    from circuitsim.analysis.probes import all_probes, parse_probes
    from circuitsim.cli.sweep import OVER_TIME, printed
    from circuitsim.formats.table import table_text
    from circuitsim.transient.deck import requested, run_deck
    from circuitsim.transient.measure import measure_all, measurements_table
    from circuitsim.transient.table import events_table, waveform_table

    check_target(args.output, [args.deck])
    if args.plot:
        from circuitsim.cli.drawing import check_drawing

        check_drawing(args.plot, [args.deck], args.output)
    deck = read(args)
    report(w for w in [*deck.problems, *deck.notes] if w.kind != "tran" and not acts_over_time(w))
    columns = args.columns or printed(deck, OVER_TIME)
    probes = parse_probes(columns, deck.circuit) if columns else all_probes(deck.circuit)
    step, stop = _time("--step", args.step), _time("--stop", args.stop)
    line = LateProgress("tran")
    with Interrupt() as interrupt:
        try:
            found = run_deck(deck, step, stop, _initial(args.initial), args.tolerance, interrupt.watch(line))
        finally:
            line.close()
    names = {name.lower(): value for name, value in deck.parameters.items()}
    waves = waveform_table(found, probes, names)
    values = measure_all(found, [*requested(deck), *args.measure], names)
    shown = measurements_table(values) if args.measure else events_table(found) if args.events else waves
    proof = {"certificate": found.certificate._asdict(), "energies": found.energies._asdict()}
    text = table_text(shown, args.format, proof | ({"measurements": values} if values else {}))
    if values and not args.measure and args.format == "table":
        text += "\n" + table_text(measurements_table(values), args.format, {})
    deliver(text, args.output)
    if values and not args.measure and args.format == "csv":
        said = ", ".join(f"{name} = {'failed' if value is None else f'{value:g}'}" for name, value in values.items())
        print(f"measured: {said}", file=sys.stderr)
    if args.plot:
        from circuitsim.cli.drawing import draw_waveforms

        draw_waveforms(found, waves, args.plot)
    if interrupt.asked:
        print(f"interrupted at {found.stop:g} s: what is shown ends there", file=sys.stderr)
        return INTERRUPTED
    return 0


def acts_over_time(note: Problem) -> bool:
    """Whether it says that a card has no effect which has one over time."""
    from circuitsim.netlist.refused import OVER_TIME

    return note.kind == "no-effect" and any(name in OVER_TIME for name in note.names)


def _time(option: str, text: str | None) -> float | None:
    if text is None:
        return None
    value = spice_number(option, text)
    if not value > 0.0:
        raise UsageError(f"{option} {text}: a positive time is needed, for instance 10m")
    return value


def _initial(pairs: list[str]) -> dict[str, float] | None:
    found = {}
    for text in pairs:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--initial {text!r}: write NAME=VALUE, for instance C1=5")
        found[name.strip()] = spice_number(f"--initial {name.strip()}=", value)
    return found or None
