"""Waveforms of several runs: ``tran`` with ``--vary`` or ``.step``, ``sweep`` of a deck with ``.tran``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from circuitsim.cli.deck import report
from circuitsim.cli.output import present
from circuitsim.cli.progress import INTERRUPTED, Interrupt, LateProgress
from circuitsim.cli.workers import workers_of
from circuitsim.errors import ConvergenceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from circuitsim.analysis import Sweep
    from circuitsim.netlist.deck import Deck


def run_all(args: argparse.Namespace, deck: Deck, vary: Mapping[Any, Any], columns: str | None, **options: Any) -> int:
    """Run transients of a deck at all combinations of varied values, and print the requested output: waveforms, changes
    of diodes, or measurements.

    Raises
    ------
    ConvergenceError
        Some run failed; the others are printed.
    """
    from circuitsim.cli.over_time import answerable, lower_names, warner
    from circuitsim.netlist.deck import measurements_of
    from circuitsim.time_domain.deck import setting
    from circuitsim.time_domain.stepped import transient_sweep

    own = setting(deck, options.get("step"), options.get("stop"), options.get("initial"))
    span, moving = (own.begin, own.grid.stop), [*map(str, vary), *deck.parameters]  # parameters may depend on others
    wanted, _ = answerable(own.circuit, span, warner(deck), measurements_of(deck, "tran"), lower_names(deck), moving)
    wanted += args.measure
    pool = workers_of(args.workers, getattr(args, "dask", None))
    with Interrupt() as interrupt, LateProgress("tran") as line, pool as (workers, executor):
        found = transient_sweep(
            deck,
            vary,
            columns,
            wanted,
            tolerance=args.tolerance,
            progress=interrupt.watch(line),
            workers=workers or 1,
            executor=executor,
            **options,
        )
    report(found.measured.warnings)
    if getattr(args, "events", False):
        present(found, args, [found.events])
    else:
        present_runs(found.measured if args.measure else found.waves, found.measured, args)
    if interrupt.asked:
        print(f"interrupted after {len(found.measured)} runs; results so far", file=sys.stderr)
    check_runs(found.measured, "runs ended with an error")
    return INTERRUPTED if interrupt.asked else 0


def present_runs(
    chosen: Sweep, measured: Sweep, args: argparse.Namespace, figure: Callable[[], Figure] | None = None
) -> None:
    """Write the columns of several runs, or with ``--measure`` their measurements; those of the deck are a table below,
    in JSON, otherwise a line per run on standard error."""
    columns = {} if args.measure else measured.to_dict()["columns"]
    more = {"measurements": columns} if columns else {}
    tables = [found.tables()["points"] for found in (chosen, measured)[: 1 + bool(columns)]]
    present(chosen, args, tables, more, figure=figure, whole=True)
    failed = {failure.row for failure in measured.failures}
    for row in range(len(measured)) if columns and args.format in ("csv", "raw") else ():
        values = ((name, float(column[row])) for name, column in measured.columns.items())
        said = ", ".join(f"{name} = {'failed' if value != value else f'{value:g}'}" for name, value in values)
        if row not in failed:
            print(f"measured at {_place(measured, row)}: {said}", file=sys.stderr)


def check_runs(found: Sweep, what: str) -> None:
    """Refuse a result with failed runs or points.

    Raises
    ------
    ConvergenceError
        The number and kind of failures, and the first one.
    """
    if found.failures:
        first = found.failures[0]
        count = f"{len(found.failures)} of {len(found)} {what}"
        raise ConvergenceError(f"{count}; the first, at {_place(found, first.row)}: {first.error}")


def _place(runs: Sweep, row: int) -> str:
    """The values of a run."""
    return ", ".join(f"{name}={values[row]:g}" for name, values in runs.axes.items()) or "the deck's values"
