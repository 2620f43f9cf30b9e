"""`Result`: the common base of all analysis results."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from circuitsim.formats import rich
from circuitsim.units import short

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from circuitsim.formats.table import Table

LINE, TITLE = 120, 40
"""Maximum number of characters of a `repr`, and of the title in it."""


def verdict(certificate: Any) -> str:
    """The verdict of a certificate in a word or two."""
    return "certified" if certificate.certified else "not certified"


def proof(certificate: Any) -> str:
    """The certificate of an operating point in one line."""
    found, allowed = certificate.worst, certificate.tolerance
    return f"{verdict(certificate)}: largest relative residual {found:.1e} (tolerance {allowed:.0e})"


class Result(ABC):
    """The result of an analysis.

    A subclass defines `tables`, `PICTURE` or `_figure`, `_heading`, and `_proof` if there is another certificate than
    that of the operating point ``point``.
    """

    PICTURE = ""

    @abstractmethod
    def tables(self) -> dict[str, Table]:
        """The result as tables by name, the main one first."""

    def _figure(self) -> Figure:
        """The figure of `plot`, by default that of the function `PICTURE` of `circuitsim.plotting.charts`."""
        figure: Figure = getattr(import_module("circuitsim.plotting.charts"), self.PICTURE)(self)
        return figure

    @abstractmethod
    def _heading(self) -> tuple[str, str]:
        """Title of the circuit (or none), and a short description of the result."""

    def _proof(self) -> str:
        """The certificate in one line, by default that of the operating point of ``point``."""
        point = getattr(self, "point", None)
        return "" if point is None else proof(point.certificate)

    def to_dict(self) -> dict[str, Any]:
        """The main table as plain values for JSON: one list per column, None for non-finite numbers."""
        return next(iter(self.tables().values())).to_dict()

    def to_dataframe(self, table: str | None = None) -> pandas.DataFrame:
        """A table as a pandas frame; numbers in base units.

        Parameters
        ----------
        table : str, optional
            One of the names of `tables`; the main table without it.

        Raises
        ------
        UsageError
            There is no such table.
        """
        import pandas

        from circuitsim.errors import UsageError

        tables = self.tables()
        if table is not None and table not in tables:
            raise UsageError(f"there is no table {table!r}; there are {', '.join(tables)}")
        found = tables[table or next(iter(tables))]
        frame = pandas.DataFrame(dict(zip(found.header, found.columns)))
        return frame.set_index(found.header[0]) if found.named else frame

    def text(self, tables: Sequence[Table] = ()) -> str:
        """The result as text: heading, tables, and the certificate in one line.

        Parameters
        ----------
        tables : sequence of Table
            In place of the result's own.
        """
        main, *others = tables or self._shown().values()
        parts = [*self._lines(), "", main.text()]
        parts += [table.text(rich.SHOWN) for table in others if len(table.columns[0])]
        return "\n".join([*parts, self._proof()]).rstrip() + "\n"

    def plot(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Figure:
        """Draw the result.

        Parameters
        ----------
        path : str or path-like, optional
            Also write the figure there: PNG, SVG or PDF, by the ending of the name.
        **options
            Waveforms and frequency responses take ``columns="v(out) i(R1)"``.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from circuitsim.plotting.figure import write

        figure = self._figure(**options)
        if path is not None:
            write(figure, path)
        return figure

    def _shown(self) -> dict[str, Table]:
        """The displayed tables."""
        return self.tables()

    def _certificate(self) -> str:
        """The certificate as HTML."""
        return f"<p>{escape(self._proof())}</p>"

    def _picture(self) -> str:
        """The figure as HTML."""
        return rich.image(self._figure(), self._caption())

    def _caption(self) -> str:
        """Title and description."""
        return ": ".join(self._lines())

    def _lines(self) -> list[str]:
        """Title, without a comment's star, and description."""
        title, words = self._heading()
        return [line for line in (title.lstrip("* "), words) if line]

    def _repr_html_(self) -> str:
        tables = [f"<p>{escape(name)}</p>{rich.cells(table, rich.SHOWN)}" for name, table in self._shown().items()]
        return rich.section(repr(self), self._picture(), *tables, self._certificate())

    def __repr__(self) -> str:
        title, words = self._heading()
        name = f"{short(title.lstrip('* '), TITLE)!r}: " if title else ""
        kind = type(self).__name__.removeprefix("Lazy").replace("Implicit", "Transient")
        text = f"{kind}({name}{words})"
        return text if len(text) <= LINE else text[: LINE - 4].rpartition(", ")[0] + ", …)"
