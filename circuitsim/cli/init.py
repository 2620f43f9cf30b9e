"""``circuitsim init``: a first deck of a chosen kind, with comments that explain it."""

from __future__ import annotations

import argparse
import os
from typing import NamedTuple

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples", "first")


class Kind(NamedTuple):
    """A kind of first deck: what it shows, and the commands to run on it."""

    about: str
    commands: tuple[str, ...]


KINDS = {
    "linear": Kind("resistors and a source; values in steps", ("solve {deck}", "sweep {deck}")),
    "rectifier": Kind("ideal diodes in a bridge; a sweep of the source", ("solve {deck}", "graph {deck}")),
    "diode": Kind("Shockley's law and a Zener diode from a bundled sub-circuit", ("solve {deck}", "sweep {deck}")),
    "amplifier": Kind("an ideal op-amp", ("solve {deck}", "sweep {deck}")),
    "time": Kind("waveforms of a rectifier with a capacitor", ("tran {deck} --plot waves.png",)),
    "learning": Kind("resistors that learn from samples", ("train circuit {deck} --data {data} --out run",)),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The kind and the place."""
    shown = "\n".join(f"  {name:10}  {kind.about}" for name, kind in KINDS.items())
    parser.epilog = f"kinds:\n{shown}\n\nexamples:\n  circuitsim init rectifier\n  circuitsim init time -o my.cir\n"
    parser.add_argument("kind", metavar="KIND", choices=KINDS, help=", ".join(KINDS))
    parser.add_argument("--output", "-o", metavar="FILE", help="the deck to write (KIND.cir in the current folder)")
    parser.add_argument("--force", action="store_true", help="replace a file that exists")


def run(args: argparse.Namespace) -> int:
    """Write the deck, and its data if it has any; print what to do with it."""
    from circuitsim.cli.output import check_target, save
    from circuitsim.errors import UsageError

    deck = args.output or f"{args.kind}.cir"
    check_target(deck, [])
    targets = {os.path.join(FOLDER, f"{args.kind}.cir"): deck}
    data = os.path.join(FOLDER, f"{args.kind}.csv")
    if os.path.isfile(data):
        targets[data] = os.path.join(os.path.dirname(deck), os.path.basename(data))
    for target in targets.values():
        if os.path.lexists(target) and not args.force:
            raise UsageError(f"{target} exists; --force replaces it, --output FILE names another")
    for source, target in targets.items():
        with open(source, "rb") as file:
            save(file.read(), target)
        print(f"written: {target}")
    for line in KINDS[args.kind].commands:
        print(f"next:    circuitsim {line.format(deck=deck, data=targets.get(data))}")
    return 0
