"""Errors of exit code 3 as values: what `Status` they stand for, and their witness."""

from __future__ import annotations

from circuitsim.analysis.operating_point import Status
from circuitsim.errors import CircuitError, InfeasibleError, NoOperatingPointError, NoSteadyStateError, UnboundedError


def status_of(error: CircuitError) -> Status:
    """``INFEASIBLE``, ``UNBOUNDED`` or ``NOT_CONVERGED``."""
    if isinstance(error, InfeasibleError) or (isinstance(error, NoOperatingPointError) and error.proven):
        return Status.INFEASIBLE
    return Status.UNBOUNDED if isinstance(error, UnboundedError) else Status.NOT_CONVERGED


def cause_of(error: CircuitError) -> dict[str, object] | None:
    """The witness as it stands in the JSON output; None for an error without one."""
    return error.cause if isinstance(error, NoSteadyStateError) else None
