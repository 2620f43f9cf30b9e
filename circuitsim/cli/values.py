"""Commands about the values of a circuit: ``sensitivity``, ``montecarlo``, ``worst-case``, ``optimise``, ``curve``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any

from circuitsim._files import atomic_file
from circuitsim.cli.common import called, check_target, opened, present, report, save, working
from circuitsim.cli.options import command, ranged
from circuitsim.errors import UsageError
from circuitsim.formats.columns import csv
from circuitsim.formats.strict_json import dumps
from circuitsim.formats.table import Table
from circuitsim.netlist.deck import Deck, outputs_of, transfers_of

if TYPE_CHECKING:
    import numpy as np


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
def run_sensitivity(args: argparse.Namespace) -> int:
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
        print("note: a diode has neither current nor voltage: the one-sided derivatives differ", file=sys.stderr)
    content["transfer"] = [t.to_dict() for t in transfers]
    present(
        found or transfers[0],
        args,
        dict(zip(map(str, range(len(tables))), tables)),
        json=lambda: dumps(content),
        csv=Table.of(HEADER, rows).csv,
    )
    return 0


def asked(deck: Deck, observe: str | None, source: str | None) -> tuple[str, list[tuple[str, str]]]:
    """Outputs of the derivatives, and pairs of output and source of transfer functions."""
    from circuitsim.analysis.probes import parse_probes

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


def read_observed(args: argparse.Namespace) -> Deck:
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
def run_montecarlo(args: argparse.Namespace) -> int:
    """Sample, solve and summarise."""
    from circuitsim.tolerance import montecarlo

    check_target(args.rows, [args.deck], "--rows")
    deck = read_observed(args)
    with working("montecarlo", args, None) as how, _kept(args.rows) as rows:
        found = called(montecarlo, args, deck, observe=args.observe or "", rows=rows, **how)
    present(found, args)
    return 0


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
def run_worst_case(args: argparse.Namespace) -> int:
    """Search and print the extremes."""
    from circuitsim.tolerance import worst_case

    if args.budget < 1:
        raise UsageError(f"--budget must be at least 1, not {args.budget}")
    deck = read_observed(args)
    with working("worst-case", args) as how:
        found = called(worst_case, args, deck, observe=args.observe or "", **how)
    present(found, args)
    return 0


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
def run_optimise(args: argparse.Namespace) -> int:
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
        print(f"note: at a bound: {', '.join(bound)} (--adjust NAMES=LOW:HIGH sets others)", file=sys.stderr)
    return 0


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
def run_curve(args: argparse.Namespace) -> int:
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
    return 0
