"""Kernels are compiled through the one decorator that does without a cache where none can be written."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
DECORATORS = {"njit", "jit", "vectorize", "guvectorize", "cfunc", "generated_jit"}


def test_numba_compiles_through_one_decorator_only():
    found = []
    for path in sorted((ROOT / "circuitsim").rglob("*.py")):
        if path.name == "_jit.py":
            continue
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "numba" in text else ():
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "numba":
                found += [f"{path}: {alias.name}" for alias in node.names if alias.name in DECORATORS]
            if isinstance(node, ast.Attribute) and node.attr in DECORATORS and ast.unparse(node.value) == "numba":
                found.append(f"{path}: {node.attr}")
    assert found == []
