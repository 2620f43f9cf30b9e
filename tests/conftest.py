"""Hypothesis profiles for the whole suite: `ci` (default) and `long` (on demand: HYPOTHESIS_PROFILE=long)."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Deterministic, without deadlines (a loaded machine is not a failure) and without a data base of past examples.
COMMON = {
    "deadline": None,
    "database": None,
    "print_blob": False,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
}
settings.register_profile("ci", derandomize=True, max_examples=100, **COMMON)
settings.register_profile("long", derandomize=False, max_examples=5000, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
