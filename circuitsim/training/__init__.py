"""Training: one loop for every model with named parameters and their gradient.

This package is independent of the models. A model that satisfies `Trainable` (equilibrium blocks with a gradient
estimator, chains of them, Boltzmann machines) gets optimisers, schedules, history, checkpoints, interruption and exact
resumption.
"""

from circuitsim.training.checkpoint import (
    CheckpointError,
    FusedTrainable,
    RunDirectory,
    Trainable,
    load_checkpoint,
    save_checkpoint,
    software_versions,
)
from circuitsim.training.history import Callback, EarlyStopping, History, ProgressLine, TensorBoard
from circuitsim.training.optimizers import (
    SGD,
    Adam,
    Constant,
    Cosine,
    Exponential,
    Optimizer,
    Schedule,
)
from circuitsim.training.trainer import Outcome, Trainer, TrainingPlan

__all__ = [
    "SGD",
    "Adam",
    "Callback",
    "CheckpointError",
    "Constant",
    "Cosine",
    "EarlyStopping",
    "Exponential",
    "FusedTrainable",
    "History",
    "Optimizer",
    "Outcome",
    "ProgressLine",
    "RunDirectory",
    "Schedule",
    "TensorBoard",
    "Trainable",
    "Trainer",
    "TrainingPlan",
    "load_checkpoint",
    "save_checkpoint",
    "software_versions",
]
