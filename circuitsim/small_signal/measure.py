"""Measurements of an AC analysis in the syntax of ``.meas ac``: values, extremes, crossings, bandwidths, margins.

The circuit is solved again between the frequencies of a result: a crossing is a root of the response itself, not of an
interpolant. Means and integrals are those of the piecewise-linear interpolant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from circuitsim.analysis.probes import parse_probes
from circuitsim.errors import UsageError
from circuitsim.measurements import Between
from circuitsim.small_signal.frequency import AcResult, ac, response
from circuitsim.time_domain.measure import Failed, Measurement, Words, in_order

PARTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "m": np.abs,
    "db": lambda z: 20.0 * np.log10(np.abs(z)),
    "p": lambda z: np.degrees(np.unwrap(np.angle(z))),
    "r": np.real,
    "i": np.imag,
}
"""Functions of an amplitude in ``vm(out)``, ``vdb(out)``, ``vp(out)`` …; the phase, in degrees, is unwrapped."""
WORDS = {"mag": "m", "abs": "m", "db": "db", "ph": "p", "phase": "p", "re": "r", "im": "i"}
"""Equivalent functions: ``db(v(out)/v(in))``."""
FORMS = "vm(a) vdb(a) vp(a) vr(a) vi(a), the same of i, v(a) for vm(a), and mag db ph re im of one or of a quotient"

_NAMED = re.compile(r"([vi])(m|db|p|r|i)?(\([^()]*\))", re.IGNORECASE)
_FUNCTION = re.compile(r"(mag|abs|db|ph|phase|re|im)\((.*)\)", re.IGNORECASE)
_PLAIN = re.compile(r"[vi]\([^()]*\)", re.IGNORECASE)


class Response(Between):
    """A real function of a response over frequency, minus a level."""

    def __init__(self, result: AcResult, part: str, above: str, below: str | None, level: float) -> None:
        self.found, self.part, self.level = result, part, level
        self.quotient = [parse_probes(text, result.circuit)[0] for text in (above, below) if text is not None]
        self.grid, self.known = result.frequencies, self._number(result)

    def _number(self, result: AcResult) -> np.ndarray:
        amplitude = response(result, self.quotient[0])
        if len(self.quotient) > 1:
            amplitude = amplitude / response(result, self.quotient[1])
        with np.errstate(divide="ignore"):
            return PARTS[self.part](amplitude) - self.level

    def at(self, frequencies: np.ndarray) -> np.ndarray:
        """Values at frequencies (n,), Hz."""
        run = ac(self.found.circuit, frequencies, self.found.sources, couplings=self.found.couplings)
        found = self._number(run)
        if self.part == "p":  # unwrapped from the nearest known phase
            near = np.interp(frequencies, self.grid, self.known)
            found += 360.0 * np.round((near - found) / 360.0)
        return found


class _Reader(Words):
    """Evaluator of one measurement over frequency."""

    def __init__(self, result: AcResult, text: str, names: Mapping[str, float]) -> None:
        shown = float(result.frequencies.min()), float(result.frequencies.max())
        super().__init__(result.circuit, shown, text, names)
        self.found = result

    def signal(self, text: str, level: float = 0.0) -> Response:
        """A function of an amplitude, or of a quotient of two."""
        bare = text.strip("{}'\"")
        named, function = _NAMED.fullmatch(bare), _FUNCTION.fullmatch(bare)
        try:
            if named is not None:
                return Response(self.found, (named[2] or "m").lower(), f"{named[1]}{named[3]}", None, level)
            if function is not None:
                above, _, below = function[2].partition("/")
                if _PLAIN.fullmatch(above) and (not below or _PLAIN.fullmatch(below)):
                    return Response(self.found, WORDS[function[1].lower()], above, below or None, level)
        except UsageError as error:
            raise self.wrong(str(error)) from None
        raise self.wrong(f"{text!r} is not an AC quantity: {FORMS}")

    def meeting(self, first: str, second: str) -> float | None:
        """The crossing at which a quantity equals a number."""
        level = self.number(second)
        return self.crossing(self.signal(first, level), first, second, level=level)

    def time(self, text: str) -> float:
        """A frequency within the result, Hz."""
        value = self.number(text)
        if not self.begin <= value <= self.stop:
            raise self.wrong(f"{text} lies outside {self.begin:g} to {self.stop:g} Hz")
        return value


def measure(result: AcResult, text: str, names: Mapping[str, float] | None = None) -> Measurement:
    """One measurement over frequency.

    Parameters
    ----------
    result : AcResult
    text : str
        What follows ``.meas ac``: ``"f3 WHEN vdb(out)=-3 FALL=1"``, ``"bw TRIG vm(out) VAL=0.5 RISE=1 TARG vm(out)
        VAL=0.5 FALL=1"``, ``"peak MAX vm(out)"``, ``"margin FIND vp(out) WHEN vdb(out)=0"``.
    names : mapping of str to float, optional
        Parameters that may stand for numbers, in lower case.

    Returns
    -------
    Measurement
        Frequencies in Hz, phases in degrees.

    Raises
    ------
    UsageError
        Another form, an unknown quantity, frequencies outside the result.

    Examples
    --------
    >>> import math
    >>> from circuitsim import ac, loads
    >>> from circuitsim.small_signal import measure
    >>> run = ac(loads("low pass\\nV1 in 0 AC 1\\nR1 in out 1k\\nC1 out 0 1u\\n.ac dec 5 1 10k\\n"))
    >>> corner = measure(run, "f3 WHEN vm(out)=0.70710678118654752 FALL=1").value
    >>> round(corner * 2 * math.pi, 6)  # 1/RC
    1000.0
    """
    return _Reader(result, text, names or {}).measurement()


def measure_all(
    result: AcResult, texts: Sequence[str], names: Mapping[str, float], failed: Failed | None = None
) -> dict[str, float | None]:
    """Measurements by name; see `circuitsim.time_domain.measure.in_order`."""
    return in_order(texts, names, lambda text, known: measure(result, text, known), failed)
