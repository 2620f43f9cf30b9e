"""``circuitsim data``: what data sets there are, and fetching those that are not bundled."""

from __future__ import annotations

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``list`` and ``fetch``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="data sets, and where they are", allow_abbrev=False)
    fetching = actions.add_parser("fetch", help="fetch a data set, once", allow_abbrev=False)
    fetching.add_argument("name", metavar="NAME", help="mnist")
    fetching.add_argument(
        "--mirror", metavar="URL", action="append", default=[], help="fetch from this folder instead; may be repeated"
    )
    for action in (listing, fetching):
        action.add_argument(
            "--data-dir", metavar="DIR", help="the data directory ($CIRCUITSIM_DATA, or the user's cache directory)"
        )
    listing.set_defaults(act=_list)
    fetching.set_defaults(act=_fetch)


def run(args: argparse.Namespace) -> int:
    """Run the subcommand."""
    return int(args.act(args))


def _list(args: argparse.Namespace) -> int:
    """One line a data set: its name, where it is, what it is."""
    from circuitsim.datasets.remote import REMOTE, find

    rows = [("digits", "bundled with scikit-learn", "1,797 handwritten digits, 8 × 8 pixels")]
    for name, remote in REMOTE.items():
        folder = find(name, args.data_dir)
        rows.append((name, str(folder) if folder else f"not here: circuitsim data fetch {name}", remote.about))
    widths = [max(len(row[k]) for row in rows) for k in range(2)]
    for name, where, about in rows:
        print(f"{name:{widths[0]}}  {where:{widths[1]}}  {about}")
    return 0


def _fetch(args: argparse.Namespace) -> int:
    """Fetch, and print a line for each file."""
    from circuitsim.datasets.remote import fetch

    folder = fetch(args.name, args.data_dir, args.mirror, lambda line: print(line, file=sys.stderr))
    print(folder)
    return 0
