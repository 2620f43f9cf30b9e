"""``circuitsim predict``: outputs and classes of new samples from a trained model."""

from __future__ import annotations

import argparse
import json

from circuitsim.cli.output import add_format, add_output, check_target, deliver

EPILOG = """\
FILE has the form of the training data. Circuits: .csv or .npz (targets may be missing), iris or digits.
Models of images: .npz with x, a folder of idx files, or the name of a data set (its test images).

examples:
  circuitsim train circuit netlists/learn-divider.cir --data netlists/learn-divider.csv --out run
  circuitsim predict run --data netlists/learn-divider.csv
  circuitsim evaluate run --data netlists/learn-divider.csv
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The run, the data, the format."""
    add_run(parser)
    add_format(parser, "csv", "table", "json")
    add_output(parser, "the predictions")


def add_run(parser: argparse.ArgumentParser) -> None:
    """``RUN`` and ``--data``, which ``predict`` and ``evaluate`` share."""
    parser.epilog = EPILOG
    parser.add_argument("run_directory", metavar="RUN", help="the directory given to circuitsim train --out")
    parser.add_argument("--data", metavar="FILE", required=True, help="samples, or the name of a data set")


def run(args: argparse.Namespace) -> int:
    """Print one row a sample: its number, its class if there are classes, its outputs."""
    from circuitsim.formats.columns import csv, table
    from circuitsim.trained import load_run

    check_target(args.output, [])
    model = load_run(args.run_directory)
    samples = model.read(args.data, targets=False)
    outputs = model.outputs(samples.x).tolist()
    width = len(model.classes)
    classes = [model.classes[row.index(max(row[:width]))] for row in outputs] if width else []
    if args.format == "json":
        found = {"schema": 2, "outputs": list(model.output_names), "values": outputs, "classes": classes or None}
        deliver(json.dumps(found, allow_nan=False) + "\n", args.output)
        return 0
    header = ["sample", *(["class"] if classes else []), *model.output_names]
    rows = ([str(k), *classes[k : k + 1], *row] for k, row in enumerate(outputs))
    if args.format == "csv":
        deliver(csv(header, rows), args.output)
        return 0
    shown = [[cell if isinstance(cell, str) else f"{cell:.6g}" for cell in row] for row in rows]
    deliver("\n".join(table(header, shown)) + "\n", args.output)
    return 0
