"""``circuitsim gradient``: the gradient of a deck's loss by every method, side by side."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim.cli import learning
from circuitsim.cli.deck import report
from circuitsim.cli.options import OptionGroup, check_values
from circuitsim.cli.output import add_format, add_output, check_target, deliver
from circuitsim.errors import CircuitError, ConvergenceError, NoEnergyError, UsageError

if TYPE_CHECKING:
    from circuitsim.cli.learning import Setting
    from circuitsim.learning import Estimate, GradientProblem

EPILOG = """\
The gradient of the mean loss over the first --samples of the data, at the deck's values. Implicit differentiation
is exact; the relative error and the cosine of the other methods are against it. kinks: diodes that change between
the phases, over all samples; of implicit differentiation diodes without current and voltage.

examples:
  circuitsim gradient my.cir --data samples.csv
  circuitsim gradient my.cir --data samples.csv --beta 1m --nudge resistor --format csv
"""

SHOWN = 12
"""Elements whose derivatives the table for people shows."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``gradient``."""
    parser.epilog = EPILOG
    parser.add_argument("deck", metavar="DECK", help="a SPICE deck with inputs, outputs and trainable elements")
    options = OptionGroup(parser, {})
    learning.add_learning(options)
    options.add_argument("--samples", type=int, metavar="N", default=64, help="samples to take (64)")
    options.add_argument("--seed", type=int, metavar="N", default=0, help="of the random numbers of --scatter (0)")
    parser.set_defaults(readings=options.readings)
    add_format(parser, "table", "csv", "json")
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Print the gradients."""
    import numpy as np

    from circuitsim.learning import GradientProblem

    check_target(args.output, [args.deck])
    check_values(vars(args), args.readings)
    options = {**learning.DEFAULTS, "_given": set(vars(args)), **vars(args)}
    if options["samples"] < 1:
        raise UsageError(f"--samples must be at least 1, not {options['samples']}")
    setting = learning.setting_of(options)
    report(setting.warnings)
    x, y = (array[: options["samples"]] for array in setting.samples[:2])
    free = setting.block.relax(x)
    if not free.certified.all():
        uncertified = int((~free.certified).sum())
        raise ConvergenceError(f"{uncertified} of {len(x)} samples have no certified operating point")
    problem = GradientProblem(setting.block, x, y, setting.loss, free, np.full(len(x), 1.0 / len(x)))
    rows = _estimates(options, setting, problem)
    write = {"table": _table, "csv": _csv, "json": _json}[args.format]
    deliver(write(setting, rows), args.output)
    return 0


Row = tuple[str, str, Any]


def _estimates(options: dict[str, Any], setting: Setting, problem: GradientProblem) -> list[Row]:
    """(method, its strength, estimate) for implicit differentiation and every other method that fits."""
    rows: list[Row] = []
    without: dict[str, list[str]] = {}
    variants = ("centred", "positive", "negative") if "variant" not in options["_given"] else (options["variant"],)
    plans = [("implicit", "")] + [("ep", variant) for variant in variants]
    plans += [(method, "") for method in ("coupled", "frequency", "agnostic")]
    for method, variant in plans:
        asked = {**options, "method": method, "variant": variant or "centred"}
        if method != "ep":
            asked["kink_share"] = None
        name = f"ep {variant}" if variant else method
        try:
            estimator, _ = learning.estimator_of(asked, setting)
        except NoEnergyError as error:
            without.setdefault(str(error), []).append(name)
            continue
        try:
            estimate = estimator.estimate(problem)
        except CircuitError as error:
            without.setdefault(str(error), []).append(name)
            continue
        if not estimate.certified.all():
            without.setdefault("a state is not certified", []).append(name)
            continue
        if method == "implicit" and estimate.kinks is not None and estimate.kinks.changes.any():
            count, diodes = int((estimate.kinks.changes > 0).sum()), int(estimate.kinks.changes.sum())
            print(
                f"note: implicit is the derivative on one side: {diodes} diodes of {count} samples are at a kink "
                "(no current, no voltage)",
                file=sys.stderr,
            )
        rows.append((name, _strength(estimator, estimate), estimate))
    for why, names in without.items():
        print(f"note: {', '.join(names)} {'is' if len(names) == 1 else 'are'} left out: {why}", file=sys.stderr)
    return rows


def _strength(estimator: Any, estimate: Estimate) -> str:
    names = ("beta", "eta", "gamma", "epsilon")
    values = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
    if estimate.beta is not None:
        values["beta"] = estimate.beta
    return ", ".join(f"{name} {value:.3g}" for name, value in values.items())


def _vector(estimate: Estimate) -> Any:
    import numpy as np

    return np.concatenate(list(estimate.parameters.values()))


def _names(setting: Setting) -> list[str]:
    """Elements in the order of `_vector`: resistors (derivatives by conductance, V²/S), sources (V²/A), parameters of
    devices (V² per unit of their coordinate)."""
    circuit = setting.block.circuit
    names = [a.name for a in setting.roles.trainable]
    kinds = {name: circuit[name].kind if name in circuit else "parameter" for name in names}
    order = {"resistor": 0, "current source": 1, "parameter": 2}
    return sorted(names, key=lambda name: order[kinds[name]])


class Comparison(NamedTuple):
    """A gradient beside the first row's: its norm, relative error and cosine; ``kinks`` over all samples, None where
    they are not known."""

    name: str
    strength: str
    vector: Any
    norm: float
    relative_error: float
    cosine: float
    kinks: int | None


def _compared(rows: list[Row]) -> list[Comparison]:
    """All gradients against the first."""
    import numpy as np

    exact = _vector(rows[0][2])
    size = float(np.linalg.norm(exact))
    found = []
    for name, strength, estimate in rows:
        vector = _vector(estimate)
        norm = float(np.linalg.norm(vector))
        off = float(np.linalg.norm(vector - exact)) / size if size else float(norm > 0.0)
        cosine = float(vector @ exact) / (norm * size) if norm and size else float(norm == size)
        kinks = None if estimate.kinks is None else int(estimate.kinks.changes.sum())
        found.append(Comparison(name, strength, vector, norm, off, cosine, kinks))
    return found


def _table(setting: Setting, rows: list[Row]) -> str:
    from circuitsim.formats.columns import table

    names = _names(setting)[:SHOWN]
    lines = [
        [
            c.name,
            c.strength,
            f"{c.norm:.6g}",
            f"{c.relative_error:.2e}",
            f"{c.cosine:.6f}",
            "" if c.kinks is None else str(c.kinks),
            *(f"{g:.5g}" for g in c.vector[:SHOWN]),
        ]
        for c in _compared(rows)
    ]
    header = ["method", "strength", "norm", "rel. error", "cosine", "kinks", *names]
    more = len(setting.roles.trainable) - SHOWN
    tail = [f"… and {more} more elements (--format csv has all)"] if more > 0 else []
    return "\n".join([setting.block.circuit.title, *table(header, lines), *tail, ""])


def _csv(setting: Setting, rows: list[Row]) -> str:
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["method", "strength", "norm", "relative_error", "cosine", "kinks", *_names(setting)])
    for c in _compared(rows):
        writer.writerow([c.name, c.strength, c.norm, c.relative_error, c.cosine, c.kinks, *c.vector.tolist()])
    return text.getvalue()


def _json(setting: Setting, rows: list[Row]) -> str:
    from circuitsim.formats.strict_json import dumps

    names = _names(setting)
    methods = [{**c._asdict(), "gradient": dict(zip(names, c.vector.tolist()))} for c in _compared(rows)]
    for method in methods:
        method["method"] = method.pop("name")
        del method["vector"]
    return dumps({"schema": 2, "title": setting.block.circuit.title, "methods": methods})
