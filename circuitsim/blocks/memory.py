"""Working memory that is kept from call to call, for each thread: fresh pages would cost more than copies into them."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

_memory = threading.local()


def scratch(name: str, size: int, dtype: Any) -> np.ndarray:
    """So many numbers that the next call with this name and type overwrites."""
    key = f"{name} {np.dtype(dtype).name}"
    buffer = getattr(_memory, key, None)
    if buffer is None or len(buffer) < size:
        buffer = np.empty(size, dtype)
        setattr(_memory, key, buffer)
    return buffer[:size]
