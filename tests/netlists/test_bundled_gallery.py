"""docs/netlists.md shows every deck, and nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_gallery_is_complete() -> None:
    page = (ROOT / "docs" / "netlists.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| \[`([\w/-]+)`\]\(\.\./netlists/([\w/-]+)\.cir\) \|", page, re.MULTILINE)
    assert all(text == link for text, link in shown)
    netlists = ROOT / "netlists"
    decks = {str(path.relative_to(netlists).with_suffix("").as_posix()) for path in netlists.rglob("*.cir")}
    assert {text for text, _ in shown} == decks
    assert len(shown) == len(decks)
