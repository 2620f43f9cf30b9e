"""Parameters of devices that may change when a circuit learns: which a word names, and their bounds."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence

from circuitsim.circuit import Circuit
from circuitsim.circuit.expansion import same_shape
from circuitsim.models import Device

SPAN = 1e3
"""Factor beyond the values as written that is allowed where a line states no bounds."""

Place = tuple[int, str]
"""A device's place in the circuit and the name of its parameter; of an element without one the name is empty."""

Bounds = Mapping[Place, tuple[float, float]]


def full_name(element: str, parameter: str) -> str:
    """``D1.vfwd``; of an element's own value its name."""
    return f"{element}.{parameter}" if parameter else element


def matching_parameters(circuit: Circuit, word: str) -> list[Place]:
    """The parameters of devices that a word such as ``D*.vfwd`` names; none where it is the name of an element.

    Devices whose cards do not state the parameter, and whose model has no value for it, are left out.
    """
    head, dot, tail = word.rpartition(".")
    if not dot or word in circuit:
        return []
    pattern = re.compile(re.escape(head).replace(r"\*", ".*").replace(r"\?", "."), re.IGNORECASE)
    found = []
    for k, device in circuit.devices.items():
        row = device.model.parameter_called(tail)
        if row is not None and getattr(device, row.name) is not None and pattern.fullmatch(circuit.names[k]):
            found.append((k, row.name))
    return found


def law_bounds(
    circuit: Circuit, places: Sequence[Place], options: Mapping[str, float], others: Bounds
) -> dict[Place, tuple[float, float]]:
    """Bounds of parameters, from ``min`` and ``max`` or `SPAN` beyond the least and the largest of the values.

    Parameters
    ----------
    circuit : Circuit
    places : sequence of (int, str)
        The parameters, all of one line.
    options : mapping of str to float
        ``min``, ``max``, where they are stated.
    others : mapping
        Bounds of other parameters of the same devices.

    Raises
    ------
    ValueError
        A parameter without a rule of learning, or bounds that are none, leave out the value, or make another device.
    """
    found = dict(others)
    for name in dict.fromkeys(name for _, name in places):
        own = [k for k, parameter in places if parameter == name]
        values = [float(getattr(circuit.devices[k], name)) for k in own]
        for k, value in zip(own, values):
            row = circuit.devices[k].model.parameter_called(name)
            called = full_name(circuit.names[k], name)
            if row is None or not row.trainable:
                kind = circuit.devices[k].model.name
                raise ValueError(f"{called} cannot be trained: there is no rule for the {name} of a {kind}")
            if value <= 0.0 and not {"min", "max"} <= set(options):
                raise ValueError(f"{called} is {value:g}: state its bounds, min= and max=")
            low = options.get("min", max(min(values) / SPAN, row.minimum))
            high = options.get("max", max(values) * SPAN)
            if not low <= value <= high or not low < high or not math.isfinite(high):
                raise ValueError(f"{called} is {value:g} {row.unit}, and its bounds {low:g} … {high:g} are to hold it")
            found[k, name] = low, high
    for k in dict.fromkeys(k for k, _ in places):
        _check_corners(circuit, k, {name: ends for (place, name), ends in found.items() if place == k and name})
    return {place: found[place] for place in places}


def _check_corners(circuit: Circuit, k: int, bounds: Mapping[str, tuple[float, float]]) -> None:
    """Refuse bounds at which the device is none, or consists of other elements."""
    device = circuit.devices[k]
    for corner in itertools.product(*bounds.values()):
        stated = ", ".join(f"{name} = {value:g}" for name, value in zip(bounds, corner))
        try:
            there = type(device)(label=device.label, **(device.values() | dict(zip(bounds, corner))))
        except ValueError as error:
            wrong = f"{circuit.names[k]} with {stated}: {error}; state narrower bounds, min= and max="
            raise ValueError(wrong) from None
        if not same_shape(device, there) or _shorts(device) != _shorts(there):
            raise ValueError(
                f"{circuit.names[k]} with {stated} consists of other elements: state bounds, min= and max=, that leave "
                "each resistance above zero, or leave it out"
            )


def _shorts(device: Device) -> list[bool]:
    """Which of its parts are resistances of 0 Ω."""
    return [part.letter == "R" and part.value == 0.0 for part in device.expand()]


__all__ = ["SPAN", "Bounds", "Place", "full_name", "law_bounds", "matching_parameters"]
