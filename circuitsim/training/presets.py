"""The published models of all families, from one table."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def published(family: str) -> dict[str, dict[str, Any]]:
    """The models of a family of ``circuitsim train`` as ``presets.toml`` states them.

    Parameters
    ----------
    family : {"drn", "dhn", "ffebm"}

    Returns
    -------
    dict
        By name; not to be changed. Chains name what they share in ``layers`` and ``pixels``.
    """
    text = resources.files("circuitsim.training").joinpath("presets.toml").read_text(encoding="utf-8")
    table: dict[str, dict[str, Any]] = tomllib.loads(text)[family]
    return table
