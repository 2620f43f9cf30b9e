"""Circuits of elementary elements, and the operating point at which a circuit is linearised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from circuitsim.analysis.amplified import PreparedAmplified
from circuitsim.analysis.convex import Prepared, prepared_convex
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.circuit import Circuit
from circuitsim.circuit.amplifiers import without_amplifiers
from circuitsim.circuit.expansion import expanded
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from circuitsim.analysis.controlled import PreparedControlled


def prepared_elementary(
    circuit: Circuit, solver: str, tolerance: float
) -> Prepared | PreparedAmplified | PreparedControlled:
    """Analyse a circuit without devices."""
    if circuit.laws:
        from circuitsim.analysis.controlled import prepared_controlled

        return prepared_controlled(circuit, tolerance)
    if circuit.amplified:
        image = without_amplifiers(circuit)
        return PreparedAmplified(circuit, image, prepared_convex(image.circuit, solver, tolerance))
    return prepared_convex(circuit, solver, tolerance)


def elementary_point(point: OperatingPoint) -> OperatingPoint:
    """The operating point of the elementary elements, with smooth devices linearised at this point.

    Raises
    ------
    UsageError
        The circuit has amplifiers.
    """
    if point.circuit.amplified:
        raise UsageError(
            "sensitivities of circuits with bidirectional amplifiers are not supported; "
            "circuitsim train circuit --compare has the derivatives of a loss"
        )
    inner = point.elementary
    if inner is None or not point.junctions:
        return point if inner is None else inner
    return _touching(point, inner)


def _touching(point: OperatingPoint, inner: OperatingPoint) -> OperatingPoint:
    """The elementary point with tangents at the devices' own voltages and currents, instead of those of Newton's last
    step, which touch at the step before."""
    from circuitsim.analysis.newton import smooth_devices, tangents

    smooth = smooth_devices(point.circuit, expanded(point.circuit))
    assert smooth is not None
    _, first, second, value, _ = inner.circuit.arrays()
    column, voltages = value.copy(), inner.voltages.copy()
    currents, drops = inner.currents.copy(), inner.drops.copy()
    tangents(smooth.start(point, inner).state(smooth), column, smooth)
    for array, devices in ((currents, point.currents), (drops, point.drops)):
        array[smooth.slope], array[smooth.touch] = 0.0, 0.0
        array[smooth.rest] = devices[smooth.elements]
    drops[smooth.touch] = drops[smooth.rest]
    voltages[first[smooth.touch]] = voltages[second[smooth.touch]] + drops[smooth.touch]
    made = OperatingPoint(
        inner.circuit.with_column(column),
        voltages,
        currents,
        inner.intervals,
        inner.unique.copy(),
        inner.certificate,
        inner.solver,
        inner.warnings,
        drops,
    )
    made.low = inner.low
    return made


__all__ = ["elementary_point"]
