"""Competitors, one small adapter a file. Each turns a circuit into node voltages; none is believed.

An adapter is a class with the attributes of `Competitor`. Whatever it raises is a failure with a text, never a ratio.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.errors import UsageError


class Competitor(Protocol):
    """A solver under test.

    Attributes
    ----------
    tolerances : tuple of float or None
        What to ask for, in turn, until the verified error is small enough; None is the solver's own default.
    approximate : bool
        Solves a neighbouring problem (diodes that are not ideal): timed, but never counted as an equally good answer.
    """

    tolerances: tuple[float | None, ...]
    approximate: bool = False

    def build(self, circuit: Circuit, tolerance: float | None) -> None:
        """Model the circuit and set the solver up."""
        ...

    def solve(self) -> np.ndarray:
        """Node potentials (n_nodes,), V."""
        ...

    def update(self, value: np.ndarray) -> None:
        """Take new source values: the whole value column (m,), of which only V and I differ from the circuit's."""
        ...


class NoAnswer(Exception):
    """A competitor that gave up, with its own words."""


OURS = "circuitsim"

CVXPY_KINDS = ("cvxpy", "cvxpy-dpp", "cvxpy-nodal", "cvxpy-nodal-dpp")
"""Ways to write the problem (`cvxpy_problem.FORMS`): sum of squares or nodal matrix, with constants or parameters."""
CVXPY_BACKENDS = {
    "CLARABEL": "clarabel",
    "PIQP": "piqp",
    "OSQP": "osqp",
    "SCS": "scs",
    "HIGHS": "highspy",
    "DAQP": "daqp",
}
"""Name in cvxpy → package."""
TABLE: dict[str, tuple[str, str, tuple[str, ...]]] = {
    OURS: ("ours", "", ()),
    **{
        f"{kind}:{backend}": ("cvxpy_problem", f"{kind}:{backend}", ("cvxpy", package))
        for kind in CVXPY_KINDS
        for backend, package in CVXPY_BACKENDS.items()
    },
    "piqp": ("direct_piqp", "", ("piqp",)),
    "osqp": ("direct_osqp", "", ("osqp",)),
    "clarabel": ("direct_clarabel", "", ("clarabel",)),
    "daqp": ("direct_daqp", "", ("daqp",)),
    "ngspice": ("spice", "", ()),
}
"""Name → (module, argument, packages it needs)."""


def expand(asked: str) -> list[str]:
    """The competitors that ``--against`` names; ``cvxpy`` stands for all its backends and all `CVXPY_KINDS`.

    Raises
    ------
    UsageError
        An unknown name.
    """
    chosen: dict[str, None] = {OURS: None}
    for word in filter(None, (part.strip() for part in asked.split(","))):
        group = [name for name in TABLE if name == word or (":" in name and name.partition(":")[0] == word)]
        if word == "cvxpy":
            group = [name for name in TABLE if name.startswith("cvxpy")]
        kind, _, backend = word.partition(":")
        if not group and kind in CVXPY_KINDS and backend:
            group = [f"{kind}:{backend.upper()}"]
        if not group:
            raise UsageError(f"--against {word!r}: known are cvxpy, {', '.join(TABLE)}, or cvxpy:BACKEND")
        chosen.update(dict.fromkeys(group))
    return list(chosen)


def missing(name: str) -> str:
    """Why a competitor cannot run here; empty if it can."""
    import shutil

    if name == "ngspice":
        return "" if shutil.which("ngspice") else "the program ngspice is not installed"
    needed = TABLE[name][2] if name in TABLE else ("cvxpy",)
    absent = [package for package in needed if find_spec(package) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""


def create(name: str) -> Any:
    """The adapter of a competitor."""
    module, argument, _ = TABLE.get(name, ("cvxpy_problem", name, ()))
    loaded = import_module(f"circuitsim.bench.competitors.{module}")
    return loaded.Adapter(argument) if argument else loaded.Adapter()


__all__ = ["OURS", "TABLE", "Competitor", "NoAnswer", "create", "expand", "missing"]
