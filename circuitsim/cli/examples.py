"""``circuitsim examples`` and ``circuitsim data``: the bundled decks, and data sets."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path

from circuitsim.cli.common import say
from circuitsim.cli.options import Command
from circuitsim.formats.table import table


def _list(args: Namespace) -> int:
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


def _show(args: Namespace) -> int:
    """The text of one deck."""
    from circuitsim.examples import path

    with open(path(args.name), encoding="utf-8") as file:
        sys.stdout.write(file.read())
    return 0


def _copy(args: Namespace) -> int:
    """Copy, and print the path of each file."""
    from circuitsim.examples import copy

    folder = args.output or ("." if args.names else "netlists")
    for path in copy(args.names, folder, args.force):
        print(path.removeprefix("./"))
    return 0


run_examples = Command(
    {
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
    },
    """\
first/amplifier, first/diode, first/learning, first/linear, first/rectifier and first/time are short decks to begin
with; their comments name the commands to run.

examples:
  circuitsim examples list
  circuitsim examples show rectifier-bridge
  circuitsim examples copy first/rectifier
  circuitsim examples copy rectifier-bridge learn-divider
  circuitsim examples copy                                  everything, into the folder netlists
""",
)


def _data_sets(args: Namespace) -> int:
    """One row per data set: name, location, description."""
    from circuitsim.datasets.images import COLOUR
    from circuitsim.datasets.remote import REMOTE, data_directory, find

    rows: list[tuple[str, Path | None, str]] = [
        ("digits", Path("bundled with scikit-learn"), "1,797 handwritten digits, 8 × 8 pixels")
    ]
    rows += [(name, find(name, args.data_dir), remote.about) for name, remote in REMOTE.items()]
    root = data_directory(args.data_dir)
    rows += [(name, form.inside(root), form.about) for name, form in COLOUR.items()]
    listed = [(name, place and str(place), about) for name, place, about in rows]
    if args.format == "json":
        print(json.dumps([dict(zip(("name", "place", "about"), row)) for row in listed], indent=1))
        return 0
    absent = {name: f"not here: circuitsim data fetch {name}" for name in REMOTE}
    shown = [[name, place or absent.get(name, "not here: docs/models.md"), about] for name, place, about in listed]
    print("\n".join(table(["data set", "place", "contents"], shown)))
    return 0


def _fetch(args: Namespace) -> int:
    """Fetch, and print a line per file."""
    from circuitsim.datasets.remote import fetch

    folder = fetch(args.name, args.data_dir, args.mirror, say)
    print(folder)
    return 0


WHERE = "--data-dir DIR  the data directory ($CIRCUITSIM_DATA, or the user's cache directory)"
run_data = Command(
    {
        "list": ("data sets, and where they are", f"{WHERE}\n@format table json", _data_sets),
        "fetch": (
            "fetch a data set, once",
            f"name NAME  mnist\n--mirror URL  fetch from this folder instead (repeatable)\n{WHERE}",
            _fetch,
        ),
    },
    "",
)
