"""How notebooks show circuits and results: `_repr_html_`, and drawings as `Picture`.

What draws imports every kind of result, so results cannot import what draws: they name it, and it is loaded when
something is shown.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, NamedTuple

RENDERER = "circuitsim.notebook"
"""Module whose functions ``html_of``, ``svg_of`` and ``save`` draw a circuit or result."""


def repr_html(result: Any) -> str:
    """HTML of a circuit or result: the ``_repr_html_`` of their classes."""
    return str(import_module(RENDERER).html_of(result))


class Picture(NamedTuple):
    """A drawing of a circuit; a notebook shows it.

    Attributes
    ----------
    source : OperatingPoint or Circuit
        What is drawn.
    """

    source: Any

    def _repr_svg_(self) -> str:
        return str(import_module(RENDERER).svg_of(self.source))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing as PNG, SVG or PDF, by the ending of ``path``; an existing file is replaced in one step.

        Raises
        ------
        UsageError
            Another ending.
        """
        import_module(RENDERER).save(self.source, path)

    def __repr__(self) -> str:
        circuit = getattr(self.source, "circuit", self.source)
        return f"Picture of {circuit.title!r}, {len(circuit)} elements: save(path) writes it"
