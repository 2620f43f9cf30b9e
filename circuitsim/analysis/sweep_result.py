"""The table of a sweep."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from circuitsim.analysis.operating_point import Status, cause_of, status_of, warning_to_dict
from circuitsim.errors import CircuitError, Problem, look_up
from circuitsim.formats.result import Result
from circuitsim.formats.table import Table


class Failure(NamedTuple):
    """A point without an operating point: its row, and the error."""

    row: int
    error: CircuitError

    @property
    def status(self) -> Status:
        """``INFEASIBLE``, ``UNBOUNDED`` or ``NOT_CONVERGED``."""
        return status_of(self.error)


def ends_before(values: Mapping[str, float]) -> str:
    """How the warning of a jump to the point at these values begins."""
    at = ", ".join(f"{name} = {value:g}" for name, value in values.items())
    return f"the branch of operating points ends before {at}"


@dataclass(eq=False, repr=False)
class Sweep(Result):
    """The rows of a sweep as columns.

    Attributes
    ----------
    title : str
        Title of the circuit.
    axes : dict of str to (n_rows,) float array
        The varied values, Ω, V, A or the parameter's unit; the first runs fastest.
    columns : dict of str to (n_rows,) float array
        ``v(node)`` in V, ``i(element)`` in A, ``p(element)`` in W; nan in rows without an operating point.
    units : dict of str to str
        Unit of each axis (empty for parameters) and column.
    failures : sequence of Failure
    warnings : sequence of Problem
        Warnings about the operating points, each once.
    shape : tuple of int
        Number of values of each axis, in the order of ``axes``.
    measured : Sweep or None
        Measurements over the first axis, a row for all values of the others, if `circuitsim.run` makes them.
    """

    PICTURE = "plot_sweep"

    title: str
    axes: dict[str, np.ndarray]
    columns: dict[str, np.ndarray]
    units: dict[str, str]
    failures: Sequence[Failure]
    warnings: Sequence[Problem]
    shape: tuple[int, ...]
    measured: Sweep | None = None

    @cached_property
    def status(self) -> tuple[Status, ...]:
        """The status of each row."""
        failed = {failure.row: failure.status for failure in self.failures}
        return tuple(failed.get(row, Status.SOLVED) for row in range(len(self)))

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __getitem__(self, name: str) -> np.ndarray:
        """A column (or an axis) by name; case does not matter.

        Raises
        ------
        UsageError
            No such column.
        """
        return look_up(name, self.axes | self.columns, "sweep")

    def grid(self, name: str) -> np.ndarray:
        """A column as an array with one axis for each swept name, in the order of ``axes``."""
        return self[name].reshape(self.shape[::-1]).transpose()

    def _jumps(self) -> np.ndarray:
        """The rows to which the operating point jumps, where the branch before them ends (n_rows,)."""
        found = np.zeros(len(self), dtype=bool)
        said = {warning.message.partition(":")[0] for warning in self.warnings if warning.kind == "jump"}
        for row in range(len(self)) if said else ():
            found[row] = ends_before({name: values[row] for name, values in self.axes.items()}) in said
        return found

    def rows(self) -> Iterator[list[Any]]:
        """Axes, status and columns of each row."""
        return map(list, self.tables()["points"].rows())

    @property
    def header(self) -> list[str]:
        """Names of what `rows` yields."""
        return [*self.axes, "status", *self.columns]

    def to_dict(self) -> dict[str, Any]:
        """The sweep as plain values: the JSON object of ``circuitsim sweep --format json`` (None where unsolved,
        or where a measurement failed)."""
        return {
            "schema": 2,
            "title": self.title,
            "axes": {name: values.tolist() for name, values in self.axes.items()},
            "status": [status.value for status in self.status],
            "columns": {
                name: [None if math.isnan(value) else value for value in values.tolist()]
                for name, values in self.columns.items()
            },
            "failures": [
                {"row": f.row, "status": f.status.value, "message": str(f.error), "cause": cause_of(f.error)}
                for f in self.failures
            ],
            "warnings": [warning_to_dict(warning) for warning in self.warnings],
        }

    def tables(self) -> dict[str, Table]:
        """``points``: the axes, ``status``, and the columns (nan where unsolved); and ``measurements``, if any."""
        status = [status.value for status in self.status]
        units = tuple(self.units.get(name, "") for name in self.header)
        points = Table(tuple(self.header), units, (*self.axes.values(), status, *self.columns.values()))
        return {"points": points} | (
            {} if self.measured is None else {"measurements": self.measured.tables()["points"]}
        )

    def _picture(self) -> str:
        return super()._picture() if self.columns and self.shape[0] > 1 else ""

    def _heading(self) -> tuple[str, str]:
        over = " × ".join(f"{name} ({n})" for name, n in zip(self.axes, self.shape))
        failed = f", {len(self.failures)} without an operating point" if self.failures else ""
        return self.title, f"{over}, {len(self)} points, {len(self.columns)} columns{failed}"

    def _proof(self) -> str:
        return "certified: every point whose status is solved"
