"""The benchmark: families of circuits, competitors, measurements whose error is verified, and a report on them."""

from circuitsim.bench.competitors import (
    CVXPY_BACKENDS,
    CVXPY_KINDS,
    NGSPICE,
    OURS,
    NoAnswer,
    create,
    missing,
    tolerances,
)
from circuitsim.bench.runner import machine, new_values, times, verified_error

__all__ = [
    "CVXPY_BACKENDS",
    "CVXPY_KINDS",
    "NGSPICE",
    "OURS",
    "NoAnswer",
    "create",
    "machine",
    "missing",
    "new_values",
    "times",
    "tolerances",
    "verified_error",
]
