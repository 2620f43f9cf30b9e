"""Whether a data file holds targets over time; `circuitsim.fitting.targets` reads them."""

from __future__ import annotations

from pathlib import Path

HEADER = 100_000
"""Most characters of a header."""


def is_over_time(path: str | Path) -> bool:
    """Whether the header of a CSV file has a column ``time`` or ``measurement``."""
    path = Path(path)
    if path.suffix.lower() != ".csv" or not path.is_file():
        return False
    with open(path, encoding="utf-8-sig", newline="", errors="surrogateescape") as file:
        names = {name.strip().strip('"').lower() for name in file.readline(HEADER).split(",")}
    return bool(names & {"time", "measurement"})
