"""``circuitsim reproduce``: published experiments, run again and printed beside the paper.

A study is a module with ``add_arguments(parser)`` and ``run(args) -> exit code``, and a row in `STUDIES`.
"""

from __future__ import annotations

import argparse
from importlib import import_module

# Study → (its module, its line in the help).
STUDIES: dict[str, tuple[str, str]] = {
    "table1": ("circuitsim.cli.studies.table1", "Scellier 2024, Table 1: five deep resistive networks on MNIST"),
    "table2": ("circuitsim.cli.studies.table2", "Nest & Ernoult 2024, Table 2: deep networks on many classes"),
    "table3": ("circuitsim.cli.studies.table3", "Scellier 2024, Table 3: resistive beside Hopfield networks"),
    "cd-bias": ("circuitsim.cli.studies.cd_bias", "Fischer & Igel 2011, Figure 1: bias of CD-k and its bounds"),
    "gdu": ("circuitsim.cli.studies.gdu", "Nest & Ernoult 2024, Figure 3: nudged sweeps, backpropagation"),
    "cosine": ("circuitsim.cli.studies.cosine", "Nest & Ernoult 2024, Figure 4: EP and ID, layer by layer"),
    "forward-drop": ("circuitsim.cli.studies.forward_drop", "digits by a network of real diodes, over their drop"),
    "split": ("circuitsim.cli.studies.split", "Nest & Ernoult 2024, Table 1: one network in blocks of different sizes"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One sub-command for each study."""
    studies = parser.add_subparsers(dest="study", metavar="STUDY", required=True)
    for name, (module, line) in STUDIES.items():
        study = studies.add_parser(name, help=line, description=line + ".", allow_abbrev=False)
        loaded = import_module(module)
        loaded.add_arguments(study)
        study.set_defaults(run_study=loaded.run)


def run(args: argparse.Namespace) -> int:
    """Run the chosen study."""
    return int(args.run_study(args))
