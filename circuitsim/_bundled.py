"""Bundled files: decks, inside the package in a wheel, in ``netlists/`` in a checkout; tables of data in TOML."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def netlists() -> str:
    """The folder of the bundled decks; ``setup.py`` copies it into wheels."""
    installed = os.path.join(_PACKAGE, "examples", "netlists")
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(_PACKAGE), "netlists")


def parts() -> str:
    """The folder of the bundled sub-circuits, which any deck can include by name."""
    return os.path.join(netlists(), "parts")


@cache
def tables(path: str) -> dict[str, Any]:
    """The tables of a TOML file of the package, such as ``training/presets.toml``; not to be changed."""
    import tomllib

    with open(os.path.join(_PACKAGE, path), "rb") as file:
        return tomllib.load(file)
