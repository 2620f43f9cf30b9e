"""``circuitsim forms``: which forms of ngspice, LTspice, Xyce and PSpice are read."""

from __future__ import annotations

import argparse
from pathlib import Path

from circuitsim.cli.output import add_format, add_output, deliver, save
from circuitsim.errors import UsageError

EPILOG = """\
Each form of the table is read in an example; the last column is what the reader does with it.

examples:
  circuitsim forms
  circuitsim forms --into docs/netlist.md
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``forms``."""
    parser.epilog = EPILOG
    add_format(parser, "table", "json")
    add_output(parser, "the table")
    parser.add_argument("--into", metavar="PAGE", help="replace the table in a Markdown page, between its two markers")


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    from circuitsim.netlist.forms import replaced, rows, table

    if args.into is None and args.format == "json":
        from circuitsim.formats.strict_json import dumps

        deliver(dumps(list(rows())), args.output)
        return 0
    if args.into is None:
        deliver(table(), args.output)
        return 0
    try:
        page = Path(args.into).read_text(encoding="utf-8")
        save(replaced(page, table()).encode(), args.into)
    except ValueError as error:
        raise UsageError(f"--into {args.into}: {error}") from None
    return 0
