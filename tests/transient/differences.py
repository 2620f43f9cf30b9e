"""Derivatives of waveforms by differences of measurements, which compute no gradients."""

from __future__ import annotations

from collections.abc import Callable

from circuitsim.time_domain import Integral, TransientResult, Value, measure

Values = dict[str, float]


def by_measurement(run: TransientResult, own: Value | Integral) -> float:
    """The functional by `measure`."""
    if isinstance(own, Value):
        found = measure(run, f"x FIND {own.quantity} AT={own.time!r}").value
    else:
        form = "INTEG" if own.power == 1 else "RMS"
        found = measure(run, f"x {form} {own.quantity} FROM={own.begin!r} TO={own.end!r}").value
        if found is not None and own.power == 2:
            found = found**2 * (own.end - own.begin)
    assert found is not None
    return found


def along(loss: Callable[[Values], float], values: Values, direction: Values, step: float) -> float:
    """Derivative along a relative direction, by differences of fourth order."""

    def at(share: float) -> float:
        return loss({name: value * (1.0 + share * direction[name]) for name, value in values.items()})

    return (8.0 * (at(step) - at(-step)) - (at(2.0 * step) - at(-2.0 * step))) / (12.0 * step)
