"""The laws of all smooth devices as one function, so that one kernel serves circuits with any of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from circuitsim.engine.small.pointers import kept
from circuitsim.models import MODELS
from circuitsim.models.curve import Junction, point
from circuitsim.models.smooth import SmoothDevice

USUAL = "junction diode"
"""Name of the model whose law is tried first."""


def _junctions() -> tuple[Junction, ...]:
    """The laws of the junctions of all models of smooth devices, each once; that of the `USUAL` model first."""
    devices = [model.device for model in sorted(MODELS, key=lambda model: model.name != USUAL)]
    laws = (device.junction for device in devices if device is not None and issubclass(device, SmoothDevice))
    return tuple(dict.fromkeys(laws))


JUNCTIONS = _junctions()
"""The laws, in the order of their numbers."""


def _either(number: int, junction: Junction, rest: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """One law where a row ends with its number, the others elsewhere."""

    def law(p, u):
        if p[p.size - 1] == number:
            return junction(p, u)
        return rest(p, u)

    return law


def _chain() -> list[Callable[..., Any]]:
    """The laws behind each other: the last one chooses among all."""
    chain = [JUNCTIONS[-1]]
    for number in range(len(JUNCTIONS) - 2, -1, -1):
        chain.append(_either(number, JUNCTIONS[number], chain[-1]))
    return chain


CHAIN = _chain()

law = CHAIN[-1]
"""Current (A) and slope (S) of a junction at a voltage u, V; its row p ends with the number of its law."""


def numbered_rows(devices: Iterable[SmoothDevice]) -> np.ndarray:
    """The rows of all devices (`SmoothDevice.row`) as `law` takes them, filled up with zeros to one length."""
    rows = [(*device.row(), float(JUNCTIONS.index(type(device).junction))) for device in devices]
    made = np.zeros((len(rows), max(map(len, rows))))
    for own, row in zip(made, rows):
        own[: len(row) - 1], own[-1] = row[:-1], row[-1]
    return made


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


__all__ = ["CHAIN", "JUNCTIONS", "law", "numbered_rows", "project"]
