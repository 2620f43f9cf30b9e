"""How the learning rate changes over the epochs: a factor on the optimiser's rates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from circuitsim.errors import UsageError


class Schedule(Protocol):
    """A factor for each epoch, counted from 0."""

    def factor(self, epoch: int) -> float:
        """Multiplier of every learning rate during this epoch."""
        ...


@dataclass(frozen=True)
class Constant:
    """The same rate throughout."""

    def factor(self, epoch: int) -> float:
        """Always 1."""
        return 1.0


@dataclass(frozen=True)
class Exponential:
    """The rate is multiplied by ``decay`` after every epoch (Scellier 2024 uses 0.99)."""

    decay: float

    def __post_init__(self) -> None:
        if not 0 < self.decay <= 1:
            raise UsageError(f"the rate's decay per epoch must lie in (0, 1], not {self.decay}")

    def factor(self, epoch: int) -> float:
        """``decay ** epoch``."""
        return self.decay**epoch


@dataclass(frozen=True)
class Cosine:
    """Half a cosine from 1 at epoch 0 down to ``final`` at epoch ``epochs`` (Nest & Ernoult 2024), then ``final``."""

    epochs: int
    final: float = 0.0

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise UsageError(f"a cosine schedule needs at least one epoch, not {self.epochs}")
        if not 0 <= self.final <= 1:
            raise UsageError(f"the final rate of a cosine schedule is a fraction in [0, 1], not {self.final}")

    def factor(self, epoch: int) -> float:
        """``final + (1 - final) (1 + cos(pi epoch / epochs)) / 2``."""
        turn = math.pi * min(epoch, self.epochs) / self.epochs
        return self.final + (1.0 - self.final) * 0.5 * (1.0 + math.cos(turn))
