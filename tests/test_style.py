"""Style: ruff and mypy find nothing, files are formatted."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "command", [("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy", "circuitsim")], ids=" ".join
)
def test_clean(command: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_files_have_at_most_800_lines() -> None:
    """A file is one idea; what takes longer to read than a textbook section is two."""
    long = {
        str(path.relative_to(ROOT)): lines
        for path in sorted((ROOT / "circuitsim").rglob("*.py"))
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 800
    }
    assert not long
