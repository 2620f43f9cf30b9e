"""Hypothesis profiles for the whole suite, chosen by HYPOTHESIS_PROFILE.

``ci`` (the default) is deterministic and reports a failing example as it found it; ``shrink`` is the same, but makes
the example small first (minutes); ``long`` draws other examples every time, and more of them.
"""

import gc
import logging
import os
import tomllib
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings

# Without deadlines (a loaded machine is not a failure) and without a data base of past examples.
COMMON = {
    "deadline": None,
    "database": None,
    "print_blob": False,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
}
settings.register_profile("ci", derandomize=True, phases=[Phase.explicit, Phase.generate], **COMMON)
settings.register_profile("shrink", derandomize=True, **COMMON)
settings.register_profile("long", max_examples=5000, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Processes that tests start find circuitsim's modules compiled; without, each compiles them all again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# argparse looks for translations of each of its texts, which could be found.
os.environ["LANGUAGE"] = "C"

# Whether kernels are compiled during a test depends on what ran before; what a command says must not.
logging.getLogger("circuitsim.compilation").setLevel(logging.ERROR)


@pytest.fixture(autouse=True)
def _same_draws(request: pytest.FixtureRequest) -> None:
    """Estimators without a random_state draw from numpy's global generator: the same numbers in every run of a test."""
    np.random.seed(crc32(request.node.nodeid.encode()))  # noqa: NPY002 (the generator that scikit-learn uses)


QUICK = {
    place
    for places in tomllib.loads((Path(__file__).parent / "quick.toml").read_text(encoding="utf-8")).values()
    for place in places
}
"""Files, tests and beginnings of their cases of ``pytest -m quick``."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``-m quick`` no other file is imported."""
    name = collection_path.relative_to(config.rootpath).as_posix()
    quick = config.getoption("markexpr") == "quick" and collection_path.suffix == ".py"
    return True if quick and name not in {place.split("::")[0] for place in QUICK} else None


COMPILE = ("tests/test_forms_of_kernels.py", "tests/layered/test_layered_engine.py")
"""Tests that compile what most others call."""

COMPILE_NOTHING = (
    "tests/test_style.py",
    "tests/test_kernels.py",
    "tests/test_ratchets.py",
    "tests/netlist/test_hostile_decks.py",
    "tests/netlist/test_unread_words.py",
    "tests/test_site.py::test_the_site",
)
"""Those that compile nothing into the common cache, for a minute and a half; the last needs what others compile."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the quick tests, and begin with compilation: one of two processes compiles while the other, which begins in
    the middle, needs no kernels, so that nothing is compiled twice."""
    for item in items:
        if item.nodeid.startswith(tuple(QUICK)):
            item.add_marker("quick")
    first, middle = (
        [item for file in files for item in items if item.nodeid.startswith(file)]
        for files in (COMPILE, COMPILE_NOTHING)
    )
    rest = [item for item in items if not item.nodeid.startswith(COMPILE + COMPILE_NOTHING)]
    half = max(len(items) // 2 - len(first), 0)
    items[:] = first + rest[:half] + middle + rest[half:]


def pytest_collection_finish() -> None:
    """Have no collection of garbage traverse modules and tests, which stay: that took a tenth of the time."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Each process gets a stretch of the tests and takes from the other's end when it has done its own.

    Tests beside each other need the same kernels: dealt out in turn, as by default, every process compiles all of them.
    In stretches few are compiled twice.
    """
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getvalue("dist") == "load" else None
