"""``circuitsim evaluate``: error and loss of a trained model on samples with targets."""

from __future__ import annotations

import argparse
import json

from circuitsim.cli.output import add_format
from circuitsim.cli.predict import add_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The run, the data, the format."""
    add_run(parser)
    add_format(parser, "table", "json")


def run(args: argparse.Namespace) -> int:
    """Print each measure on a line."""
    from circuitsim.trained import load_run

    model = load_run(args.run_directory)
    found = model.evaluate(model.read(args.data))
    if args.format == "json":
        print(json.dumps({"schema": 2, **found}, allow_nan=False))
        return 0
    width = max(map(len, found))
    for name, value in found.items():
        print(f"{name.replace('_', ' '):{width}}  {value:.6g}")
    return 0
