"""What a deep resistive network is made of, and the published ones from a table."""

from __future__ import annotations

from dataclasses import dataclass

from circuitsim.errors import UsageError
from circuitsim.training.presets import Preset


@dataclass(frozen=True)
class Architecture:
    """Layers and gains.

    Attributes
    ----------
    units : tuple of int
        Inputs (counted once; each becomes two voltage sources, +A x and −A x), hidden layers, outputs.
    input_gain : float
        A, V for an input of one.
    gains : tuple of float
        a^(ℓ) of the bidirectional amplifiers after each layer 1..L (Scellier 2024, App. D); empty for none.
    """

    units: tuple[int, ...]
    input_gain: float = 1.0
    gains: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "units", tuple(int(n) for n in self.units))
        object.__setattr__(self, "gains", tuple(float(a) for a in self.gains) or (1.0,) * self.depth)
        if len(self.units) < 3 or min(self.units) < 1:
            raise UsageError(f"a network has inputs, at least one hidden layer and outputs, not layers {self.units}")
        if min(self.units[1:-1]) < 2:
            raise UsageError(
                "a hidden layer needs at least 2 units: one that may be positive, one that may be negative"
            )

    @property
    def depth(self) -> int:
        """L, the number of layers without the input."""
        return len(self.units) - 1


class ResistivePreset(Preset):
    """A published model (`circuitsim.training.presets`)."""

    @property
    def architecture(self) -> Architecture:
        """For MNIST."""
        return Architecture((784, *self.hidden, 10), self.input_gain)


def published_models() -> dict[str, ResistivePreset]:
    """The published models by name."""
    return ResistivePreset.models("drn")
