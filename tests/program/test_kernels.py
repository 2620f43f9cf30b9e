"""Kernels run interpreted or compiled: those that are alike to the last bit, the others but for rounding."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

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
