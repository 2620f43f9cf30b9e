"""Kernels run interpreted or compiled: those that are alike to the last bit, the others but for rounding."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from circuitsim import kernels
from circuitsim._graphs import choose_forest
from circuitsim.program import components, flow
from circuitsim.program.components import block_labels, strong_labels


@pytest.mark.parametrize("seed", range(5))
def test_small_graphs_get_the_same_bits_once_kernels_are_compiled(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    n, m = 60, 90
    a, b = rng.integers(0, n, m), rng.integers(0, n, m)
    need, scale = rng.normal(size=n), rng.random(n)

    def everything() -> list[np.ndarray]:
        tree = flow.spanning_forest(n - 1, a, b, np.arange(m))
        carried = flow.forest_flow(n - 1, a[tree], b[tree], need, scale)
        labels = components.component_labels(n, a, b), block_labels(n, a, b), strong_labels(n, a, b)
        return [tree, carried, *labels]

    found = []
    for loaded in (False, True):
        monkeypatch.setattr(kernels, "loaded", lambda loaded=loaded: loaded)
        monkeypatch.setattr(components, "loaded", lambda loaded=loaded: loaded)
        monkeypatch.setattr(kernels, "_patience", 0)
        monkeypatch.setattr(kernels, "_items", Counter())
        assert (kernels.kernel(choose_forest, 1, bitwise_stable=True) is choose_forest) is not loaded
        found.append(everything())
    assert all(np.array_equal(one, two) for one, two in zip(*found))


def test_many_small_calls_are_compiled_once_they_are_long_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "loaded", lambda: False)
    monkeypatch.setattr(kernels, "_patience", kernels.INTERPRETED)  # a warm-up before this test has none
    monkeypatch.setattr(kernels, "_items", Counter())
    monkeypatch.setattr(kernels, "_at_hand", lambda function: False)
    monkeypatch.setattr(kernels, "_often", lambda: kernels.OFTEN)
    chosen = [kernels.kernel(choose_forest, 300, bitwise_stable=True) for _ in range(1001)]
    assert not any(one is not choose_forest for one in chosen[:1000])
    assert chosen[1000] is not choose_forest  # after 300,000 items, as long as a compilation
    monkeypatch.setattr(kernels, "_at_hand", lambda function: True)
    for often, calls in ((kernels.OFTEN, 333), (kernels.SOON, 13)):  # numba is not loaded yet, and is
        monkeypatch.setattr(kernels, "_often", lambda often=often: often)
        monkeypatch.setattr(kernels, "_items", Counter())
        chosen = [kernels.kernel(choose_forest, 300, bitwise_stable=True) for _ in range(calls + 1)]
        assert all(one is choose_forest for one in chosen[:calls]) and chosen[calls] is not choose_forest
        assert kernels.kernel(choose_forest, 300) is choose_forest


FAULTS = """
import resource
import numpy as np
from circuitsim.kernels import keep_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        a, b = np.ones(10**6, np.uint8), np.ones(10**6, np.uint8)
        del a, b
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = faults()
keep_memory()
faults()
print(first, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep or return memory as they like")
def test_memory_of_freed_arrays_is_kept() -> None:
    """Two arrays of a megabyte, twenty times: pages asked for anew each time before, none after."""
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    before, after = (int(word) for word in done.stdout.split())
    if before == 0:
        pytest.skip("this system does not count page faults")
    assert after < 100
