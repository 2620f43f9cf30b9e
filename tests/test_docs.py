"""Every Python example in README.md and docs/*.md runs and prints what the page says."""

import doctest
import re
from pathlib import Path

import pytest
from test_ratchets import MODULES, imports

from circuitsim.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if page.exists()]
WITH_EXAMPLES = [page for page in PAGES if ">>>" in page.read_text(encoding="utf-8")]
NEEDED = {"frameworks.md": ("torch", "jax")}
"""Packages of a page's examples that are no dependencies: the page is skipped where one is absent."""


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples see the bundled decks as ``netlists/…`` and write, if they write, into a folder of their own."""
    for package in NEEDED.get(page.name, ()):
        pytest.importorskip(package, reason=f"{package} is not installed")
    (tmp_path / "netlists").symlink_to(ROOT / "netlists", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    # A fence that closes a block is no output.
    text = re.sub(r"^ *```.*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    complaints: list[str] = []
    failed, attempted = doctest.DocTestRunner(optionflags=flags).run(examples, out=complaints.append)
    assert attempted > 0
    assert failed == 0, "".join(complaints)


def test_the_gallery_has_examples() -> None:
    assert "netlists.md" in {page.name for page in WITH_EXAMPLES}


def test_the_coverage_in_readme_is_that_of_its_table() -> None:
    page, readme = ((ROOT / name).read_text(encoding="utf-8") for name in ("docs/dialects.md", "README.md"))
    table = page[page.index("### Coverage of public decks") :].split("\n\n### ")[0]
    outcomes = re.findall(r"^\|[^|]+\| (\d+)(?: \((\d+) %\))? \|", table, flags=re.MULTILINE)
    same, share = outcomes[0]
    total = sum(int(count) for count, _ in outcomes)
    assert round(100.0 * int(same) / total) == int(share)
    assert f"of {total} public decks without transistors {same} ({share} %) have ngspice's answer" in readme


def test_the_table_from_paper_to_code_is_true(capsys: pytest.CaptureFixture[str]) -> None:
    """Each function is in the file named before it, each test exists, each command has the options named."""
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    table = page[page.index("## From paper to code") : page.index("In all three papers")]
    rows = [row for row in re.findall(r"^\|.*\|$", table, re.MULTILINE) if not row.startswith(("| paper", "|---"))]
    for row in rows:
        _, code, test, command = (cell.strip() for cell in row.strip("|").split("|"))
        text = ""
        for word in re.findall(r"`([^`]+)`", code):
            if "/" in word:
                text = (ROOT / "circuitsim" / word).read_text(encoding="utf-8")
            elif word.isidentifier():
                assert re.search(rf"^ *(def |class |){word}\b", text, re.MULTILINE), (row, word)
        assert (ROOT / "tests" / test.strip("`")).is_file(), row
        if command.startswith("`"):
            words = command.strip("`").split()
            with pytest.raises(SystemExit):
                main([*words[: 1 + (words[0] != "solve")], "--help-all" if words[0] == "train" else "--help"])
            help = capsys.readouterr().out
            assert all(word in help for word in words if word.startswith("--")), row
    assert len(rows) > 20


PARAPHRASES = (
    "as shares of",
    "from rest",
    "goes on",
    "hang on",
    "in spite of",
    "in the way",
    "left over",
    "potentials",
    "press on",
    "share of its",
    "stands for",
    "stretch",
)
"""Phrases that have a word in the field: residual, relative residual, node voltages, interval, pendant node, …"""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_use_the_words_of_the_field(page: Path) -> None:
    text = " ".join(page.read_text(encoding="utf-8").lower().split())
    assert [phrase for phrase in PARAPHRASES if phrase in text] == []


def test_messages_and_docstrings_use_the_words_of_the_field() -> None:
    banned = (
        "germs",
        "hang on",
        "in spite of",
        "lets it back",
        "level piece",
        "node potentials",
        "stands in for",
        "takes up",
    )
    texts = {path: " ".join(path.read_text(encoding="utf-8").lower().split()) for path in MODULES.values()}
    assert [(path.name, phrase) for path, text in texts.items() for phrase in banned if phrase in text] == []


def test_the_documentation_is_short() -> None:
    """18 pages and the README: at most 27,000 words; the README at most 900."""
    words = {page.name: len(page.read_text(encoding="utf-8").split()) for page in PAGES}
    assert len(PAGES) <= 19 and sum(words.values()) <= 27_000 and words["README.md"] <= 900


def test_the_table_of_packages_is_complete_and_in_the_order_of_imports() -> None:
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    table = page.split("| package | contents |\n|---|---|\n")[1].split("\n\n")[0].splitlines()
    rows = {name: k for k, row in enumerate(table) for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert rows.keys() == {path.parent.name for path in (ROOT / "circuitsim").glob("*/__init__.py")}
    assert len(table) <= 16
    for module, path in MODULES.items():
        own = rows.get((module + ".").split(".")[1])
        for target in imports(path) if own is not None else ():
            package = (target + ".").split(".")[1]
            assert package in ("formats", "plotting") or rows.get(package, 0) <= own, f"{module} imports {target}"
