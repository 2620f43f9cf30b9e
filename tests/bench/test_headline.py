"""benchmarks/headline.py: one fast row measured for real, and how rows are judged."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
headline: Any = pytest.importorskip("headline")


def test_a_row_is_measured_with_both_versions(tmp_path: Path) -> None:
    words = [sys.executable, str(BENCHMARKS / "headline.py"), sys.executable, sys.executable, "--rows", "import"]
    words += ["--quick", "--rounds", "1", "--cache", str(tmp_path / "cache"), "--out", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    (row,) = json.loads((tmp_path / "headline.json").read_text())
    assert row["row"] == "import" and row["bar"] == 0.1 and row["load_before"]
    assert row["old"] > 0.0 and row["new"] > 0.0 and row["pass"] is (row["new"] <= 0.1 or row["ratio"] <= 1.3)
    assert (tmp_path / "headline.md").read_text() == done.stdout
    assert "Load before" in done.stdout and "Load after" in done.stdout


def case(rival: str = "") -> Any:
    return headline.Case("group", "task", {}, (headline.Row("row", 2.0),), rival)


def found(old: float, new: float, rival: float | None = None) -> dict[str, Any]:
    answers = {"old": [{"seconds": old}], "new": [{"seconds": new}]}
    return answers | {"rival": [] if rival is None else [{"seconds": rival, "which": "best"}]}


@pytest.mark.parametrize(
    ("old", "new", "rival", "passes"),
    [
        (1.0, 1.9, None, True),  # slower, but within the bar
        (2.0, 2.5, None, True),  # beyond the bar, but at most 1.3 times as long
        (2.0, 2.7, None, False),
        (1.0, 2.0, 4.1, True),  # twice as long, but still twice as fast as the rival
        (1.0, 2.0, 3.9, False),
        (4.0, 4.1, 1.0, True),
    ],
)
def test_a_row_passes_by_its_bar_or_beside_the_old_version(
    old: float, new: float, rival: float | None, passes: bool
) -> None:
    given = case("" if rival is None else "rival")
    result = headline.judged(given, given.rows[0], found(old, new, rival))
    assert result["pass"] is passes and result["ratio"] == pytest.approx(new / old)
