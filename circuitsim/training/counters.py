"""The position of a training loop, and its validated reading from a checkpoint."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from circuitsim.training.checkpoint import CheckpointError
from circuitsim.training.history import Row


@dataclass
class Counters:
    """The position of the loop, stored in the checkpoint.

    Attributes
    ----------
    epoch, batch : int
        The epoch, and the batches of it that are done.
    updates, skipped : int
        Steps taken, and steps skipped.
    seconds : float
        Time since the beginning.
    sums : dict of str to float
        Metrics added up since the last row.
    summed : int
        How many.
    stepping : float
        Seconds that steps took since the last row.
    """

    epoch: int = 0
    batch: int = 0
    updates: int = 0
    skipped: int = 0
    seconds: float = 0.0
    sums: dict[str, float] = field(default_factory=dict)
    summed: int = 0
    stepping: float = 0.0

    @classmethod
    def read(cls, found: Any) -> Counters:
        """Counters from the facts of a checkpoint.

        Raises
        ------
        CheckpointError
            They are none.
        """
        if not isinstance(found, dict) or set(found) != {item.name for item in fields(cls)}:
            raise CheckpointError("the checkpoint's counters are not those of a training run")
        for name, usual in asdict(cls()).items():
            value = found[name]
            good = isinstance(value, dict) if name == "sums" else _is_number(value) and value >= 0
            numbers = value.values() if name == "sums" and good else ()
            if not good or not all(map(_is_number, numbers)) or (isinstance(usual, int) and isinstance(value, float)):
                raise CheckpointError(f"the checkpoint's counter {name!r} is damaged: {value!r}")
        if found["sums"] and not found["summed"]:
            raise CheckpointError("the checkpoint's counter 'summed' is damaged: there are sums of nothing")
        return cls(**found)


def read_rows(found: Any) -> list[Row]:
    """Rows of a history from the facts of a checkpoint; all have the same columns.

    Raises
    ------
    CheckpointError
        They are none.
    """
    good = isinstance(found, list) and all(
        isinstance(row, dict)
        and list(row) == list(found[0])
        and all(isinstance(value, (bool, int, float)) for value in row.values())
        for row in found
    )
    if not good:
        raise CheckpointError("the checkpoint's history is damaged: it must be rows of numbers with the same columns")
    rows: list[Row] = found
    return rows


def read_generator(found: Any, rng: np.random.Generator) -> None:
    """Set a generator to the state in the facts of a checkpoint.

    Raises
    ------
    CheckpointError
        It is no state of such a generator.
    """
    try:
        rng.bit_generator.state = found
    except (KeyError, TypeError, ValueError, OverflowError) as problem:
        raise CheckpointError(f"the checkpoint's state of the random generator is damaged ({problem!r})") from problem


def _is_number(value: object) -> bool:
    """Whether a value is a finite number that a double can hold."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) < 2**63 if isinstance(value, int) else math.isfinite(value)
