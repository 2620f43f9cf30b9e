"""``circuitsim sensitivity``: derivatives by every value, and the transfer function of a source."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from circuitsim.cli.deck import add_deck, read, report
from circuitsim.cli.output import Listed, add_format, add_output, add_plot, check_targets, present
from circuitsim.cli.solving import add_tolerance
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from circuitsim.analysis.sensitivity import Row, Sensitivity
    from circuitsim.analysis.transfer import Transfer
    from circuitsim.netlist.deck import Deck

EPILOG = """\
Exact derivatives by each resistance, source, gain and device parameter, sorted by the effect of 1 %
of the value. Where a diode has neither voltage nor current, both one-sided derivatives are shown.

examples:
  circuitsim sensitivity netlists/wheatstone-unbalanced.cir --observe 'v(a,b)'
  circuitsim sensitivity netlists/divider.cir --observe 'v(out)' --input V1 --plot bars.png
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``sensitivity``."""
    parser.epilog = EPILOG
    add_deck(parser)
    parser.add_argument(
        "--observe", metavar="LIST", action=Listed, help="v(node), v(a,b), i(element), p(element) (the deck's .sens)"
    )
    parser.add_argument(
        "--input", metavar="SOURCE", help="also gain, input and output resistance from this source (.tf)"
    )
    parser.add_argument("--top", metavar="N", type=int, help="the N values of largest effect")
    add_format(parser, "table", "csv", "json")
    add_tolerance(parser)
    add_output(parser)
    add_plot(parser, "draw the largest effects as bars")


def run(args: argparse.Namespace) -> int:
    """Compute and print derivatives and transfer functions."""
    from circuitsim.analysis.sensitivity import sensitivity
    from circuitsim.analysis.transfer import transfer_function

    check_targets(args)
    if args.top is not None and args.top < 0:
        raise UsageError(f"--top must be at least 0, not {args.top}")
    deck = read(args)
    report(deck.notes, args.verbose)
    outputs, pairs = asked(deck, args.observe, args.input)
    transfers = [transfer_function(deck, output, source, args.tolerance) for output, source in pairs]
    found = sensitivity(deck, outputs, args.tolerance) if outputs else None
    kinks = [t for t in transfers if any(number.kink for _, number, _ in t.numbers)]
    if kinks or (found is not None and any(row.kink for q in range(len(found.outputs)) for row in found.rows(q))):
        print("note: a diode has neither current nor voltage: derivatives differ on both sides", file=sys.stderr)
    present(
        found or transfers[0],
        args,
        json=lambda: _json(found, transfers),
        csv=lambda: _csv(found, transfers, args.top),
        table=lambda: _text(found, transfers, args.top),
    )
    return 0


def asked(deck: Deck, observe: str | None, source: str | None) -> tuple[str, list[tuple[str, str]]]:
    """Outputs of the derivatives, and pairs of output and source of transfer functions."""
    from circuitsim.analysis.probes import parse_probes
    from circuitsim.netlist.requests import outputs_of, transfers_of

    outputs = observe or outputs_of(deck)
    if source is not None and outputs:
        return outputs, [(str(probe), source) for probe in parse_probes(outputs, deck.operating_circuit)]
    pairs = [] if observe else transfers_of(deck)
    if source is not None or not (outputs or pairs):
        raise UsageError("no output: the deck has no .sens and no .tf; give --observe, for instance --observe 'v(out)'")
    return outputs, pairs


def _json(found: Sensitivity | None, transfers: list[Transfer]) -> str:
    from circuitsim.formats.strict_json import dumps

    content: dict[str, Any] = found.to_dict() if found is not None else {"schema": 2, "outputs": {}}
    return dumps(content | {"transfer": [t.to_dict() for t in transfers]})


def _text(found: Sensitivity | None, transfers: list[Transfer], top: int | None) -> str:
    blocks = [_transfer_table(t) for t in transfers]
    if found is not None:
        blocks += [_table(found, q, top) for q in range(len(found.outputs))]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _csv(found: Sensitivity | None, transfers: list[Transfer], top: int | None) -> str:
    from circuitsim.analysis.sensitivity import HEADER
    from circuitsim.formats.columns import csv

    rows = [*found.tables(top)["derivatives"].rows()] if found else []
    rows += [
        (f"{t.output} / {t.source}", name, n.value, "", None, None, n.below, n.above, n.kink)
        for t in transfers
        for name, n, _ in t.numbers
    ]
    return csv(HEADER.split(", "), rows)


def _transfer_table(t: Transfer) -> list[str]:
    from circuitsim.formats.columns import table

    rows = []
    for name, number, unit in t.numbers:
        sides = [number.below, number.above] if number.kink else [number.value]
        rows.append([name, *(_number(value, unit) for value in sides)])
    width = max(map(len, rows))
    header = [f"{t.output} by {t.source}", *(("below", "above") if width == 3 else ("",))]
    return table(header, [row + [row[-1]] * (width - len(row)) for row in rows])


def _table(found: Sensitivity, q: int, top: int | None) -> list[str]:
    from circuitsim.formats.columns import quantity, table

    unit, rows = found.units[q], found.rows(q)
    shown = [_row(row, unit) for row in rows[:top]]
    left = len(rows) - len(shown)
    head = f"{found.outputs[q]} = {quantity(float(found.values[q]), unit)}"
    lines = table([head, "value", f"derivative, {unit} per unit", "for 1 %", ""], shown)
    return lines + [f"… and {left} of smaller effect"] * (left > 0)


def _row(row: Row, unit: str) -> list[str]:
    from circuitsim.formats.columns import quantity

    note = f"kink: {row.below + 0.0:.6g} below, {row.above + 0.0:.6g} above" if row.kink else ""
    derivative = "-" if row.kink else f"{row.derivative:.6g}"
    return [row.name, quantity(row.value, row.unit), derivative, quantity(row.per_percent, unit), note]


def _number(value: float, unit: str) -> str:
    from circuitsim.formats.columns import quantity

    if abs(value) == float("inf"):
        return "infinite"
    return f"{value:.9g} {unit}" if "/" in unit else quantity(value, unit)
