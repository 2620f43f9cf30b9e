"""Every Python example in README.md and docs/*.md runs and prints what the page says."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if page.exists()]
WITH_EXAMPLES = [page for page in PAGES if ">>>" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples see the bundled decks as ``netlists/…`` and write, if they write, into a folder of their own."""
    (tmp_path / "netlists").symlink_to(ROOT / "netlists", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, attempted = doctest.testfile(str(page), module_relative=False, optionflags=flags, encoding="utf-8")
    assert attempted > 0
    assert failed == 0


def test_the_gallery_has_examples() -> None:
    assert "netlists.md" in {page.name for page in WITH_EXAMPLES}
