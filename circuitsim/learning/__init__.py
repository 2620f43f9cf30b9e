"""Learning from the difference of two steady states: losses, nudges, gradient estimators, the learner.

All of these are small frozen values for any `EnergyBlock`.
"""

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
