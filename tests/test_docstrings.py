"""Public callables with two or more parameters say what these are."""

import doctest
import importlib
import importlib.util
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import site_settings


def parameters(function: Callable[..., Any]) -> list[str]:
    """Names of its parameters."""
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Public functions, and the public methods of public classes, by name."""
    for module in site_settings().PUBLIC:
        found = importlib.import_module(module)
        for name in site_settings().public_names(module):
            value = getattr(found, name)
            if inspect.isfunction(value):
                yield f"{module}.{name}", value
            elif inspect.isclass(value):
                for key, part in vars(value).items():
                    part = part.__func__ if isinstance(part, classmethod | staticmethod) else part
                    if inspect.isfunction(part) and not key.startswith("_"):
                        yield f"{module}.{name}.{key}", part


def stated(function: Callable[..., Any]) -> list[str]:
    """The names in its section on parameters, empty without one."""
    text = inspect.getdoc(function) or ""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", text, re.DOTALL | re.MULTILINE)
    heads = re.findall(r"^(\*{0,2}\w[^\n:]*?)(?: :.*)?$", section[1], re.MULTILINE) if section else []
    return [name.strip().lstrip("*") for head in heads for name in head.split(",")]


def test_every_public_callable_has_annotations() -> None:
    """Kernels may do without; a program that uses the package under ``mypy --strict`` sees none."""
    pytest.importorskip("sklearn", reason="estimators are public")
    bare = [
        name for name, function in functions() if not {*parameters(function), "return"} <= set(function.__annotations__)
    ]
    assert bare == []


def test_every_public_callable_states_its_parameters() -> None:
    """In a section of its own, or as those of the method it implements (“the arguments are those of `Stage.vjp`”)."""
    pytest.importorskip("sklearn", reason="estimators are public")
    every = dict(functions())
    by_name = {".".join(name.split(".")[-2:]): function for name, function in every.items()}
    assert sum(len(parameters(function)) > 1 for function in every.values()) > 150
    wrong = []
    for name, function in every.items():
        names, own = parameters(function), stated(function)
        referred = re.search(r"arguments\s+are\s+those\s+of\s+`([\w.]+)`", inspect.getdoc(function) or "")
        if referred:
            own = stated(by_name[referred[1]])
        if len(names) > 1 and [part for part in own if part in names] != names:
            wrong.append(f"{name}: has {', '.join(names)}; states {', '.join(own) or 'none'}")
    assert wrong == [], "\n" + "\n".join(wrong)


PACKAGE = Path(__file__).parents[1]
WITH_EXAMPLES = [path for path in PACKAGE.glob("circuitsim/**/*.py") if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: path.stem)
def test_examples_of_docstrings(path: Path) -> None:
    name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted and not found.failed
