"""Medians over several runs of `circuitsim bench`, where the machine's speed changes from one to the next.

``python benchmarks/merge_runs.py OUT RUN RUN…``: directories of runs of one suite; OUT gets every row that any of
them has, with the median of each of its times over the runs that measured it. The same command as before with
``--out OUT`` then finds nothing left to measure and writes the report. A row copied from run to run, because it was not
measured again, counts as often as it was copied: its median is itself.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

TIMES = ("cold", "build", "solve", "prepared", "warm", "batch", "inside")


def rows(run: Path) -> list[dict[str, Any]]:
    """What a run has measured; half a line, left by a kill, is none."""
    lines = (run / "results.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]


def merged(runs: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """One row for each circuit and competitor: the last one measured, with medians for its times."""
    same: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in (row for run in runs for row in run):
        same.setdefault(tuple(row[key] for key in ("family", "unknowns", "seed", "competitor")), []).append(row)
    found = []
    for group in same.values():
        timed = [row for row in group if "prepared" in row]
        medians = {
            name: statistics.median(row[name] for row in timed if name in row)
            for name in TIMES
            if any(name in row for row in timed)
        }
        found.append((timed or group)[-1] | medians)
    return found


if __name__ == "__main__":
    out, *directories = map(Path, sys.argv[1:])
    lines = [json.dumps(row) for row in merged([rows(run) for run in directories])]
    out.mkdir(parents=True, exist_ok=True)
    (out / "results.jsonl").write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} rows of {len(directories)} runs in {out}")
