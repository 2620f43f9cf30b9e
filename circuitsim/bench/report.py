"""The measurements as a table and a plot, at equal verified error, with every failure listed."""

from __future__ import annotations

import itertools
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from circuitsim._version import __version__
from circuitsim.bench.competitors import NGSPICE, OURS

PACKAGES = ("numpy", "scipy", "numba", "cvxpy", "clarabel", "osqp", "piqp", "scs", "daqp", "highspy")

NOTES = """\
Times are medians in ms, one thread: *cold* is build and solve, *new values* a solve for new source values on what was
built, *batch* one of 1,000 samples solved together. Others have their time over ours in brackets. Best: among those
whose verified error is at most 1e-9. ngspice has nearly ideal diodes, a neighbouring problem: its solve is one `.op`
inside a running process, beside our new values; *off* is its largest difference of a potential against the largest
potential.

What is unfair. To the others: competitors are asked for the tightest tolerance they need, one after the other, but only
the successful one is timed; ours is compiled before the clock starts (a minute or two, once for each installation), and
the problems are our trade: general solvers know nothing of networks. To us: a foreign answer is judged by whichever
tolerance for "equal ends" of a diode makes it look best, ends so close are made equal, and nothing is charged for its
lack of a certificate, which our times include. Every measurement is a process of its own with one thread."""


def markdown(rows: list[dict[str, Any]], settings: str) -> str:
    """The report of a run as Markdown."""
    heads = "family", "unknowns", "diodes (conducting)", "ours: cold", "new values", "batch", "error"
    others = "best of cvxpy, cold", "new values", "ngspice", "off"
    lines = ["# circuitsim beside other solvers", "", machine(), settings, ""]
    lines += ["| " + " | ".join([*heads, *others]) + " |", "|---" * (len(heads) + len(others)) + "|"]
    lines += ["| " + " | ".join(_cells(case)) + " |" for case in _cases(rows)]
    failed = [row for row in rows if "failure" in row]
    lines += ["", NOTES, "", "Failures, never turned into a ratio:" if failed else "No failures.", ""]
    lines += [f"- {row['family']} {row['unknowns']:,}, {row['competitor']}: {row['failure']}" for row in failed]
    return "\n".join(lines) + "\n"


def machine() -> str:
    """Machine, versions and load in one line."""
    found = [f"circuitsim {__version__}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    start = f"{platform.machine()}, {os.cpu_count()} processors, load {load}; Python {platform.python_version()}"
    return f"{start}, {', '.join(found)}."


def _cases(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows by case, sorted by family and size; ours comes first."""

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["family"], row["unknowns"], row["seed"]

    ordered = sorted(rows, key=lambda row: (*key(row), row["competitor"] != OURS))
    return [list(group) for _, group in itertools.groupby(ordered, key)]


def _cells(case: list[dict[str, Any]]) -> list[str]:
    """One table row: ours, the best of cvxpy for each kind of time, ngspice."""
    ours, others = case[0], [row for row in case[1:] if "failure" not in row]
    cells = [ours["family"], f"{ours['unknowns']:,}"]
    if ours["competitor"] != OURS or "failure" in ours:
        return [*cells, f"ours failed: {ours.get('failure', 'not run')}", *["–"] * 8]
    cells.append(f"{ours['diodes']:,} ({ours['conducting']:.0%})")
    cells += [f"{1e3 * ours[kind]:.3g}" if kind in ours else "–" for kind in ("cold", "prepared", "batch")]
    cells.append(f"{ours['error']:.0e}")
    for kind in ("cold", "prepared"):
        best = min((row for row in others if row["competitor"] != NGSPICE), key=lambda row: row[kind], default=None)
        cells.append("none" if best is None else f"{_beside(best[kind], ours[kind])} {best['competitor']}")
    spice = next((row for row in others if row["competitor"] == NGSPICE), None)
    return cells + (
        ["–", "–"] if spice is None else [_beside(spice["inside"], ours["prepared"]), f"{spice['off']:.1e}"]
    )


def times(ratio: float) -> str:
    """A ratio with two or three digits."""
    return f"{ratio:.0f}×" if ratio >= 99.5 else f"{ratio:#.2g}×".replace(".×", "×")


def _beside(seconds: float, ours: float) -> str:
    return f"{1e3 * seconds:.3g} ({times(seconds / ours)})"


def draw(figure: Any, rows: list[dict[str, Any]]) -> None:
    """Plot the cold times of every competitor against the number of nodes, one panel per family."""
    families = sorted({row["family"] for row in rows})
    names = [OURS, *sorted({row["competitor"] for row in rows} - {OURS})]
    down = -(-len(families) // 4)
    figure.set_size_inches(12.8, 2.7 * down)
    panels = figure.subplots(down, 4, squeeze=False, sharey=True).ravel()
    for axes, family in itertools.zip_longest(panels, families):
        if family is None:
            axes.set_axis_off()
            continue
        for name in names:
            good = [r for r in rows if (r["family"], r["competitor"]) == (family, name) and "failure" not in r]
            points = sorted((row["nodes"], row["cold"]) for row in good)
            style = {"color": "black", "linewidth": 2.0, "zorder": 3} if name == OURS else {}
            axes.plot([x for x, _ in points], [y for _, y in points], marker=".", label=name, **style)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.grid(alpha=0.3)
        axes.set_title(family, fontsize=9)
        axes.set_xlabel("nodes", fontsize=8)
    for axes in panels[::4]:
        axes.set_ylabel("cold, s")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(6, len(labels)), fontsize=8)
