"""All measurements of a suite, one process each, appended to ``results.jsonl`` as they finish: a run can be resumed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from circuitsim._files import naming
from circuitsim.bench.competitors import OURS, missing
from circuitsim.bench.families import FAMILIES
from circuitsim.errors import UsageError

RESULTS = "results.jsonl"

_WITH_DIODES = ("grid", "grid-scaled", "erdos-renyi", "scale-free", "ladder", "bridges", "selectors", "drn")

_SMALL: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(_WITH_DIODES, (10, 100, 1000)),
    **dict.fromkeys(("crossbar", "crossbar-1d1r"), (128, 2048)),
    **dict.fromkeys(("shockley-grid", "op-amp-stages"), (100, 1000)),
}

SUITES: dict[str, dict[str, tuple[int, ...]]] = {
    "small": _SMALL,
    "full": {
        "grid": (10, 100, 1000, 10_000, 100_000, 1_000_000),
        "grid-scaled": (10, 100, 1000, 10_000, 100_000),
        "erdos-renyi": (10, 100, 1000, 5000),
        "scale-free": (10, 100, 1000, 10_000),
        "ladder": (10, 100, 1000, 10_000, 100_000),
        "bridges": (10, 100, 1000, 10_000),
        "selectors": (10, 100, 1000, 10_000),
        "drn": (10, 100, 1000, 5000),
        "crossbar": (128, 2048, 32_768),
        "crossbar-1d1r": (128, 2048, 32_768),
        "shockley-grid": (170, 1700, 17_000),
        "op-amp-stages": (300, 3000),
    },
}
"""Suite → family → numbers of unknowns."""


class Case(NamedTuple):
    """One measurement to make."""

    family: str
    unknowns: int
    seed: int
    competitor: str


WARM_UP = tuple(
    Case(family, unknowns, 0, OURS)
    for family, unknowns in (("drn", 10), ("grid", 400), ("grid", 2000), ("crossbar", 2048), ("erdos-renyi", 5000))
)
"""Measurements without a limit that compile kernels, so that no other measurement has to: batches and ports, loops of
diodes, factors of large circuits, conjugate gradients along a tree and without."""


def cases(suite: str, competitors: list[str], seed: int) -> Iterator[Case]:
    """The measurements of a suite, smallest circuits first; ours before the others'.

    Raises
    ------
    UsageError
        No such suite.
    """
    if suite not in SUITES:
        raise UsageError(f"no suite is called {suite!r}; there are {', '.join(SUITES)}")
    sizes = sorted({(size, family) for family, all_sizes in SUITES[suite].items() for size in all_sizes})
    for size, family in sizes:
        for competitor in competitors:
            if competitor in (OURS, "ngspice") or FAMILIES[family].convex_program:
                yield Case(family, size, seed, competitor)


def finished(folder: Path) -> list[dict[str, Any]]:
    """The rows of an earlier run; a line cut off in mid-write, or that is no row, is left out and measured again."""
    path = folder / RESULTS
    rows = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if _is_row(row):
            rows.append(row)
    return rows


def _is_row(row: Any) -> bool:
    """Whether a line of an earlier run names a measurement and its outcome."""
    kinds = {"family": str, "unknowns": int, "seed": int, "competitor": str}
    named = isinstance(row, dict) and all(isinstance(row.get(name), kind) for name, kind in kinds.items())
    return named and ("failure" in row or {"nodes", "cold"} <= set(row))


def run(
    wanted: list[Case], folder: Path, limit: float, budget: float, tell: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Make all measurements that ``folder`` does not hold yet; returns the rows of all of them.

    Parameters
    ----------
    wanted : list of Case
    folder : Path
        Where ``results.jsonl`` lies or will lie.
    limit : float
        Seconds after which a measurement is killed and counts as failed.
    budget : float
        Seconds for the repeats of each kind of time.
    tell : callable
        Called with a line about each measurement.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = {Case(r["family"], r["unknowns"], r["seed"], r["competitor"]): r for r in finished(folder)}
    largest = max((case.unknowns for case in wanted if case not in rows and case.competitor == OURS), default=0)
    if largest:
        tell("compiling kernels, where that has not been done: minutes, once for each installation")
        for case in WARM_UP:
            if case.unknowns <= largest:
                _measured(case, None, 0.0)
    beaten: set[tuple[str, str]] = set()
    for number, case in enumerate(wanted, 1):
        if case not in rows:
            if (case.family, case.competitor) in beaten and case.competitor != OURS:
                row = case._asdict() | {"failure": "not tried: out of time at a smaller size"}
            else:
                row = _measured(case, limit, budget)
            with naming(folder / RESULTS), (folder / RESULTS).open("a", encoding="utf-8") as file:
                # A leading newline heals a line that an earlier kill cut short.
                file.write("\n" + json.dumps(row, allow_nan=False) + "\n")
                file.flush()
                os.fsync(file.fileno())
            rows[case] = row
        if "time" in str(rows[case].get("failure", "")):
            beaten.add((case.family, case.competitor))
        tell(f"[{number}/{len(wanted)}] {describe(rows[case])}")
    return [rows[case] for case in wanted]


def _measured(case: Case, limit: float | None, budget: float) -> dict[str, Any]:
    absent = missing(case.competitor)
    if absent:
        return case._asdict() | {"failure": absent}
    words = [case.family, str(case.unknowns), str(case.seed), case.competitor, str(budget)]
    command = [sys.executable, "-m", "circuitsim.bench.measure", *words]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, check=False, env=os.environ | threads
        )
        return json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return case._asdict() | {"failure": f"out of time ({limit:g} s)"}
    except (IndexError, json.JSONDecodeError):
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return case._asdict() | {"failure": f"process ended with {done.returncode}: {last[:200]}"}


def describe(row: dict[str, Any]) -> str:
    """One line about a measurement."""
    what = f"{row['family']} {row['unknowns']}, {row['competitor']}: "
    if "failure" in row:
        return what + f"failed, {row['failure']}"
    cold, prepared = (f"{row[kind] * 1e3:.3g} ms" for kind in ("cold", "prepared"))
    return what + f"cold {cold}, new values {prepared}, error {row['error']:.0e}"
