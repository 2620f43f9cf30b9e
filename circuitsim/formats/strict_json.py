"""JSON as the standard has it: finite numbers in full double precision, ASCII, keys in the order they were made."""

from __future__ import annotations

from typing import Any


def dumps(value: Any) -> str:
    """``value`` as indented JSON that ends with a newline.

    Raises
    ------
    ValueError
        A number that is not finite: JSON has no NaN and no Infinity.
    """
    import json

    return json.dumps(value, indent=1, allow_nan=False, ensure_ascii=True) + "\n"
