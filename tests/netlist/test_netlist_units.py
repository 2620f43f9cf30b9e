"""SPICE numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from circuitsim import units

VALUES = {
    "5": 5.0,
    "-5": -5.0,
    "+5": 5.0,
    ".5": 0.5,
    "5.": 5.0,
    "1e3": 1e3,
    "1E-3": 1e-3,
    "1.5e+3": 1500.0,
    "1t": 1e12,
    "1g": 1e9,
    "1meg": 1e6,
    "1k": 1e3,
    "1mil": 25.4e-6,
    "1m": 1e-3,
    "1u": 1e-6,
    "1n": 1e-9,
    "1p": 1e-12,
    "1f": 1e-15,
    "1a": 1e-18,
    "1µ": 1e-6,
    "1μ": 1e-6,
    "1T": 1e12,
    "1MEG": 1e6,
    "1Meg": 1e6,
    "1MIL": 25.4e-6,
    "1M": 1e-3,
    "10kohm": 1e4,
    "5V": 5.0,
    "3mA": 3e-3,
    "10megohm": 1e7,
    "2.2kΩ": 2200.0,
    "4.7µF": 4.7e-6,
    "1e3k": 1e6,
    "100Hz": 100.0,
    "1.1k": 1100.0,
    "0.1m": 1e-4,
    "0e999999999999": 0.0,
    "1e310m": 1e307,
    "0": 0.0,
    "5eV": 5.0,
}
REFUSED = {
    "1K5": "write 1.5k",
    "4R7": "write 4.7",
    "1meg5": "write 1.5meg",
    "1d3": "write the exponent with e: 1e3",
    "0x10": "decimal",
    "1,5": "write a decimal point: 1.5",
    "1e": "an exponent needs digits",
    "1e+": "exponent",
    "nan": "finite",
    "inf": "finite",
    "-Infinity": "finite",
    "2*3": "braces",
    "": "4.7k",
    "k": "4.7k",
    "5%": "4.7k",
    "1_000": "4.7k",
    "١": "4.7k",
    "--5": "4.7k",
    "1e999": "1.8e308",
    "-1e999": "1.8e308",
    "1e306k": "1.8e308",
    "1e-999": "write 0 if zero is meant",
    "1e-310": "write 0",
    "1e-300f": "write 0",
    "1e99999999999999999999": "1.8e308",
    "1e-99999999999999999999": "write 0",
}


@pytest.mark.parametrize(("text", "value"), VALUES.items())
def test_values(text, value):
    assert units.parse(text) == value


@pytest.mark.parametrize(("text", "hint"), REFUSED.items())
def test_refused_with_a_hint(text, hint):
    with pytest.raises(units.NumberError) as caught:
        units.parse(text)
    assert hint in caught.value.hint


@given(st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False))
def test_exact_text_reads_back_as_the_same_double(value):
    assert units.parse(units.exact(value)) == value


@given(st.integers(1, 10**17), st.integers(-12, 12), st.sampled_from(sorted(units.SCALES)))
def test_a_scale_is_rounded_once(digits, exponent, scale):
    exact = Fraction(digits) * Fraction(10) ** (exponent + units.SCALES[scale])
    assert units.parse(f"{digits}e{exponent}{scale}") == float(exact)


@given(st.floats(1e-20, 1e20), st.integers(3, 9))
def test_quantities_for_people_are_right_to_their_digits(value, digits):
    number, _, unit = units.format_quantity(value, "V", digits).partition(" ")
    scale = {
        "z": -21,
        "a": -18,
        "f": -15,
        "p": -12,
        "n": -9,
        "µ": -6,
        "m": -3,
        "": 0,
        "k": 3,
        "M": 6,
        "G": 9,
        "T": 12,
        "P": 15,
        "E": 18,
    }[unit[:-1]]
    assert math.isclose(float(number) * 10.0**scale, value, rel_tol=0.6 * 10.0 ** (1 - digits))
    assert 1 <= abs(float(number)) < 1000
