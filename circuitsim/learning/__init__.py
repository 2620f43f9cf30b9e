"""Learning from the difference of two steady states: losses, nudges, gradient estimators, the learner.

All of these are small frozen values for any `EnergyBlock`.
"""

from typing import Any

from circuitsim.learning.agnostic import AgnosticPropagation
from circuitsim.learning.coupled import CoupledLearning
from circuitsim.learning.equilibrium import EquilibriumPropagation
from circuitsim.learning.estimate import Estimate, Estimator, GradientProblem
from circuitsim.learning.frequency import FrequencyPropagation
from circuitsim.learning.implicit import ImplicitDifferentiation
from circuitsim.learning.learner import Learner
from circuitsim.learning.losses import CrossEntropy, Loss, SquaredError
from circuitsim.learning.nudges import NUDGES, ConstantCurrent, FollowingCurrent, Nudging, ResistorNudge

__all__ = [
    "NUDGES",
    "AgnosticPropagation",
    "CircuitClassifier",
    "CircuitRegressor",
    "ConstantCurrent",
    "CoupledLearning",
    "CrossEntropy",
    "EquilibriumPropagation",
    "Estimate",
    "Estimator",
    "FollowingCurrent",
    "FrequencyPropagation",
    "GradientProblem",
    "ImplicitDifferentiation",
    "Learner",
    "Loss",
    "Nudging",
    "ResistorNudge",
    "SquaredError",
]


def __getattr__(name: str) -> Any:
    # scikit-learn is an optional extra: its estimators are imported at first use.
    if name not in ("CircuitClassifier", "CircuitRegressor"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from circuitsim.learning import scikit

    return getattr(scikit, name)
