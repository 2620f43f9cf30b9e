"""The measurements as tables: at equal verified error, with every failure listed and what is unfair said."""

from __future__ import annotations

import csv
import io
import math
import os
import platform
import statistics
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from circuitsim._version import __version__
from circuitsim.bench.competitors import OURS

SHIFT = 1e-4
"""Shift of the geometric means, s: times far below it count the same."""

UNFAIR = """\
What is unfair. To the others: competitors are asked for the tightest tolerance they need, one after the other, but only
the successful one is timed; ours is compiled before the clock starts (a minute or two, once for each installation), and
the problems are our trade: general solvers know nothing of networks. To us: a foreign answer is judged by whichever
tolerance for "equal ends" of a diode makes it look best, ends so close are made equal, and nothing is charged for its
lack of a certificate, which our times include. Every measurement is a process of its own with one thread."""


INSIDE_SIZES = ((10, 50), (100, 150), (1000, 2500))
"""Numbers of unknowns, from and to, that are summed up for solves inside a running program."""


def markdown(rows: list[dict[str, Any]], settings: str) -> str:
    """The report of a run as Markdown."""
    lines = ["# circuitsim beside other solvers", "", machine(), settings, ""]
    lines += [
        "Times are medians in ms: *cold* is build and solve, *new values* a solve for new source values on what was",
        "built, *warm* the same from the diodes that conducted before, *batch* one of 1,000 samples solved together.",
        "",
        "| family | unknowns | diodes (conducting) | ours: cold | new values | warm | batch | error "
        "| best other cold | ratio | best other new values | ratio | batch ratio |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case in _cases(rows):
        lines.append(_line(case))
    lines += [
        "",
        "Best: among those whose verified error is at most 1e-9. Ratios above one are in our favour; the batch's is",
        "against the best other's new values, since others solve one sample after the other.",
        "",
    ]
    lines += _small(rows) + _means(rows) + _approximate(rows) + _growth(rows) + _failures(rows) + ["", UNFAIR]
    return "\n".join(lines) + "\n"


def as_csv(rows: list[dict[str, Any]]) -> str:
    """All measurements, one row each."""
    columns = [
        *("family", "unknowns", "seed", "competitor", "nodes", "diodes", "conducting", "cold", "build", "solve"),
        *(
            "prepared",
            "warm",
            "batch",
            "inside",
            "off",
            "repeats",
            "error",
            "default_error",
            "equation",
            "tolerance",
            "memory",
            "failure",
        ),
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def machine() -> str:
    """Machine, versions and load, in a line."""
    found = [f"circuitsim {__version__}"]
    others = ("cvxpy", "clarabel", "osqp", "piqp", "scs", "daqp", "highspy")
    for package in ("numpy", "scipy", "numba", *others):
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
    cells += [f"{ours['diodes']:,} ({ours['conducting']:.0%})"]
    cells += [_ms(ours[kind]) if kind in ours else "–" for kind in ("cold", "prepared", "warm", "batch")]
    cells.append(f"{ours['error']:.0e}")
    for kind in ("cold", "prepared"):
        other = best(case, kind)
        cells += (
            ["none", "–"]
            if other is None
            else [f"{_ms(other[kind])} {other['competitor']}", times(other[kind] / ours[kind])]
        )
    other = best(case, "prepared")
    cells.append("–" if other is None or "batch" not in ours else times(other["prepared"] / ours["batch"]))
    return "| " + " | ".join(cells) + " |"


def times(ratio: float) -> str:
    """A ratio to two digits or three."""
    return f"{ratio:.0f}×" if ratio >= 99.5 else f"{ratio:#.2g}×".replace(".×", "×")


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g}"


SMALL = 150
"""Most unknowns of what counts as a small circuit."""


def _small(rows: list[dict[str, Any]]) -> list[str]:
    """Geometric means of the ratios on small circuits, and the worst ones, per kind of competitor."""
    kinds = {
        "best cvxpy backend": lambda name: name.startswith("cvxpy"),
        "best solver called directly": lambda name: not name.startswith("cvxpy") and name != OURS,
        "PIQP called directly": lambda name: name == "piqp",
    }
    lines = []
    for title, chosen in kinds.items():
        for kind, own in (("cold", "cold"), ("prepared", "prepared"), ("prepared", "batch")):
            found = []
            for case in _cases(rows):
                other = best([case[0], *(row for row in case[1:] if chosen(row["competitor"]))], kind)
                if case[0]["unknowns"] <= SMALL and other is not None and own in case[0]:
                    found.append((other[kind] / case[0][own], f"{case[0]['family']} {case[0]['unknowns']}"))
            if found:
                mean = statistics.geometric_mean(ratio for ratio, _ in found)
                worst, where = min(found)
                what = "new values" if kind == "prepared" else kind
                what += " against our batch" if own == "batch" else ""
                lines.append(f"| {title} | {what} | {len(found)} | {times(mean)} | {times(worst)} ({where}) |")
    if not lines:
        return []
    head = [f"Circuits of at most {SMALL} unknowns, ratios over families:", ""]
    head += ["| against | time | cases | geometric mean | worst |", "|---|---|---|---|---|"]
    return [*head, *lines, ""]


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
        ours = case[0]
        for row in case[1:]:
            if "off" in row and "failure" not in row and "failure" not in ours:
                ratios = [f"{_ms(row[kind])} ({times(row[kind] / ours[kind])})" for kind in ("cold", "prepared")]
                alone, batch = "–", "–"
                if "inside" in row:
                    alone = f"{_ms(row['inside'])} ({times(row['inside'] / ours['prepared'])})"
                    batch = times(row["inside"] / ours["batch"]) if "batch" in ours else "–"
                cells = [row["competitor"], row["family"], f"{row['unknowns']:,}", *ratios, alone, batch]
                lines.append("| " + " | ".join([*cells, f"{row['off']:.1e}"]) + " |")
    if not lines:
        return []
    head = [
        "With diodes that are only nearly ideal: whole processes, and one solve *inside* a running one, which repeats",
        "it in a loop of its own: against our new values, one call from Python each, and against a sample of our",
        "batch, a loop of ours; both without start-up, both on one thread. *Off*: largest difference of a potential",
        "against the largest potential.",
        "",
        "| program | family | unknowns | process (ours cold) | new values | inside (new values) | (batch) | off |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return [*head, *lines, "", *_inside_means(rows)]


def _inside_means(rows: list[dict[str, Any]]) -> list[str]:
    """Geometric means over families of one solve inside a running program against ours."""
    lines = []
    for low, high in INSIDE_SIZES:
        found: dict[str, list[float]] = {"prepared": [], "batch": []}
        for case in _cases(rows):
            inside = next((row["inside"] for row in case if "inside" in row and "failure" not in row), None)
            if inside is not None and low <= case[0]["unknowns"] <= high and "failure" not in case[0]:
                for kind, ratios in found.items():
                    if kind in case[0]:
                        ratios.append(inside / case[0][kind])
        if all(found.values()):
            means = [f"{times(statistics.geometric_mean(x))} ({len(x)})" for x in found.values()]
            lines.append(f"| {low:,} to {high:,} | {' | '.join(means)} |")
    if not lines:
        return []
    head = ["One solve inside, geometric means over so many families:", "", "| unknowns | new values | batch |"]
    return [*head, "|---|---|---|", *lines, ""]


def shifted_mean(times: list[float]) -> float:
    """Geometric mean of times + `SHIFT`, less `SHIFT`, s."""
    return math.exp(sum(math.log(t + SHIFT) for t in times) / len(times)) - SHIFT


def _growth(rows: list[dict[str, Any]]) -> list[str]:
    """How our time and memory grow with the number of unknowns: least squares over the sizes from 1,000 on."""
    lines = [
        "| family | from | to | our cold time grows as | peak memory at the largest size |",
        "|---|---|---|---|---|",
    ]
    for family in sorted({row["family"] for row in rows}):
        mine = [r for r in rows if r["family"] == family and r["competitor"] == OURS and "failure" not in r]
        mine = sorted((r for r in mine if r["nodes"] >= 900), key=lambda row: row["nodes"])
        if len(mine) >= 2:
            x, y = ([math.log(row[key]) for row in mine] for key in ("nodes", "cold"))
            power = _slope(x, y)
            small, large = mine[0]["nodes"], mine[-1]["nodes"]
            lines.append(f"| {family} | {small:,} | {large:,} | n^{power:.2f} | {mine[-1]['memory']:.0f} MB |")
    return [*lines, ""] if len(lines) > 2 else []


def _slope(x: list[float], y: list[float]) -> float:
    mx, my = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mx) * (b - my) for a, b in zip(x, y)) / sum((a - mx) ** 2 for a in x)


def _failures(rows: list[dict[str, Any]]) -> list[str]:
    """Every failure, by its text."""
    lines = ["Failures (listed, never turned into a ratio):", ""]
    failed = [row for row in rows if "failure" in row]
    lines += [f"- {row['family']} {row['unknowns']:,}, {row['competitor']}: {row['failure']}" for row in failed]
    return lines if failed else ["No failures."]
