"""Waveforms of several runs: ``tran`` with ``--vary`` or ``.step``, ``sweep`` of a deck with ``.tran``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim.cli.output import present
from circuitsim.cli.progress import INTERRUPTED, Interrupt, LateProgress
from circuitsim.cli.workers import workers_of
from circuitsim.errors import ConvergenceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from circuitsim.analysis import Sweep
    from circuitsim.netlist.deck import Deck


class Shown(NamedTuple):
    """What is shown of the runs.

    Attributes
    ----------
    columns : str or None
        Of the waveforms; None: all.
    events : bool
        Changes of diodes in place of waveforms.
    measure : sequence of str
        Measurements in place of waveforms; empty: waveforms, and on standard error the measurements of the deck.
    """

    columns: str | None
    events: bool = False
    measure: Sequence[str] = ()


def run_all(args: argparse.Namespace, deck: Deck, vary: Mapping[Any, Any], shown: Shown, **options: Any) -> int:
    """Run a deck through time at all combinations of varied values, and print what is asked for.

    Raises
    ------
    ConvergenceError
        Some run ended with an error; the others are printed.
    """
    from circuitsim.cli.over_time import answerable, lower_names
    from circuitsim.netlist.requests import measurements_of
    from circuitsim.time_domain.deck import setting
    from circuitsim.time_domain.stepped import transient_sweep

    own = setting(deck, options.get("step"), options.get("stop"), options.get("initial"))
    span, moving = (own.begin, own.grid.stop), [*map(str, vary), *deck.parameters]  # parameters follow others
    wanted, _ = answerable(own.circuit, span, measurements_of(deck, "tran"), lower_names(deck), moving)
    wanted += shown.measure
    pool = workers_of(args.workers, getattr(args, "dask", None))
    with Interrupt() as interrupt, LateProgress("tran") as line, pool as (workers, executor):
        found = transient_sweep(
            deck,
            vary,
            shown.columns,
            wanted,
            tolerance=args.tolerance,
            progress=interrupt.watch(line),
            workers=workers or 1,
            executor=executor,
            **options,
        )
    chosen = found.measured if shown.measure else found.waves
    if shown.events:
        present(chosen, args, [found.events])
    else:
        present_runs(chosen, found.measured, args)
    if interrupt.asked:
        print(f"interrupted after {len(found.measured)} runs: what is shown ends there", file=sys.stderr)
    failed = found.measured.failures
    if failed:
        raise ConvergenceError(
            f"{len(failed)} of {len(found.measured)} runs ended with an error; the first, at "
            f"{_place(found.measured, failed[0].row)}: {failed[0].error}"
        )
    return INTERRUPTED if interrupt.asked else 0


def present_runs(
    chosen: Sweep, measured: Sweep, args: argparse.Namespace, figure: Callable[[], Figure] | None = None
) -> None:
    """Write the columns of several runs, or with ``--measure`` their measurements; those of the deck are in JSON, else
    a line a run on standard error."""
    columns = {} if args.measure else measured.to_dict()["columns"]
    present(chosen, args, more={"measurements": columns} if columns else {}, figure=figure)
    failed = {failure.row for failure in measured.failures}
    for row in range(len(measured)) if columns and args.format != "json" else ():
        values = ((name, float(column[row])) for name, column in measured.columns.items())
        said = ", ".join(f"{name} = {'failed' if value != value else f'{value:g}'}" for name, value in values)
        if row not in failed:
            print(f"measured at {_place(measured, row)}: {said}", file=sys.stderr)


def _place(runs: Sweep, row: int) -> str:
    """The values of a run."""
    return ", ".join(f"{name}={values[row]:g}" for name, values in runs.axes.items()) or "the deck's values"
