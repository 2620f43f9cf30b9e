"""The measurements as tables: at equal verified error, with every failure listed and what is unfair said."""

from __future__ import annotations

import csv
import io
import math
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from circuitsim.bench.competitors import OURS

SHIFT = 1e-4
"""Shift of the geometric means, s: times far below it count alike."""

UNFAIR = """\
What is unfair. To the others: competitors are asked for the tightest tolerance they need, one after the other, but only
the successful one is timed; ours is compiled before the clock starts (some ten seconds once for each installation), and
the problems are our trade: general solvers know nothing of networks. To us: a foreign answer is judged by whichever
tolerance for "equal ends" of a diode makes it look best, and nothing is charged for its lack of a certificate, which
our times include. Every measurement is a process of its own with one thread."""


def markdown(rows: list[dict[str, Any]], settings: str) -> str:
    """The report of a run as Markdown."""
    lines = ["# circuitsim beside other solvers", "", machine(), settings, ""]
    lines += ["Times are medians in ms; *cold* is build and solve, *new values* a solve for new source values.", ""]
    lines += [
        "| family | unknowns | diodes (conducting) | ours cold | ours new values | our error "
        "| best other cold | ratio | best other new values | ratio |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case in _cases(rows):
        lines.append(_line(case))
    lines += ["", "Best: among those whose verified error is at most 1e-9. Ratios above one are in our favour.", ""]
    lines += _means(rows) + _approximate(rows) + _growth(rows) + _failures(rows) + ["", UNFAIR]
    return "\n".join(lines) + "\n"


def as_csv(rows: list[dict[str, Any]]) -> str:
    """All measurements, one row each."""
    columns = [
        *("family", "unknowns", "seed", "competitor", "nodes", "diodes", "conducting", "cold", "build", "solve"),
        *("prepared", "repeats", "error", "default_error", "equation", "tolerance", "memory", "failure"),
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def machine() -> str:
    """Machine, versions and load, in a line."""
    found = []
    for package in ("circuitsim", "numpy", "scipy", "numba", "cvxpy", "clarabel", "osqp", "piqp", "daqp", "highspy"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{platform.machine()}, {os.cpu_count()} processors, load {load}; Python {platform.python_version()}, " + (
        ", ".join(found) + "."
    )


def _cases(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows case by case, each case with our row first, by family and size."""
    grouped: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda r: (r["family"], r["unknowns"], r["seed"], r["competitor"] != OURS)):
        grouped.setdefault((row["family"], row["unknowns"], row["seed"]), []).append(row)
    return list(grouped.values())


def best(case: list[dict[str, Any]], kind: str) -> dict[str, Any] | None:
    """The fastest other competitor of a case that succeeded, by a kind of time."""
    others = [row for row in case if row["competitor"] != OURS and "failure" not in row and "off" not in row]
    return min(others, key=lambda row: row[kind], default=None)


def _line(case: list[dict[str, Any]]) -> str:
    ours = case[0]
    cells = [ours["family"], f"{ours['unknowns']:,}"]
    if ours["competitor"] != OURS or "failure" in ours:
        return "| " + " | ".join([*cells, f"ours failed: {ours.get('failure', 'not run')}", *["–"] * 7]) + " |"
    cells += [f"{ours['diodes']:,} ({ours['conducting']:.0%})", _ms(ours["cold"]), _ms(ours["prepared"])]
    cells.append(f"{ours['error']:.0e}")
    for kind in ("cold", "prepared"):
        other = best(case, kind)
        cells += ["none", "–"] if other is None else [
            f"{_ms(other[kind])} {other['competitor']}", f"{other[kind] / ours[kind]:.1f}×"
        ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g}"


def _means(rows: list[dict[str, Any]]) -> list[str]:
    """Shifted geometric means of times over the cases a competitor and we both solved, and its failures."""
    lines = ["Shifted geometric means over the cases that a competitor solved, against ours on the same cases:", ""]
    lines += ["| competitor | solved | failed | cold | new values |", "|---|---|---|---|---|"]
    ours = {(r["family"], r["unknowns"], r["seed"]): r for r in rows if r["competitor"] == OURS and "failure" not in r}
    for name in sorted({row["competitor"] for row in rows} - {OURS}):
        mine = [row for row in rows if row["competitor"] == name]
        if any("off" in row for row in mine):
            continue
        good = [r for r in mine if "failure" not in r and (r["family"], r["unknowns"], r["seed"]) in ours]
        cells = [name, str(len(good)), str(len(mine) - len(good))]
        for kind in ("cold", "prepared"):
            theirs = [row[kind] for row in good]
            own = [ours[row["family"], row["unknowns"], row["seed"]][kind] for row in good]
            cells.append(f"{shifted_mean(theirs) / shifted_mean(own):.1f}×" if good else "–")
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, ""]


def _approximate(rows: list[dict[str, Any]]) -> list[str]:
    """Those that solve a neighbouring problem: their times against ours, and how far off they are."""
    lines = []
    for case in _cases(rows):
        for row in case[1:]:
            if "off" in row and "failure" not in row and "failure" not in case[0]:
                ratios = [f"{_ms(row[kind])} ({row[kind] / case[0][kind]:.1f}×)" for kind in ("cold", "prepared")]
                cells = [row["competitor"], row["family"], f"{row['unknowns']:,}", *ratios, f"{row['off']:.1e}"]
                lines.append("| " + " | ".join(cells) + " |")
    if not lines:
        return []
    head = [
        "With diodes that are only nearly ideal (whole processes; *off*: largest difference of a potential against the",
        "largest potential):",
        "",
        "| program | family | unknowns | cold (against ours) | new values | off |",
        "|---|---|---|---|---|---|",
    ]
    return [*head, *lines, ""]


def shifted_mean(times: list[float]) -> float:
    """Geometric mean of times + `SHIFT`, less `SHIFT`, s."""
    return math.exp(sum(math.log(t + SHIFT) for t in times) / len(times)) - SHIFT


def _growth(rows: list[dict[str, Any]]) -> list[str]:
    """How our time and memory grow with the number of unknowns, between the two largest sizes of each family."""
    lines = ["| family | our cold time grows as | peak memory at the largest size |", "|---|---|---|"]
    for family in sorted({row["family"] for row in rows}):
        mine = [r for r in rows if r["family"] == family and r["competitor"] == OURS and "failure" not in r]
        mine.sort(key=lambda row: row["unknowns"])
        if len(mine) >= 2:
            small, large = mine[-2:]
            power = math.log(large["cold"] / small["cold"]) / math.log(large["nodes"] / small["nodes"])
            lines.append(f"| {family} | n^{power:.2f} | {large['memory']:.0f} MB |")
    return [*lines, ""]


def _failures(rows: list[dict[str, Any]]) -> list[str]:
    """Every failure, by its text."""
    lines = ["Failures (listed, never turned into a ratio):", ""]
    failed = [row for row in rows if "failure" in row]
    lines += [f"- {row['family']} {row['unknowns']:,}, {row['competitor']}: {row['failure']}" for row in failed]
    return lines if failed else ["No failures."]
