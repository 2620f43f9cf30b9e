"""Names of `circuitsim` itself, found on first use."""

import importlib.util
from types import ModuleType

import pytest

import circuitsim


@pytest.mark.parametrize("name", dir(circuitsim))
def test_every_name_is_there_on_first_use(name: str) -> None:
    if name in ("jax", "torch") and importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    value = getattr(circuitsim, name)
    assert not isinstance(value, ModuleType) or value.__name__ == f"circuitsim.{name}"


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'slove'"):
        circuitsim.slove
