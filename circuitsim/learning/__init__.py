"""Learning by gradients: chains of digital stages and energy-based blocks, losses, nudges, learning rules.

Losses, nudges and rules are small frozen values for any `EnergyBlock`.
"""

from circuitsim._moved import at_first_use
from circuitsim.learning.chain import Chain, Learner
from circuitsim.learning.estimate import (
    NUDGES,
    ConstantCurrent,
    CrossEntropy,
    Estimate,
    FollowingCurrent,
    GradientProblem,
    Loss,
    Nudging,
    ResistorNudge,
    Rule,
    SquaredError,
)
from circuitsim.learning.rules import (
    AgnosticPropagation,
    CoupledLearning,
    EquilibriumPropagation,
    FrequencyPropagation,
    ImplicitDifferentiation,
    TruncatedBackpropagation,
)

__all__ = [
    "NUDGES",
    "AgnosticPropagation",
    "Chain",
    "CircuitClassifier",
    "CircuitRegressor",
    "ConstantCurrent",
    "CoupledLearning",
    "CrossEntropy",
    "EquilibriumPropagation",
    "Estimate",
    "FollowingCurrent",
    "FrequencyPropagation",
    "GradientProblem",
    "ImplicitDifferentiation",
    "Learner",
    "Loss",
    "Nudging",
    "ResistorNudge",
    "Rule",
    "SquaredError",
    "TruncatedBackpropagation",
]

# scikit-learn is an optional extra.
__getattr__ = at_first_use(
    __name__, CircuitClassifier="circuitsim.learning.scikit", CircuitRegressor="circuitsim.learning.scikit"
)
