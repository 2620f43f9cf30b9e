"""``circuitsim curve``: the I–V curve of a two-terminal circuit."""

from __future__ import annotations

import argparse

from circuitsim.cli.deck import report
from circuitsim.cli.output import present
from circuitsim.cli.solving import opened
from circuitsim.errors import UsageError

EPILOG = """\
Sources keep their values; leave out the one that drives these nodes. Breakpoints of piecewise-linear
circuits are exact.

examples:
  circuitsim curve netlists/clipper-1n4148.cir --device D1 --volts -1:1:0.01 --plot diode.png
  circuitsim curve netlists/limiter-two-sided.cir --between out 0 --without V1 --breakpoints
"""


OPTIONS = """
--between NODE  two nodes; the current flows into the first
--device NAME  one element alone, in place of --between
--volts RANGE = -1:1:0.02  start:stop:step or a,b,c (%(default)s)
--without NAME  leave an element out (repeatable)
--breakpoints  show the breakpoints instead of the points
@deck
@tolerance
@format csv table json raw
@binary
@output the result
@plot draw the curve
"""
SETTINGS = {"between": {"nargs": 2}}


def run(args: argparse.Namespace) -> int:
    """Find the curve and print it."""
    from circuitsim.analysis.curve import curve, device_curve
    from circuitsim.analysis.switched import circuit_at_operating_point
    from circuitsim.cli.sweep import ranged

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
    present(found, args, [found.tables()["breakpoints" if args.breakpoints else "points"]], whole=True)
    return 0
