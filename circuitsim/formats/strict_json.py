"""Standard JSON: finite numbers in full double precision, ASCII, keys in insertion order."""

from __future__ import annotations

from typing import Any

from circuitsim.errors import TopologyError


def dumps(value: Any) -> str:
    """``value`` as indented JSON that ends with a newline.

    Raises
    ------
    TopologyError
        A non-finite number (a `ValueError`): JSON has no NaN and no Infinity.
    """
    import json

    try:
        return json.dumps(value, indent=1, allow_nan=False, ensure_ascii=True) + "\n"
    except ValueError as problem:
        raise TopologyError(
            "a power or an energy is larger than a double can hold (1.8e308): choose smaller values of the sources"
        ) from problem
