"""``circuitsim predict``: outputs, classes and errors of samples from a trained model."""

from __future__ import annotations

import argparse
import sys

from circuitsim.cli.output import check_target, deliver
from circuitsim.errors import UsageError

EPILOG = """\
FILE is as the training data: .csv, .npz, idx files or the name of a data set. Where it has targets, the
error and the loss follow (JSON: "evaluation").

examples:
  circuitsim train circuit netlists/learn-divider.cir --data netlists/learn-divider.csv --out run
  circuitsim predict run --data netlists/learn-divider.csv
"""


OPTIONS = """
run_directory RUN  the directory given to circuitsim train --out
!--data FILE  samples, or the name of a data set
@format csv table json
@output the predictions
"""


def run(args: argparse.Namespace) -> int:
    """Print one row per sample: number, class if there are classes, outputs; then the errors."""
    from circuitsim.formats.columns import csv, table
    from circuitsim.formats.strict_json import dumps
    from circuitsim.trained import load_run

    check_target(args.output, [])
    model, why = load_run(args.run_directory), None
    try:
        samples = model.read(args.data)
    except UsageError as error:
        samples, why = model.read(args.data, targets=False), error
        print(f"note: no errors are computed: {why}", file=sys.stderr)
    outputs = model.outputs(samples.x)
    evaluation = {} if why else model.evaluate(samples, outputs)
    values, width = outputs.tolist(), len(model.classes)
    classes = [model.classes[row.index(max(row[:width]))] for row in values] if width else []
    header = ["sample", *(["class"] if classes else []), *model.output_names]
    rows = ([str(k), *classes[k : k + 1], *row] for k, row in enumerate(values))
    measures = [f"{name.replace('_', ' '):{max(map(len, evaluation))}}  {x:.6g}" for name, x in evaluation.items()]
    if args.format == "json":
        found = {"schema": 2, "outputs": list(model.output_names), "values": values, "classes": classes or None}
        deliver(dumps(found | ({"evaluation": evaluation} if evaluation else {})), args.output)
    elif args.format == "csv":
        deliver(csv(header, rows), args.output)
        print("".join(f"{line}\n" for line in measures), end="", file=sys.stderr)
    else:
        shown = [[cell if isinstance(cell, str) else f"{cell:.6g}" for cell in row] for row in rows]
        deliver("\n".join([*table(header, shown), *[""] * bool(measures), *measures]) + "\n", args.output)
    return 0
