"""``circuitsim examples``: the bundled decks."""

from __future__ import annotations

import argparse
import json
import sys

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


ACTIONS = {
    "list": ("names and titles of all bundled decks", "@format table json", _list),
    "show": ("print a deck", "name NAME  a bundled deck", _show),
    "copy": (
        "copy decks, what they include and their data",
        """
names NAME…  bundled decks; none: all, into the folder netlists
--output, -o DIR  the folder to copy to (the current one)
--force  replace files that have other content
""",
        _copy,
    ),
}
"""Sub-command → its line in the help, its options, its function."""
