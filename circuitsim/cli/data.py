"""``circuitsim data``: list and fetch data sets."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from circuitsim.formats.columns import table


def _list(args: argparse.Namespace) -> int:
    """One row per data set: name, location, description."""
    import json

    from circuitsim.datasets.colour import COLOUR
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


def _fetch(args: argparse.Namespace) -> int:
    """Fetch, and print a line per file."""
    from circuitsim.datasets.remote import fetch

    folder = fetch(args.name, args.data_dir, args.mirror, lambda line: print(line, file=sys.stderr))
    print(folder)
    return 0


WHERE = "--data-dir DIR  the data directory ($CIRCUITSIM_DATA, or the user's cache directory)"
ACTIONS = {
    "list": ("data sets, and where they are", f"{WHERE}\n@format table json", _list),
    "fetch": (
        "fetch a data set, once",
        f"name NAME  mnist\n--mirror URL  fetch from this folder instead (repeatable)\n{WHERE}",
        _fetch,
    ),
}
"""Sub-command → its line in the help, its options, its function."""
