"""Certificates of waveforms: each column counts, and a number that is none is no proof."""

from __future__ import annotations

import math

import pytest

from circuitsim.time_domain.implicit_ledger import ImplicitCertificate
from circuitsim.time_domain.proof import TransientCertificate

EXACT = TransientCertificate(*[1e-16] * 9, tolerance=1e-9)
IMPLICIT = ImplicitCertificate(*[1e-16] * 7, tolerance=1e-9, energy_tolerance=1e-4)


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e-3])
@pytest.mark.parametrize(
    ("sound", "column"),
    [*((EXACT, name) for name in EXACT._fields[:-1]), *((IMPLICIT, name) for name in IMPLICIT._fields[:-2])],
)
def test_one_column_is_enough(sound: TransientCertificate | ImplicitCertificate, column: str, value: float) -> None:
    assert sound.certified
    wrong = sound._replace(**{column: value})
    assert not wrong.certified
    assert f"{value:.1e}" in wrong.violations
