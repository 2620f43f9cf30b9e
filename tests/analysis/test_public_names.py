"""Names of `circuitsim` itself, found on first use."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

import circuitsim
from circuitsim import examples


@pytest.mark.parametrize("name", dir(circuitsim))
def test_every_name_is_there_on_first_use(name: str) -> None:
    if name in ("jax", "torch") and importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    value = getattr(circuitsim, name)
    assert not isinstance(value, ModuleType) or value.__name__ == f"circuitsim.{name}"


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'slove'"):
        circuitsim.slove


def test_a_deck_is_solved_as_its_circuit() -> None:
    deck = circuitsim.load(examples.path("rectifier-bridge"))
    whole, own = circuitsim.solve(deck), circuitsim.solve(deck.circuit)
    assert whole.circuit is deck.operating_circuit
    assert whole.voltages.tobytes() == own.voltages.tobytes() and whole["plus"] == 10.0


def test_a_deck_with_a_tran_card_is_run_as_stated() -> None:
    deck = circuitsim.load(examples.path("half-wave-smoothed"))
    run = circuitsim.transient(deck)
    assert [run.times[0], run.times[-1], run.times.size] == [0.0, 0.1, 1001]
    assert circuitsim.transient(deck, 0.02).times[-1] == 0.02
    assert circuitsim.transient(deck, points=11).times.size == 11
    with pytest.raises(circuitsim.UsageError, match="give stop"):
        circuitsim.transient(deck.circuit)
