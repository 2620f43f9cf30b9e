"""The verdict on the uniqueness of an operating point."""

from __future__ import annotations

import enum


class Uniqueness(enum.Enum):
    """Whether an operating point is the only one."""

    UNIQUE = "unique"
    """Proven."""
    SEVERAL = "several"
    """Proven by a second operating point."""
    UNKNOWN = "unknown"
    """No other was found, without proof that none exists."""
