"""Kernels where no cache can be written (a read-only installation, no home), and the one decorator that allows it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DECORATORS = {"njit", "jit", "vectorize", "guvectorize", "cfunc", "generated_jit"}


def test_train_rbm_where_no_cache_can_be_written(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    # numba tries its locators in turn; the only one left has a cache directory that cannot be made.
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "file" / "cache"),
        "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator",
    }
    words = "train rbm --dataset diag --units 4 --hidden 2 --epochs 1"
    ended = subprocess.run(
        [sys.executable, "-m", "circuitsim", *words.split()],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("rbm: 4 visible and 2 hidden units")
    assert ended.stderr.count("in each process anew") == 1


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
