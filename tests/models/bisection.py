"""One device behind a source and a resistor, by bisection."""

from __future__ import annotations

from collections.abc import Callable

Law = Callable[[float], float]


def root(excess: Law, low: float, high: float) -> float:
    """Where a rising function changes its sign; where it overflows it has the sign of its argument."""
    for _ in range(1200):
        middle = 0.5 * (low + high)
        try:
            above = excess(middle) > 0.0
        except OverflowError:
            above = middle > 0.0
        low, high = (low, middle) if above else (middle, high)
    return low


def device_voltage(law: Law, volts: float, ohms: float) -> float:
    """The device's voltage, V; its law states the current at a voltage."""
    return root(lambda v: v + ohms * law(v) - volts, min(volts, 0.0), max(volts, 0.0))


def device_current(law: Law, volts: float, ohms: float) -> float:
    """The device's current, A; its law states the voltage at a current."""
    return root(lambda i: ohms * i + law(i) - volts, *sorted((0.0, volts / ohms)))
