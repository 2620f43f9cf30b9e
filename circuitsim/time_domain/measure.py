"""Measurements on waveforms: ``.meas tran``."""

from __future__ import annotations

from collections.abc import Mapping

from circuitsim.arguments import checked
from circuitsim.measurements import Abscissa, Curve, Measurement, Reader, run_of
from circuitsim.time_domain.result import RESULT, TransientResult
from circuitsim.time_domain.signals import Signal, waves_at


class OverTime(Abscissa):
    """The time of a run, s."""

    def __init__(self, result: TransientResult) -> None:
        super().__init__(result.circuit, float(result.times[0]), result.stop, 0.0, run_of(result.stop))
        self.result, self.waves = result, waves_at(result)

    def curve(self, text: str, names: Mapping[str, float], level: float) -> Curve:
        """The waveform of a quantity, less a level."""
        return Signal(self.result, self.quantity(text), names, level, self.waves)


@checked(result=RESULT)
def measure(result: TransientResult, text: str, names: Mapping[str, float] | None = None) -> Measurement:
    """One measurement.

    Parameters
    ----------
    result : TransientResult
    text : str
        What follows ``.meas tran``: a name, then one of `circuitsim.measurements.FORMS`.
    names : mapping of str to float, optional
        Parameters that may stand for numbers, in lower case.

    Raises
    ------
    UsageError
        Another form, an unknown quantity, times outside the run.

    Examples
    --------
    ``measure(run, "ripple PP v(out) FROM=1m TO=2m").value``
    """
    return Reader(OverTime(result), text, names or {}).measurement()
