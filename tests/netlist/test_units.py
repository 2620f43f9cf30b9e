"""Numbers as SPICE writes them, outside of decks too."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from circuitsim import units

REFUSED = """
1K5 | write 1.5k
4R7 | write 4.7
1meg5 | write 1.5meg
1d3 | write the exponent with e: 1e3
0x10 | decimal
1,5 | write a decimal point: 1.5
1e | an exponent needs digits
1e+ | exponent
nan | finite
inf | finite
-Infinity | finite
2*3 | braces
 | 4.7k
k | 4.7k
5% | 4.7k
1_000 | 4.7k
١ | 4.7k
--5 | 4.7k
1e999 | 1.8e308
-1e999 | 1.8e308
1e306k | 1.8e308
1e-999 | write 0 if zero is meant
1e-310 | write 0
1e-300f | write 0
1e99999999999999999999 | 1.8e308
1e-99999999999999999999 | write 0
"""


@pytest.mark.parametrize("row", REFUSED.split("\n")[1:-1])
def test_refused_with_a_hint(row: str) -> None:
    text, hint = row.split(" | ") if row[0] != " " else ("", row[3:])
    with pytest.raises(units.NumberError) as caught:
        units.parse(text)
    assert hint in caught.value.hint


@given(st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False))
def test_exact_text_reads_back_as_the_same_double(value: float) -> None:
    assert units.parse(units.exact(value)) == value


@given(st.integers(1, 10**17), st.integers(-12, 12), st.sampled_from(sorted(units.SCALES)))
def test_a_scale_is_rounded_once(digits: int, exponent: int, scale: str) -> None:
    exact = Fraction(digits) * Fraction(10) ** (exponent + units.SCALES[scale])
    assert units.parse(f"{digits}e{exponent}{scale}") == float(exact)


@given(st.floats(1e-20, 1e20), st.integers(3, 9))
def test_quantities_for_people_are_right_to_their_digits(value: float, digits: int) -> None:
    number, _, unit = units.format_quantity(value, "V", digits).partition(" ")
    scale = 3 * ("zafpnµm kMGTPE".index(unit[:-1] or " ") - 7)
    assert 1 <= abs(float(number)) < 1000
    assert math.isclose(float(number) * 10.0**scale, value, rel_tol=0.6 * 10.0 ** (1 - digits))
