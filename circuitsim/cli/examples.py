"""``circuitsim examples``: the bundled decks."""

from __future__ import annotations

import argparse
import json
import sys

from circuitsim.cli.options import add_options
from circuitsim.cli.output import add_format

EPILOG = """\
first/amplifier, first/diode, first/learning, first/linear, first/rectifier and first/time are short decks to begin
with; their comments name the commands to run.

examples:
  circuitsim examples list
  circuitsim examples show rectifier-bridge
  circuitsim examples copy first/rectifier
  circuitsim examples copy rectifier-bridge learn-divider
  circuitsim examples copy                                  everything, into the folder netlists
"""


OPTIONS = """
--output, -o DIR  the folder to copy to (the current one)
--force  replace files that have other content
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``list``, ``show`` and ``copy``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="names and titles of all bundled decks", allow_abbrev=False)
    add_format(listing, "table", "json")
    listing.set_defaults(act=_list)
    show = actions.add_parser("show", help="print a deck", allow_abbrev=False)
    show.add_argument("name", metavar="NAME", help="a bundled deck")
    show.set_defaults(act=_show)
    copy = actions.add_parser("copy", help="copy decks, what they include and their data", allow_abbrev=False)
    copy.add_argument("names", metavar="NAME", nargs="*", help="bundled decks; none: all, into the folder netlists")
    add_options(copy, OPTIONS)
    copy.set_defaults(act=_copy)


def run(args: argparse.Namespace) -> int:
    """Run the subcommand."""
    return int(args.act(args))


def _list(args: argparse.Namespace) -> int:
    """One line per deck: its name and its title."""
    from circuitsim.examples import examples

    found = examples()
    if args.format == "json":
        print(json.dumps([example._asdict() for example in found], indent=2, ensure_ascii=False))
        return 0
    width = max(len(example.name) for example in found)
    for example in found:
        print(f"{example.name:{width}}  {example.title}")
    return 0


def _show(args: argparse.Namespace) -> int:
    """The text of one deck."""
    from circuitsim.examples import path

    with open(path(args.name), encoding="utf-8") as file:
        sys.stdout.write(file.read())
    return 0


def _copy(args: argparse.Namespace) -> int:
    """Copy, and print the path of each file."""
    from circuitsim.examples import copy

    folder = args.output or ("." if args.names else "netlists")
    for path in copy(args.names, folder, args.force):
        print(path.removeprefix("./"))
    return 0
