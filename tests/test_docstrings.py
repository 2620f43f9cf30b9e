"""Public callables say what their parameters are: counted, and never fewer than before."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

LEAST = 0.35
"""Share of the public callables with two or more parameters that state them in a section; raise it as they do."""

COMPLETE = ("circuitsim", "circuitsim.netlist", "circuitsim.examples", "circuitsim.plotting", "circuitsim.report",
            "circuitsim.trained")  # fmt: skip
"""Packages in which all functions do (methods apart)."""


def reference() -> Any:
    """docs/conf.py, which states the public packages."""
    found = importlib.util.spec_from_file_location("site_settings", Path(__file__).parents[1] / "docs/conf.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def several(function: Callable[..., Any]) -> bool:
    """Whether it has two or more parameters."""
    return len([name for name in inspect.signature(function).parameters if name not in ("self", "cls")]) > 1


def functions(module: str, methods: bool) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Public functions of a package, and the public methods of its classes."""
    found = importlib.import_module(module)
    for name in reference().public_names(module):
        value = getattr(found, name)
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value) and methods:
            own = ((key, part) for key, part in vars(value).items() if inspect.isfunction(part))
            yield from ((f"{name}.{key}", part) for key, part in own if not key.startswith("_"))


def stated(function: Callable[..., Any]) -> bool:
    """Whether the docstring has a section on parameters."""
    return "Parameters\n" in (function.__doc__ or "")


def test_the_share_of_documented_parameters() -> None:
    pytest.importorskip("sklearn", reason="estimators are public")
    every = {f"{module}.{name}": function for module in reference().PUBLIC for name, function in functions(module, True)
             if several(function)}  # fmt: skip
    good = sum(map(stated, every.values()))
    assert len(every) > 150
    assert good / len(every) >= LEAST, f"{good} of {len(every)}"


@pytest.mark.parametrize("module", COMPLETE)
def test_functions_of_these_packages_state_all_parameters(module: str) -> None:
    assert [name for name, function in functions(module, False) if several(function) and not stated(function)] == []
