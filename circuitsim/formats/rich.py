"""Drawings of circuits and operating points for notebooks.

To avoid import cycles, `Picture` loads the drawing modules when it is shown.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWN = 400
"""Maximum number of elements of a circuit that is drawn automatically."""


class Picture(NamedTuple):
    """A drawing of a circuit; a notebook shows it.

    Attributes
    ----------
    source : OperatingPoint or Circuit
        What is drawn.
    """

    source: Any

    def svg(self) -> str:
        """The drawing as an ``<svg>`` element; empty for a circuit that is too large."""
        return str(import_module("circuitsim.plotting.svg").circuit_svg(self.source))

    def inline(self) -> str:
        """`svg` of up to `DRAWN` elements, else nothing."""
        return self.svg() if len(self._circuit) <= DRAWN else ""

    def figure(self) -> Figure:
        """The drawing as a figure; of a large circuit a power grid's map or tables of the worst nodes and elements."""
        found: Figure = import_module("circuitsim.plotting.circuit").draw_circuit(self.source)
        return found

    def _repr_svg_(self) -> str:
        from circuitsim.plotting.figure import rendered

        return self.svg() or rendered(self.figure(), "svg").decode()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing as PNG, SVG or PDF, by the ending of ``path``; an existing file is replaced in one step.

        Raises
        ------
        UsageError
            Another ending.
        """
        from circuitsim.plotting.figure import write

        write(self.figure(), path)

    @property
    def _circuit(self) -> Any:
        return getattr(self.source, "circuit", self.source)

    def __repr__(self) -> str:
        circuit = self._circuit
        return f"Picture of {circuit.title!r}, {len(circuit)} elements: save(path) writes it"
