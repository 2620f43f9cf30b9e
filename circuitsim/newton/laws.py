"""The I–V curves of all smooth device models as one function, so that one kernel serves any mix of them, and its
derivatives by the parameters."""

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
"""Name of the model that is tested for first."""


def _laws() -> dict[Junction, Callable[[Any, Any, Any], None]]:
    """The distinct junction characteristics of all models and their derivatives by parameters; `USUAL` first."""
    devices = [model.device for model in sorted(MODELS, key=lambda model: model.name != USUAL)]
    smooth = (device for device in devices if device is not None and issubclass(device, SmoothDevice))
    return {device.junction: device.by_parameters for device in smooth}


JUNCTIONS, DERIVATIVES = tuple(_laws()), tuple(_laws().values())
"""Characteristics, in the order of their numbers, and their derivatives by parameters."""


def _either(number: int, junction: Junction, rest: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Dispatch to one characteristic where a row ends with its number, otherwise to ``rest``."""

    def law(p, u):
        if p[p.size - 1] == number:
            return junction(p, u)
        return rest(p, u)

    return law


def _either_filled(number: int, derivatives: Callable[..., None], rest: Callable[..., None]) -> Callable[..., None]:
    """As `_either`, for functions that fill in an array."""

    def by_parameters(p, u, out):
        if p[p.size - 1] == number:
            derivatives(p, u, out)
        else:
            rest(p, u, out)

    return by_parameters


def _chain(functions: Sequence[Callable[..., Any]], either: Callable[..., Any]) -> Callable[..., Any]:
    """A function that selects among all functions, by nested dispatchers."""
    chosen = functions[-1]
    for number in range(len(functions) - 2, -1, -1):
        chosen = either(number, functions[number], chosen)
    return chosen


law, by_parameters = _chain(JUNCTIONS, _either), _chain(DERIVATIVES, _either_filled)
"""``law(p, u)``: current, A, and slope, S, of a junction at the voltage u, V; the last entry of the row p is the number
of the characteristic. ``by_parameters(p, u, out)``: derivatives of the current by the entries of p."""


def numbered_rows(devices: Iterable[SmoothDevice]) -> np.ndarray:
    """Parameter rows of all devices (`SmoothDevice.row`) for `law`, zero-padded to equal length."""
    rows = [(*device.row(), float(JUNCTIONS.index(type(device).junction))) for device in devices]
    made = np.zeros((len(rows), max(map(len, rows))))
    for own, row in zip(made, rows):
        own[: len(row) - 1], own[-1] = row[:-1], row[-1]
    return made


def charging(row):
    """The current that would empty a junction's charge within one stage, A: the scale of that charge's rounding."""
    return row[RATE] * abs(row[BASE]) if row[row.size - 1] == 0.0 else 0.0


def project(rows, v, i, r, u, points):
    """Project points (v, i) onto the curves along load lines of resistance r.

    Parameters
    ----------
    rows : (s, w) float array
        Rows of the devices (`numbered_rows`).
    v, i, r : (s,) float arrays
        V, A, Ω.
    u : (s,) float array
        Starting junction voltages, V; overwritten by those at the intersections.
    points : (4, s) float array
        Overwritten: voltage, current, slope of the device, slope of the junction.
    """
    rows, points = kept(rows), kept(points)
    for d in range(u.size):
        found = point(law, rows[d], v[d], i[d], r[d], u[d])
        u[d], points[0, d], points[1, d], points[2, d], points[3, d] = found


__all__ = [
    "by_parameters",
    "charging",
    "law",
    "numbered_rows",
    "project",
]
