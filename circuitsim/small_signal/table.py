"""Small-signal responses and poles as columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from circuitsim.analysis.probes import Formula, Probe
from circuitsim.errors import UsageError
from circuitsim.formats.table import Table
from circuitsim.small_signal.frequency import AcResult
from circuitsim.small_signal.poles import Poles


def response(result: AcResult, probe: Probe | Formula) -> np.ndarray:
    """The complex amplitudes of a quantity (f,), V or A.

    Raises
    ------
    UsageError
        An expression, a power or a value: these have no amplitude.
    """
    if isinstance(probe, Formula) or probe.kind not in ("v", "i"):
        raise UsageError(f"{probe} has no amplitude: name voltages and currents, v(a), v(a,b) or i(R1)")
    if probe.kind == "i":
        return result.current(probe.first)
    return result[probe.first] if probe.second is None else result.voltage(probe.first, probe.second)


def response_table(result: AcResult, probes: Sequence[Probe | Formula], relative_to: Probe | None = None) -> Table:
    """Magnitude, decibels and phase of quantities over frequency.

    Parameters
    ----------
    result : AcResult
    probes : sequence of Probe
    relative_to : Probe, optional
        What they are divided by: transfer functions.

    Notes
    -----
    The phase, in degrees, is continuous: jumps by 360° are taken out. It begins between −180° and 180°.
    """
    header, units = ["frequency"], ["Hz"]
    columns: list[np.ndarray] = [result.frequencies]
    with np.errstate(divide="ignore", invalid="ignore"):
        below = None if relative_to is None else response(result, relative_to)
        for probe in probes:
            found = response(result, probe)
            name, unit = str(probe), probe.unit
            if relative_to is not None and below is not None:
                found, name, unit = found / below, f"{probe}/{relative_to}", ""
            header += [name, f"{name} dB", f"{name} phase"]
            units += [unit, "dB", "°"]
            columns += [np.abs(found), 20.0 * np.log10(np.abs(found)), np.degrees(np.unwrap(np.angle(found)))]
    return Table(tuple(header), tuple(units), tuple(columns))


def phasor_columns(
    result: AcResult, probes: Sequence[Probe | Formula], relative_to: Probe | None = None
) -> list[tuple[str, str, list[complex]]]:
    """Names, units and complex amplitudes of quantities over frequency, the frequencies first; see `response_table`."""
    found: list[tuple[str, str, list[complex]]] = [("frequency", "Hz", result.frequencies.tolist())]
    below = None if relative_to is None else response(result, relative_to)
    for probe in probes:
        own = response(result, probe)
        if below is None:
            found.append((str(probe), probe.unit, own.tolist()))
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                found.append((f"{probe}/{relative_to}", "", (own / below).tolist()))
    return found


def poles_table(found: Poles) -> Table:
    """Real and imaginary part, frequency and damping of poles."""
    return Table(
        ("real", "imaginary", "frequency", "damping"),
        ("1/s", "1/s", "Hz", ""),
        (found.values.real, found.values.imag, found.hertz, found.damping),
    )
