"""``circuitsim train circuit DECK --compare``: the gradient of a deck's loss by every method, side by side."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim.cli.deck import report
from circuitsim.cli.models import Options
from circuitsim.cli.models.circuit import Setting, estimator_of, setting_of
from circuitsim.errors import CircuitError, ConvergenceError, NoEnergyError

if TYPE_CHECKING:
    import numpy as np

    from circuitsim.learning import Estimate, GradientProblem

SAMPLES = 64
"""Default number of samples, whose mean shows each method's bias."""

SHOWN = 12
"""Number of elements in the table of derivatives."""


class Comparison(NamedTuple):
    """A gradient compared with the exact one: its norm, relative error and cosine; ``kinks`` over all samples, None
    where unknown."""

    method: str
    strength: str
    norm: float
    relative_error: float
    cosine: float
    kinks: int | None
    gradient: dict[str, float]


def compare(options: Options, given: set[str]) -> str:
    """The gradients of the mean loss over the first samples, at the deck's values, as ``options.compare`` says.

    Implicit differentiation is exact; relative errors and cosines of the other methods refer to it. Methods that do not
    apply to the circuit are left out with a note.

    Parameters
    ----------
    options : Options
    given : set of str
        Names of the options given: ``batch`` samples are used, and only one ``variant`` if it is among them.

    Raises
    ------
    ConvergenceError
        A sample without a certified operating point.
    """
    import numpy as np

    from circuitsim.learning import GradientProblem

    setting = setting_of(options)
    report(setting.warnings)
    count = options.batch if "batch" in given else SAMPLES
    x, y = (array[:count] for array in setting.samples[:2])
    free = setting.block.relax(x)
    if not free.certified.all():
        raise ConvergenceError(f"{(~free.certified).sum()} of {len(x)} samples have no certified operating point")
    problem = GradientProblem(setting.block, x, y, setting.loss, free, np.full(len(x), 1.0 / len(x)))
    variants = (options.variant,) if "variant" in given else ("centred", "positive", "negative")
    return _written(setting, _compared(setting, _estimates(options, setting, problem, variants)), str(options.compare))


def _estimates(
    options: Options, setting: Setting, problem: GradientProblem, variants: tuple[str, ...]
) -> list[tuple[str, str, Estimate]]:
    """(method, its strength, estimate) for implicit differentiation and every other applicable method."""
    rows: list[tuple[str, str, Estimate]] = []
    without: dict[str, list[str]] = {}
    plans = [("implicit", "centred"), *(("ep", variant) for variant in variants)]
    plans += [(method, "centred") for method in ("coupled", "frequency", "agnostic")]
    for method, variant in plans:
        name = f"ep {variant}" if method == "ep" else method
        share = options.kink_share if method == "ep" else None
        asked = options.but(method=method, variant=variant, kink_share=share)
        try:
            estimator, _ = estimator_of(asked, setting)
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
            many, diodes = (estimate.kinks.changes > 0).sum(), estimate.kinks.changes.sum()
            print(
                f"note: implicit is a one-sided derivative: {diodes} diodes of {many} samples are degenerate "
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


def _names(setting: Setting) -> list[str]:
    """Elements in the order of a gradient: resistors (derivatives by conductance, V²/S), sources (V²/A), parameters of
    devices (V² per unit of their coordinate)."""
    circuit = setting.block.circuit
    names = [a.name for a in setting.roles.trainable]
    kinds = {name: circuit[name].kind if name in circuit else "parameter" for name in names}
    order = {"resistor": 0, "current source": 1, "parameter": 2}
    return sorted(names, key=lambda name: order[kinds[name]])


def _compared(setting: Setting, rows: list[tuple[str, str, Estimate]]) -> list[Comparison]:
    """All gradients compared with the first."""
    import numpy as np

    names, found = _names(setting), []
    vectors: list[np.ndarray] = [np.concatenate(list(estimate.parameters.values())) for _, _, estimate in rows]
    size = float(np.linalg.norm(vectors[0]))
    for (name, strength, estimate), vector in zip(rows, vectors):
        norm = float(np.linalg.norm(vector))
        off = float(np.linalg.norm(vector - vectors[0])) / size if size else float(norm > 0.0)
        cosine = float(vector @ vectors[0]) / (norm * size) if norm and size else float(norm == size)
        kinks = None if estimate.kinks is None else int(estimate.kinks.changes.sum())
        found.append(Comparison(name, strength, norm, off, cosine, kinks, dict(zip(names, vector.tolist()))))
    return found


def _written(setting: Setting, found: list[Comparison], form: str) -> str:
    from circuitsim.formats.columns import csv, table
    from circuitsim.formats.strict_json import dumps

    title, names = setting.block.circuit.title, list(found[0].gradient)
    if form == "json":
        return dumps({"schema": 2, "title": title, "methods": [c._asdict() for c in found]})
    header = [*Comparison._fields[:-1], *names]
    if form == "csv":
        return csv(header, [[*c[:-1], *c.gradient.values()] for c in found])
    formats = ("", "", ".6g", ".2e", ".6f", "")
    lines = [
        ["" if value is None else format(value, form) for value, form in zip(c, formats)]
        + [f"{g:.5g}" for g in list(c.gradient.values())[:SHOWN]]
        for c in found
    ]
    header = ["method", "strength", "norm", "rel. error", "cosine", "kinks", *names[:SHOWN]]
    more = len(names) - SHOWN
    tail = [f"… and {more} more elements (--compare csv has all)"] if more > 0 else []
    return "\n".join([title, *table(header, lines), *tail, ""])
