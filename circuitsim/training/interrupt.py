"""Ctrl-C between two updates, not in the middle of one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupt_flag() -> Iterator[Callable[[], bool]]:
    """Within this context the first Ctrl-C only raises a flag, which the yielded function reads.

    The trainer looks at the flag after each update, saves and returns. A second Ctrl-C interrupts at once; what the
    last checkpoint holds is then still whole. Outside the main thread signals cannot be caught and the flag stays down.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    raised = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal raised
        if raised:
            raise KeyboardInterrupt
        raised = True

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield lambda: raised
    finally:
        signal.signal(signal.SIGINT, before)
