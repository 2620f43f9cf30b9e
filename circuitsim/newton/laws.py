"""The laws of all smooth devices as one function, so that one kernel serves circuits with any of them; their
derivatives by parameters likewise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from circuitsim.engine.small.pointers import kept
from circuitsim.models import MODELS
from circuitsim.models.curve import Junction, point
from circuitsim.models.junction_diode import BASE, RATE
from circuitsim.models.smooth import SmoothDevice

USUAL = "junction diode"
"""Name of the model whose law is tried first."""


def _laws() -> dict[Junction, Callable[[Any, Any, Any], None]]:
    """The laws of the junctions of all models of smooth devices, each once, with their derivatives; that of the `USUAL`
    model first."""
    devices = [model.device for model in sorted(MODELS, key=lambda model: model.name != USUAL)]
    smooth = (device for device in devices if device is not None and issubclass(device, SmoothDevice))
    return {device.junction: device.by_parameters for device in smooth}


JUNCTIONS, DERIVATIVES = tuple(_laws()), tuple(_laws().values())
"""The laws, in the order of their numbers, and their derivatives by parameters."""


def _either(number: int, junction: Junction, rest: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """One law where a row ends with its number, the others elsewhere."""

    def law(p, u):
        if p[p.size - 1] == number:
            return junction(p, u)
        return rest(p, u)

    return law


def _either_filled(number: int, derivatives: Callable[..., None], rest: Callable[..., None]) -> Callable[..., None]:
    """As `_either`, of functions that fill in an array."""

    def by_parameters(p, u, out):
        if p[p.size - 1] == number:
            derivatives(p, u, out)
        else:
            rest(p, u, out)

    return by_parameters


def _chain(functions: Sequence[Callable[..., Any]], either: Callable[..., Any]) -> list[Callable[..., Any]]:
    """The functions behind each other: the last one chooses among all."""
    chain = [functions[-1]]
    for number in range(len(functions) - 2, -1, -1):
        chain.append(either(number, functions[number], chain[-1]))
    return chain


CHAIN, DERIVATIVE_CHAIN = _chain(JUNCTIONS, _either), _chain(DERIVATIVES, _either_filled)

law, by_parameters = CHAIN[-1], DERIVATIVE_CHAIN[-1]
"""Current (A) and slope (S) of a junction at a voltage u, V; its row p ends with the number of its law. The
derivatives of the current by the entries of p, filled in."""


def numbered_rows(devices: Iterable[SmoothDevice]) -> np.ndarray:
    """The rows of all devices (`SmoothDevice.row`) as `law` takes them, filled up with zeros to one length."""
    rows = [(*device.row(), float(JUNCTIONS.index(type(device).junction))) for device in devices]
    made = np.zeros((len(rows), max(map(len, rows))))
    for own, row in zip(made, rows):
        own[: len(row) - 1], own[-1] = row[:-1], row[-1]
    return made


def charging(row):
    """The current that would empty a junction's charge in a stage, A: with that rounding of the charge counts."""
    return row[RATE] * abs(row[BASE]) if row[row.size - 1] == 0.0 else 0.0


def project(rows, v, i, r, u, points):
    """From the points (v, i) along load lines of resistances r to the curves.

    Parameters
    ----------
    rows : (s, w) float array
        Of the devices (`numbered_rows`).
    v, i, r : (s,) float arrays
        V, A, Ω.
    u : (s,) float array
        Junction voltages to begin with, V; replaced by those found.
    points : (4, s) float array
        Filled: voltage, current, slope of the device and slope of the junction.
    """
    rows, points = kept(rows), kept(points)
    for d in range(u.size):
        found = point(law, rows[d], v[d], i[d], r[d], u[d])
        u[d], points[0, d], points[1, d], points[2, d], points[3, d] = found


__all__ = [
    "CHAIN",
    "DERIVATIVES",
    "DERIVATIVE_CHAIN",
    "JUNCTIONS",
    "by_parameters",
    "charging",
    "law",
    "numbered_rows",
    "project",
]
