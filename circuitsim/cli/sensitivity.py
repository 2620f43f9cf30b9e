"""``circuitsim sensitivity``: derivatives by every value, and the transfer function of a source."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from circuitsim.cli.output import present
from circuitsim.cli.solving import opened
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from circuitsim.netlist.deck import Deck

EPILOG = """\
Exact derivatives by each resistance, source, gain and device parameter, sorted by the effect of 1 %
of the value. Where a diode has neither voltage nor current, both one-sided derivatives are shown.

examples:
  circuitsim sensitivity netlists/wheatstone-unbalanced.cir --observe 'v(a,b)'
  circuitsim sensitivity netlists/divider.cir --observe 'v(out)' --input V1 --plot bars.png
"""


OPTIONS = """
--observe LIST  v(node), v(a,b), i(element), p(element) (the deck's .sens)
--input SOURCE  also gain, input and output resistance from this source (.tf)
--top N  the N values of largest effect
@deck
@tolerance
@format table csv json
@output the result
@plot draw the largest effects as bars
"""


def run(args: argparse.Namespace) -> int:
    """Compute and print derivatives and transfer functions."""
    from circuitsim.formats.strict_json import dumps
    from circuitsim.formats.table import Table
    from circuitsim.small_signal.sensitivity import HEADER, sensitivity
    from circuitsim.small_signal.transfer import transfer_function

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
    present(found or transfers[0], args, tables, json=lambda: dumps(content), csv=Table.of(HEADER, rows).csv)
    return 0


def asked(deck: Deck, observe: str | None, source: str | None) -> tuple[str, list[tuple[str, str]]]:
    """Outputs of the derivatives, and pairs of output and source of transfer functions."""
    from circuitsim.analysis.probes import parse_probes
    from circuitsim.netlist.deck import outputs_of, transfers_of

    outputs = observe or outputs_of(deck)
    if source is not None and outputs:
        return outputs, [(str(probe), source) for probe in parse_probes(outputs, deck.operating_circuit)]
    pairs = [] if observe else transfers_of(deck)
    if source is not None or not (outputs or pairs):
        raise UsageError("no output: the deck has no .sens and no .tf; give --observe, for instance --observe 'v(out)'")
    return outputs, pairs
