"""`Experiment`: everything that a training run of the command line consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from circuitsim.training.checkpoint import FusedTrainable, Trainable
from circuitsim.training.history import History
from circuitsim.training.trainer import Evaluate, TrainingPlan

CURVES = "learning.png"
"""Picture of the history."""


@dataclass(frozen=True)
class Experiment:
    """A run that is ready to start.

    Attributes
    ----------
    trainable, data, plan, evaluate
        As `Trainer` takes them.
    title : str
        One line on what is trained on what.
    notes : sequence of str
        Notes to print before the start (a fallback taken, a limit met).
    files, pictures : mapping of str to callable
        Name of a file of the trained model, or of a picture of it → what writes it to a path.
    summary : callable, optional
        ``summary(history)`` gives the lines shown at the end, of one row at least; the last row if not given.
    chosen : mapping
        Options that were left open and what they became; recorded, so that a resumed run does not choose again.
    """

    trainable: Trainable | FusedTrainable
    data: Sequence[np.ndarray]
    plan: TrainingPlan
    title: str
    files: Mapping[str, Callable[[Path], object]]
    summary: Callable[[History], list[str]] = History.last
    pictures: Mapping[str, Callable[[Path], object]] = field(default_factory=dict)
    evaluate: Evaluate | None = None
    notes: Sequence[str] = ()
    chosen: Mapping[str, Any] = field(default_factory=dict)

    def save(self, directory: Path) -> list[str]:
        """Write the trained model; the names of the files."""
        for name, write in self.files.items():
            write(directory / name)
        return list(self.files)

    def draw(self, directory: Path, history: History) -> list[str]:
        """Draw the history, where it has a row, and the trained model; the names of the files."""
        if history.rows:
            history.plot(directory / CURVES)
        for name, draw in self.pictures.items():
            draw(directory / name)
        return [*[CURVES] * bool(history.rows), *self.pictures]


@dataclass(frozen=True)
class HeldOut:
    """Measures on samples that are not trained on, for the history.

    Attributes
    ----------
    x, y : ndarray
        Samples and their targets.
    measure : callable
        ``measure(x, y)`` gives the measures by name.
    """

    x: np.ndarray
    y: np.ndarray
    measure: Callable[[np.ndarray, np.ndarray], Mapping[str, float]]

    def __call__(self, rng: np.random.Generator) -> dict[str, float]:
        """The measures, named ``test_…``."""
        return {f"test_{name}": value for name, value in self.measure(self.x, self.y).items()}
