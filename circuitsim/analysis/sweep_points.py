"""The rows of a sweep: blocks of them, which any process can solve."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from circuitsim.analysis.branches import Branch
from circuitsim.analysis.probes import Formula, Probe, Reader
from circuitsim.analysis.solve import prepared
from circuitsim.analysis.sweep_axes import Axis, Sort, elaborated, values_at
from circuitsim.analysis.sweep_result import Failure
from circuitsim.circuit import Circuit
from circuitsim.errors import ConvergenceError, NoSteadyStateError, Problem
from circuitsim.journal import problems_of, text_of

if TYPE_CHECKING:
    from circuitsim.analysis.amplified import PreparedAmplified
    from circuitsim.analysis.controlled import PreparedControlled
    from circuitsim.analysis.expanded import PreparedExpanded
    from circuitsim.analysis.solve import Prepared
    from circuitsim.netlist.deck import Deck

    Ready = Prepared | PreparedAmplified | PreparedControlled | PreparedExpanded

BLOCKS = 64
"""Blocks of a sweep, if it has as many rows."""

LARGEST = 256
"""Most rows of a block."""


class Job(NamedTuple):
    """What all rows have in common; travels to other processes.

    Attributes
    ----------
    source : Circuit or Deck
    axes : tuple of Axis
        Without their values.
    probes : tuple of Probe or Formula
    solver : str
    tolerance : float
    """

    source: Circuit | Deck
    axes: tuple[Axis, ...]
    probes: tuple[Probe | Formula, ...]
    solver: str
    tolerance: float

    @property
    def follows_branch(self) -> bool:
        """Whether a row starts at the operating point of the row before: controlled sources are there."""
        source = self.source
        return bool((source if isinstance(source, Circuit) else source.all_controlled()[0]).laws)


class Block(NamedTuple):
    """Rows ``first`` … and their values (n_axes, n_rows)."""

    job: Job
    first: int
    varied: np.ndarray


class Solved(NamedTuple):
    """Columns (n_probes, n_rows) of a block, its failures, and its warnings, each text once."""

    table: np.ndarray
    failures: list[Failure]
    warnings: list[Problem]


def blocks(job: Job, varied: np.ndarray) -> Iterator[Block]:
    """A sweep's rows in blocks, which depend on their number alone; one block where a branch is followed."""
    points = varied.shape[1]
    size = points if job.follows_branch else max(1, min(points // BLOCKS, LARGEST))
    for first in range(0, points, size):
        yield Block(job, first, varied[:, first : first + size])


def solve_block(block: Block, progress: Callable[[int], None] | None = None) -> Solved:
    """Solve every row of a block; ``progress`` is called with the rows done."""
    job, first, varied = block
    table = np.full((len(job.probes), varied.shape[1]), np.nan)
    failures: list[Failure] = []
    warnings: dict[str, Problem] = {}
    branch = Branch()
    for row, values, ready, reader in _points(job, varied):
        try:
            point = ready.solve(values, branch.last)
        except (NoSteadyStateError, ConvergenceError) as error:
            failures.append(Failure(first + row, error))
        else:
            table[:, row] = reader.read(point)
            for warning in branch.take(values, point):
                warnings.setdefault(str(warning), warning)
        if progress is not None:
            progress(row + 1)
    return Solved(table, failures, [*warnings.values(), *branch.warnings()])


def _points(job: Job, varied: np.ndarray) -> Iterator[tuple[int, dict[str, float], Ready, Reader]]:
    """Row, element values, and the prepared circuit, which only other parameters make anew."""
    axes = job.axes
    settings = [k for k, axis in enumerate(axes) if axis.sort in (Sort.PARAMETER, Sort.TEMPERATURE)]
    groups = itertools.groupby(enumerate(varied.T.tolist()), key=lambda item: tuple(item[1][k] for k in settings))
    for setting, rows in groups:
        circuit, following = elaborated(job.source, [axes[k] for k in settings], setting)
        formulas = following is not None and any(isinstance(probe, Formula) for probe in job.probes)
        names = following.names() if following is not None and formulas else {}
        ready, reader = prepared(circuit, job.solver, job.tolerance), Reader(job.probes, circuit, names)
        for row, values in rows:
            yield row, values_at(axes, values, following), ready, reader


def encoded(solved: Solved) -> dict[str, np.ndarray] | None:
    """A block as arrays; None with failures, whose errors are found again by solving the block again."""
    return None if solved.failures else {"table": solved.table, "warnings": text_of(solved.warnings)}


def decoded(arrays: dict[str, np.ndarray]) -> Solved:
    """The block of `encoded`."""
    return Solved(arrays["table"], [], problems_of(arrays["warnings"]))


__all__ = ["Block", "Job", "Solved", "blocks", "decoded", "encoded", "solve_block"]
