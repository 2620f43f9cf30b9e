"""Read an operating point from its JSON object, as the start of another solve."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.certificate import EQUATIONS, Certificate
from circuitsim.circuit import Circuit
from circuitsim.errors import UsageError


def stored_point(stored: Mapping[str, Any], circuit: Circuit) -> OperatingPoint:
    """The operating point written by ``circuitsim solve --format json``, for a circuit with the same names.

    Parameters
    ----------
    stored : mapping
        The JSON object.
    circuit : Circuit
        Its values may differ from those of the circuit that was solved.

    Raises
    ------
    UsageError
        Not such an object, or one of another circuit.
    """
    try:
        nodes, branches, old = stored["nodes"], stored["branches"], stored["certificate"]
        volts = np.array([_number(nodes.get(name, 0.0)) for name in map(str, circuit.node_names)])
        rows = [branches[name] for name in circuit.names]
        currents, drops = (np.array([_number(row[key]) for row in rows]) for key in ("current", "voltage"))
        certificate = Certificate(
            **{name: _number(old[name]) for name in EQUATIONS},
            relative={name: _number(old["relative"][name]) for name in EQUATIONS},
            tolerance=_number(old["tolerance"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"no operating point of this circuit ({type(error).__name__}: {error}): write one with circuitsim solve "
            "DECK --format json"
        ) from None
    unique = np.ones(currents.size, dtype=bool)
    return OperatingPoint(circuit, volts, currents, {}, unique, certificate, {"name": "stored"}, (), drops)


def _number(value: object) -> float:
    number = float(value)  # type: ignore[arg-type]
    if not math.isfinite(number):
        raise ValueError("a number that is not finite")
    return number
