"""Ratchets: circles of imports get no larger; a package gets no larger than its row in ``ratchets.json``."""

import ast
import io
import json
import tokenize
import tomllib
from pathlib import Path

import networkx

ROOT = Path(__file__).parents[1]
SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "circuitsim").rglob("*.py"))
}
LIMITS = json.loads((Path(__file__).parent / "ratchets.json").read_text(encoding="utf-8"))


def imports(path: Path) -> set[str]:
    """Modules that a module imports anywhere in its text: in functions and for type checkers too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in MODULES else str(node.module))
    return found & set(MODULES)


def tokens(path: Path) -> int:
    """Names, numbers, strings and operators of a module, without docstrings and comments."""
    text = path.read_text(encoding="utf-8")
    docstrings = {
        node.body[0].lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and ast.get_docstring(node) is not None
    }
    return sum(
        token.type not in SILENT and not (token.type == tokenize.STRING and token.start[0] in docstrings)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
    )


def test_groups_of_modules_that_import_each_other_get_no_larger() -> None:
    graph = networkx.DiGraph((name, target) for name, path in MODULES.items() for target in imports(path) - {name})
    circles = [sorted(group) for group in networkx.strongly_connected_components(graph) if len(group) > 1]
    known = [set(group) for group in LIMITS["circles"]]
    assert [group for group in circles if not any(set(group) <= old for old in known)] == []


def test_packages_get_no_larger() -> None:
    sizes: dict[str, int] = {}
    for path in MODULES.values():
        parts = path.relative_to(ROOT).parts
        package = parts[1] if len(parts) > 2 else "."
        sizes[package] = sizes.get(package, 0) + tokens(path)
    assert {package: size for package, size in sizes.items() if size > LIMITS["tokens"].get(package, 0)} == {}


def test_the_quick_tests_name_every_package_and_files_that_exist() -> None:
    quick = tomllib.loads((ROOT / "tests/quick.toml").read_text(encoding="utf-8"))
    assert set(quick) == {path.parent.name for path in (ROOT / "circuitsim").glob("*/__init__.py")}
    for place in {place for places in quick.values() for place in places}:
        name, _, test = place.partition("::")
        test, case, session = test.partition("[")
        assert not case or (ROOT / f"tests/cli/sessions/{session.strip(':')}.txt").is_file(), place
        assert f"def {test}" in (ROOT / name).read_text(encoding="utf-8"), place
