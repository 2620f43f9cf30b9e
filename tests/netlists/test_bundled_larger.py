"""The generated decks: equal to what generate.py writes, and right by independent computations in plain numpy."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

NETLISTS = Path(__file__).parents[2] / "netlists"


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", NETLISTS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LEARNING = ["learn-iris", "learn-digits", "learn-allostery"]


@pytest.mark.parametrize("name", ["mesh-10x10", "crossbar-1r", "crossbar-1d1r", "deep-resistive-network", *LEARNING])
def test_the_committed_deck_is_the_generated_one(name: str) -> None:
    assert (NETLISTS / f"{name}.cir").read_text(encoding="utf-8") == generator().DECKS[f"{name}.cir"]()
