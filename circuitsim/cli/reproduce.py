"""``circuitsim reproduce``: published experiments, repeated and printed next to the paper's results."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

from circuitsim.cli.options import add_stated, check_values, command

# Study → (its module, the object there that has ``options`` and ``run(args) -> exit code``, its line in the help).
STUDIES: dict[str, tuple[str, str, str]] = {
    "table1": ("networks", "TABLE1", "Scellier 2024, Table 1: five deep resistive networks on MNIST"),
    "table2": ("networks", "TABLE2", "Nest & Ernoult 2024, Table 2: deep networks on many classes"),
    "table3": ("networks", "TABLE3", "Scellier 2024, Table 3: resistive beside Hopfield networks"),
    "cd-bias": ("bias", "BIAS", "Fischer & Igel 2011, Figure 1: bias of CD-k and its bounds"),
    "gdu": ("gradients", "GDU", "Nest & Ernoult 2024, Figure 3: nudged sweeps, backpropagation"),
    "cosine": ("gradients", "COSINE", "Nest & Ernoult 2024, Figure 4: EP and ID, layer by layer"),
    "forward-drop": ("forward_drop", "FORWARD_DROP", "digits by a network of junction diodes, by forward drop"),
    "split": ("networks", "SPLIT", "Nest & Ernoult 2024, Table 1: one network in blocks of different sizes"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One sub-command per study, with its options."""
    studies = parser.add_subparsers(dest="study", metavar="STUDY", required=True)
    for name, (module, made, line) in STUDIES.items():
        study: Any = getattr(import_module(f"circuitsim.cli.studies.{module}"), made)
        own = studies.add_parser(name, help=line, description=line + ".", allow_abbrev=False)
        add_stated(own, study.options)
        own.set_defaults(of=study)


@command(add_arguments)
def run_reproduce(args: argparse.Namespace) -> int:
    """Run the chosen study."""
    given = {name: value for name, value in vars(args).items() if value is not None}
    check_values(given, args.of.options)
    return int(args.of.run(args))
