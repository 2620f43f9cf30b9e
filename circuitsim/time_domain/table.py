"""Waveforms and events as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from circuitsim.analysis.probes import VALUE, Formula, Probe
from circuitsim.formats.table import Table
from circuitsim.time_domain.result import TransientResult


def waveform_table(
    result: TransientResult, probes: Sequence[Probe | Formula], names: Mapping[str, float] = MappingProxyType({})
) -> Table:
    """Quantities at the output times.

    Parameters
    ----------
    result : TransientResult
    probes : sequence of Probe or Formula
    names : mapping of str to float
        Parameters that formulas read, in lower case.
    """
    found = columns(result, probes, names, result.times)
    return Table(("time", *map(str, probes)), ("s", *(probe.unit for probe in probes)), (result.times, *found))


def columns(
    result: TransientResult, probes: Sequence[Probe | Formula], names: Mapping[str, float], times: np.ndarray
) -> list[np.ndarray]:
    """Quantities at times (n,) of the run."""
    return of_waves(result, probes, names, *result.at(times))


def of_waves(
    result: TransientResult,
    probes: Sequence[Probe | Formula],
    names: Mapping[str, float],
    voltage: np.ndarray,
    current: np.ndarray,
) -> list[np.ndarray]:
    """Quantities from branch voltages, V, and currents, A (n, m)."""
    found = []
    for probe in probes:
        if isinstance(probe, Formula):
            known = {signal: of_probe(result, own, voltage, current) for signal, own in probe.probes.items()}
            found.append(probe.values(known, names) if known else np.full(len(voltage), probe.value({}, names)))
        else:
            found.append(of_probe(result, probe, voltage, current))
    return found


def of_probe(result: TransientResult, probe: Probe, voltage: np.ndarray, current: np.ndarray) -> np.ndarray:
    """A quantity (n,) from branch voltages, V, and currents, A (n, m)."""
    circuit = result.circuit
    if probe.kind == "v":
        ends = result.path(probe.first, probe.second or circuit.node_names[0])
        return np.asarray(voltage[:, [k for k, _ in ends]] @ np.array([sign for _, sign in ends]))
    k = circuit.element_index(probe.first)
    if probe.kind == VALUE:
        return np.full(len(voltage), circuit.arrays().value[k])
    return current[:, k] if probe.kind == "i" else voltage[:, k] * current[:, k]


def events_table(result: TransientResult) -> Table:
    """Changes of diodes: ``+`` for those that conduct from then on, ``-`` for those that block."""
    events = result.events
    return Table(
        ("time", "error", "changed", "energy_lost"),
        ("s", "s", "", "J"),
        (
            [event.time for event in events],
            [float(event.error) for event in events],
            [" ".join(event.changed) for event in events],
            [event.energy_lost for event in events],
        ),
    )
