"""SPICE numbers: conversion between text and doubles.

A number is a decimal, an optional exponent, an optional scale (``T G MEG K M U N P F A``, ``MIL``; ``µ`` is ``U``) and
the letters of a unit, which are ignored: ``4.7k``, ``10kohm``, ``1e-3``, ``.5``, ``5V``. Case does not matter, so ``M``
is milli and ``MEG`` is mega.

>>> parse("4.7k"), parse("10MEG"), parse("3mA"), parse("100µF")
(4700.0, 10000000.0, 0.003, 0.0001)
>>> format_quantity(0.00312, "A")
'3.12 mA'
"""

from __future__ import annotations

import math
import re
from enum import Enum

SCALES: dict[str, int] = {
    "t": 12,
    "g": 9,
    "meg": 6,
    "k": 3,
    "m": -3,
    "u": -6,
    "µ": -6,
    "μ": -6,
    "n": -9,
    "p": -12,
    "f": -15,
    "a": -18,
}
"""Power of ten of each scale; ``mil`` (25.4e-6, a thousandth of an inch) is not a power of ten."""

SMALLEST = 2.2250738585072014e-308
"""The smallest normal double: results below it have lost digits (underflow)."""

_NUMBER = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]+))?([^\W\d_]*)")
_RKM = re.compile(r"([+-]?)([0-9]+)(meg|[rkmgtuµμnpf])([0-9]+)[^\W\d_]*", re.IGNORECASE)
_REST = re.compile(r"[\w.+-]*")
_PREFIXES = (*"yzafpnµm", "", *"kMGTPEZY")
UNSCALED = ("dB", "°", "°C")
"""Units without SI prefixes."""


class Quantity(Enum):
    """A measured quantity: ``v(node)``, ``i(element)``, ``p(element)``.

    Attributes
    ----------
    letter : str
        In expressions and columns.
    unit : str
    label : str
        On axes, and the type of a rawfile's column.
    """

    VOLTAGE = ("v", "V", "voltage")
    CURRENT = ("i", "A", "current")
    POWER = ("p", "W", "power")

    def __init__(self, letter: str, unit: str, label: str) -> None:
        self.letter, self.unit, self.label = letter, unit, label


class NumberError(ValueError):
    """Text that is not a SPICE number or is out of range. ``hint`` suggests a correction."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def parse(text: str) -> float:
    """The value of a SPICE number.

    Raises
    ------
    NumberError
        Not a number, overflow or underflow.
    """
    value, end, _ = scan(text, 0)
    if end != len(text):
        raise NumberError(f"{short(text)!r} is not a number", hint_for(text[:80]))
    return value


def rkm(text: str) -> float:
    """The value of a number with its scale in place of the decimal point (IEC 60062): ``2K2``, ``4R7``, ``1M5``.

    ``M`` is mega, ``m`` milli.

    >>> rkm("2K2"), rkm("4R7"), rkm("1M5"), rkm("1m5")
    (2200.0, 4.7, 1500000.0, 0.0015)

    Raises
    ------
    NumberError
        Text of another form.
    """
    found = _RKM.fullmatch(text)
    if found is None:
        raise NumberError(f"{short(text)!r} is not a number", hint_for(text[:80]))
    sign, whole, scale, digits = found.groups()
    return parse(f"{sign}{whole}.{digits}{'' if scale in 'rR' else 'meg' if scale == 'M' else scale}")


def scan(text: str, start: int) -> tuple[float, int, str]:
    """The number that begins at ``start``: its value, its end, and the letters after its digits.

    Parameters
    ----------
    text : str
        Text that contains the number.
    start : int
        Index of its first character.

    Returns
    -------
    value : float
        In the base unit: 4.7k is 4700.
    end : int
        Index after its last letter.
    letters : str
        Scale and unit; empty where there are none.

    Raises
    ------
    NumberError
        No number begins there; digits after the scale (``1K5``); overflow; underflow.
    """
    found = _NUMBER.match(text, start)
    if found is None:
        raise NumberError(f"{short(text[start : start + 80])!r} is not a number", hint_for(text[start : start + 80]))
    digits, exponent, letters = found.groups()
    end = found.end()
    if letters and (text[end : end + 1].isalnum() or letters in "eE"):
        whole = text[start:end] + _REST.match(text, end, end + 12).group()  # type: ignore[union-attr]
        raise NumberError(f"{whole!r} is not a number", hint_for(whole))
    return _scaled(digits, exponent, letters, text[start:end]), end, letters


def scale_of(letters: str) -> str:
    """The scale that a number's trailing letters begin with, in lower case; empty if they are only a unit."""
    low = letters[:3].lower()
    if low in ("meg", "mil"):
        return low
    return low[:1] if low[:1] in SCALES else ""


def _scaled(digits: str, exponent: str | None, letters: str, whole: str) -> float:
    """``digits`` × 10^``exponent`` × the scale in ``letters``, rounded once."""
    scale, power = scale_of(letters), exponent or "0"
    if scale in SCALES and len(power) <= 9:  # longer ones are out of range whatever the scale, and slow
        power = str(int(power) + SCALES[scale])
    value = float(f"{digits}e{power}")
    value = value * 254.0 / 1e7 if scale == "mil" else value
    if math.isinf(value):
        raise NumberError(f"{short(whole)} is larger than a double can hold", "the largest is about 1.8e308")
    if abs(value) < SMALLEST and any(c in "123456789" for c in digits):
        raise NumberError(
            f"{short(whole)} is smaller than a double can hold (it would be read as zero)",
            "write 0 if zero is meant; the smallest is about 2.3e-308",
        )
    return value


def hint_for(text: str) -> str:
    """A suggested correction of ``text``, which is not a number."""
    low = text.strip().lower()
    if low.lstrip("+-")[:3] in ("nan", "inf"):
        return "values must be finite numbers"
    if found := re.match(r"[+-]?([0-9]+)([a-zµμ]+)([0-9]+)", low):
        whole, letters, rest = (part[:20] for part in found.groups())
        if letters == "x":
            return "write the number in decimal"
        if letters in ("d", "e"):
            return f"write the exponent with e: {whole}e{rest}"
        scale = "" if letters == "r" else letters
        return f"write {whole}.{rest}{scale} (the scale comes last)"
    if re.fullmatch(r"[+-]?[0-9]+,[0-9]+[a-z]*", low):
        return f"write a decimal point: {low.replace(',', '.')}"
    if re.match(r"[+-]?[0-9.]+e[+-]?$", low):
        return "an exponent needs digits, as in 1e3"
    if re.match(r"[+-]?[0-9(]?.*[-+*/()]", low) and re.search(r"[0-9a-z][-+*/]", low):
        return "put an expression in braces: {…}"
    return "a number looks like 4.7k, 10MEG, 1e-3; an expression goes in braces: {2*r}"


def short(text: str, width: int = 60) -> str:
    """``text`` cut to ``width`` characters, to keep messages readable.

    Parameters
    ----------
    text : str
        Of any length.
    width : int
        Maximum number of characters, at least 1; the last is an ellipsis if the text is cut.

    Returns
    -------
    str
    """
    return text if len(text) <= width else text[: width - 1] + "…"


def exact(value: float) -> str:
    """The shortest text that reads back as exactly this double, in SPICE (``5``, ``0.1``, ``1e-09``).

    >>> exact(5.0), exact(0.1), exact(1e-9)
    ('5', '0.1', '1e-09')
    """
    text = repr(float(value))
    return text[:-2] if text.endswith(".0") else text


def format_quantity(value: float, unit: str = "", digits: int = 6) -> str:
    """``value`` for display, with an SI prefix (``M`` is mega here, unlike in SPICE) except before `UNSCALED`.

    >>> format_quantity(4.7e6, "Ω"), format_quantity(-2.5e-10, "A"), format_quantity(0.02, "°")
    ('4.7 MΩ', '-250 pA', '0.02 °')

    Parameters
    ----------
    value : float
        In the base unit.
    unit : str
        Name of the base unit; empty for a number without one.
    digits : int
        Significant digits; trailing zeros are left out.

    Returns
    -------
    str
        Number, space, prefix and unit. Outside 10⁻²⁴ … 10²⁷ an exponent replaces the prefix.
    """
    if value == 0 or not math.isfinite(value):
        return f"{value:g} {unit}".rstrip()
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    power = 0 if unit in UNSCALED else int(exponent) // 3
    if not -8 <= power <= 8:
        return f"{value:.{digits}g} {unit}".rstrip()
    scaled = float(f"{mantissa}e{int(exponent) - 3 * power}")
    return f"{scaled:.{digits}g} {_PREFIXES[power + 8]}{unit}".rstrip()
