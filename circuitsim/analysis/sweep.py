"""Operating points over ranges of element values and parameters: one prepared structure, results as columns."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from circuitsim.analysis.probes import Formula, Probe, all_probes, parse_probes
from circuitsim.analysis.sweep_axes import Combinations
from circuitsim.analysis.sweep_points import Job, Rows, Solved, blocks, decoded, encoded, solve_block
from circuitsim.analysis.sweep_result import Failure, Sweep
from circuitsim.arguments import QUANTITIES, anything, table
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.source import analysis, circuit_of
from circuitsim.errors import Problem, UsageError
from circuitsim.netlist.deck import OVER_TIME, STEADY, TIME, Deck, Vary, columns_of, memory, ranges_of, warn_of_time

if TYPE_CHECKING:
    from concurrent.futures import Executor

MAX_POINTS = 1_000_000
MAX_VALUES = 50_000_000
"""Points × columns that a sweep may hold (400 MB)."""


@analysis(vary=table(anything, "{'V1': [0, 5]}"), columns=QUANTITIES)
def sweep(
    source: Circuit | Deck,
    vary: Mapping[str | tuple[str, ...], Sequence[Any]] | None = None,
    columns: str | Sequence[str] | None = None,
    solver: str = "auto",
    tolerance: float = TOLERANCE,
    progress: Callable[[int, int], None] | None = None,
    workers: int | None = 1,
    executor: Executor | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    **values: Sequence[Any],
) -> Sweep:
    """Operating points at all combinations of the varied values.

    Parameters
    ----------
    source : Circuit or Deck
        A deck also lets its parameters vary.
    vary : dict of str to sequence of float, optional
        By default what a deck's ``.dc``, ``.step`` and ``.temp`` cards vary. Values by element name (of
        a deck: those of its card, of which ``m=`` and temperature make the element's), by
        device parameter (``D1.vfwd``), by parameter of the deck (``param:NAME`` where an
        element has the name too), of its temperature (``temp``, °C), or of the time (``time``, s) at which its sources
        are taken. A tuple of names takes rows of one value for each. The first runs fastest, as in ``.dc``.
    columns : str or sequence of str, optional
        What to keep: ``"v(out) v(a,b) i(R1) p(R1)"``; by default what a deck's ``.print`` names, else all node voltages
        and currents.
    solver, tolerance
        As for `circuitsim.solve`.
    progress : callable, optional
        Called with the number of points done and the total.
    workers : int, optional
        Processes; 1: only this one; None: a thread per processor. Results do not depend on it. With controlled
        sources the rows follow one another in one task.
    executor : concurrent.futures.Executor, optional
        Runs the tasks, in place of ``workers``.
    checkpoint : path, optional
        A folder for finished blocks of rows: the same call resumes after them.
    **values : sequence of float
        More of ``vary``, by names that Python can write: ``sweep(circuit, V1=[0, 5])``.

    Returns
    -------
    Sweep
        Points without a steady state are rows marked with their status, not errors.

    Raises
    ------
    UsageError, TopologyError
        Unknown names, values out of range, too many points, a checkpoint of another sweep.
    WorkerError
        A worker process was killed.

    Examples
    --------
    >>> from circuitsim import Circuit, sweep
    >>> c = Circuit("half-wave rectifier")
    >>> c.voltage_source("V1", "in", "0", 1.0)
    >>> c.diode("D1", "in", "out")
    >>> c.resistor("R1", "out", "0", 1e3)
    >>> sweep(c, columns="v(out)", V1=[-1.0, 0.0, 2.0])["v(out)"].tolist()
    [0.0, 0.0, 2.0]
    """
    circuit = circuit_of(source)
    asked: Vary = dict(vary or {})
    asked.update(values)
    if not asked and isinstance(source, Deck):
        asked = ranges_of(source)
        if TIME in asked and memory(circuit):
            raise UsageError("the deck has a .tran: use circuitsim.transient, or transient_sweep for .step")
    if TIME not in asked:
        warn_of_time(source)
    if columns is None and isinstance(source, Deck):
        stated = columns_of(source, OVER_TIME if TIME in asked else STEADY)
        columns = None if stated is None else [stated]
    grid = Combinations.of(asked, source)
    axes, points = grid.axes, grid.points
    if not isinstance(source, Deck) and circuit.dynamics is not None:
        circuit.dynamics.check_changes([axis.name for axis in axes])
    probes = _probes(columns, source)
    if points > MAX_POINTS or points * len(probes) > MAX_VALUES:
        raise UsageError(
            f"the sweep has {points:,} points of {len(probes):,} columns; at most {MAX_POINTS:,} points and "
            f"{MAX_VALUES:,} values fit: take larger steps or fewer columns"
        )
    varied = grid.varied()
    bare = tuple(axis._replace(values=axis.values[:0]) for axis in axes)
    job = Job(source, bare, tuple(probes), solver, tolerance)
    table, failures, warnings = _solved(job, varied, progress, (workers, executor), checkpoint)
    return Sweep(
        circuit.title,
        {axis.label: values for axis, values in zip(axes, varied)},
        {str(probe): table[k] for k, probe in enumerate(probes)},
        {axis.label: axis.unit for axis in axes} | {str(probe): probe.unit for probe in probes},
        failures,
        warnings,
        grid.shape,
    )


def _probes(columns: Sequence[str] | None, source: Circuit | Deck) -> list[Probe | Formula]:
    circuit = circuit_of(source)
    if columns is None:
        return [*all_probes(circuit)]
    found = parse_probes(" ".join(columns), circuit)
    if not found:
        raise UsageError("no columns: name at least one, for instance v(out)")
    return found


def _solved(
    job: Job,
    varied: np.ndarray,
    progress: Callable[[int, int], None] | None,
    where: tuple[int | None, Executor | None],
    checkpoint: str | os.PathLike[str] | None,
) -> Solved:
    """All rows (n_axes, n_rows), here or elsewhere."""
    # Here: a single operating point needs no modules of processes.
    from circuitsim.points import Journal, computed

    points = varied.shape[1]
    journal = None if checkpoint is None else Journal(Path(checkpoint), (job, varied), encoded, decoded)
    tables: list[np.ndarray] = []
    failures: list[Failure] = []
    warnings: dict[str, Problem] = {}
    (workers, executor), rows = where, Rows(job)

    def solve_here(block: tuple[int, np.ndarray]) -> Solved:
        return rows.solve(block, None if progress is None else lambda done: progress(done, points))

    here = workers == 1 and executor is None
    for solved in computed(
        solve_here if here else partial(solve_block, job), blocks(job, varied), workers, executor, journal
    ):
        tables.append(solved.table)
        failures += solved.failures
        for warning in solved.warnings:
            warnings.setdefault(str(warning), warning)
        if progress is not None and not here:
            progress(sum(table.shape[1] for table in tables), points)
    return Solved(np.concatenate(tables, axis=1), failures, [*warnings.values()])


__all__ = ["MAX_POINTS", "MAX_VALUES", "Failure", "Sweep", "sweep"]
