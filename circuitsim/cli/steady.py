"""``circuitsim steady``: the periodic steady state."""

from __future__ import annotations

import argparse

from circuitsim.cli.deck import add_deck
from circuitsim.cli.over_time import add_shown, harmonics_requested, read_shown, show
from circuitsim.cli.progress import LateProgress
from circuitsim.cli.sweep import note_steps
from circuitsim.cli.tran import initial_values, positive_time

EPILOG = """\
One period of the state that a circuit with periodic sources reaches after a long time, without the time before it:
Newton's method on the states at the beginning of the period, with the exact derivative of those at its end. The period
is the least common one of all sources (PULSE, PWL with r=, SIN, AM); --period states another, for instance two of them.

In JSON, shooting holds the number of periods that were run, the mismatch of the states at both ends, and the Floquet
multipliers: what a deviation is multiplied by in a period. .meas cards of the deck are left out; --measure takes
times within the period.

examples:
  circuitsim steady netlists/boost-converter.cir --columns 'v(out) i(L1)' --plot steady.png
  circuitsim steady netlists/boost-converter.cir --measure 'ripple PP v(out)' --measure 'mean AVG v(out)'
  circuitsim steady netlists/half-wave-smoothed.cir --events --format table
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``steady``."""
    parser.epilog = EPILOG
    add_deck(parser)
    parser.add_argument("--period", metavar="TIME", help="s, for instance 20m (the sources' least common one)")
    parser.add_argument("--points", type=int, default=1001, metavar="N", help="output times (%(default)s)")
    parser.add_argument(
        "--initial",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="capacitor voltage or inductor current to begin the search with (repeatable)",
    )
    add_shown(parser)


def run(args: argparse.Namespace) -> int:
    """Find the periodic steady state and print it."""
    from circuitsim.time_domain.deck import steady_deck

    deck, probes = read_shown(args)
    note_steps(deck, "steady")
    harmonics = harmonics_requested(args, deck, None)
    line = LateProgress("steady")
    try:
        found = steady_deck(
            deck,
            positive_time("--period", args.period),
            initial_values(args.initial),
            args.points,
            args.tolerance,
            line.update,
        )
    finally:
        line.close()
    own = found.shooting
    multipliers = [[float(value.real), float(value.imag)] for value in own.multipliers]
    more = {"shooting": own._asdict() | {"multipliers": multipliers}}
    show(args, deck, probes, found, args.measure, more, harmonics)
    return 0
