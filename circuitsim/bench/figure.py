"""The measurements as a picture: time over size, a panel a family, failures as open marks at the top."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from circuitsim.bench.competitors import OURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 4


def picture(rows: list[dict[str, Any]], form: str = "png") -> bytes:
    """Cold times of every competitor over the number of nodes, on logarithmic axes.

    Parameters
    ----------
    rows : list of dict
        Measurements (`circuitsim.bench.measure.measure`).
    form : str
        ``"png"``, ``"svg"`` or ``"pdf"``.
    """
    from matplotlib.figure import Figure

    families = sorted({row["family"] for row in rows})
    names = [OURS, *sorted({row["competitor"] for row in rows} - {OURS})]
    down = -(-len(families) // COLUMNS)
    figure = Figure(figsize=(3.2 * COLUMNS, 2.7 * down), layout="constrained")
    axes = figure.subplots(down, COLUMNS, squeeze=False, sharey=True).ravel()
    for ax, family in zip(axes, families):
        _panel(ax, [row for row in rows if row["family"] == family], names)
        ax.set_title(family, fontsize=9)
    for ax in axes[len(families) :]:
        ax.set_axis_off()
    for ax in axes[::COLUMNS][:down]:
        ax.set_ylabel("cold, s")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(6, len(labels)), fontsize=8)
    out = io.BytesIO()
    figure.savefig(out, format=form, dpi=110)
    return out.getvalue()


def _panel(ax: Axes, rows: list[dict[str, Any]], names: list[str]) -> None:
    from matplotlib.ticker import NullFormatter

    for k, name in enumerate(names):
        mine = sorted((row for row in rows if row["competitor"] == name), key=lambda row: row.get("nodes", 0))
        good = [row for row in mine if "failure" not in row]
        style = {"color": "black", "linewidth": 2.0, "zorder": 3} if name == OURS else {"color": f"C{k % 10}"}
        ax.plot([r["nodes"] for r in good], [r["cold"] for r in good], marker=".", label=name, **style)
        failed = [row["nodes"] for row in mine if "failure" in row and "nodes" in row]
        ax.plot(failed, [0.98 - 0.03 * k] * len(failed), "x", color=f"C{k % 10}", transform=ax.get_xaxis_transform())
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.grid(alpha=0.3)
    ax.set_xlabel("nodes", fontsize=8)
