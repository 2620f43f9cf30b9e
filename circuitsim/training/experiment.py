"""What a model family hands to the command line: everything a training run consists of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from circuitsim.training.history import History
from circuitsim.training.trainable import FusedTrainable, Trainable
from circuitsim.training.trainer import Evaluate, TrainingPlan


def save_model(model: Any, directory: Path) -> list[Path]:
    """Write a model that has a ``save`` into a directory; returns the file."""
    model.save(directory / "model.npz")
    return [directory / "model.npz"]


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
    save : callable
        ``save(directory)`` writes the trained model and returns the files written.
    draw : callable
        ``draw(directory, history)`` writes its pictures and returns them.
    summary : callable
        ``summary(history)`` gives the lines shown at the end, of one row at least.
    chosen : mapping
        Options that were left open and what they became; recorded, so that a resumed run does not choose again.
    """

    trainable: Trainable | FusedTrainable
    data: Sequence[np.ndarray]
    plan: TrainingPlan
    title: str
    save: Callable[[Path], list[Path]]
    draw: Callable[[Path, History], list[Path]]
    summary: Callable[[History], list[str]]
    evaluate: Evaluate | None = None
    notes: Sequence[str] = ()
    chosen: Mapping[str, Any] = field(default_factory=dict)
