"""Deep resistive networks: layers of resistors and diodes that learn, at the speed of memory (Scellier 2024)."""

from circuitsim._moved import at_first_use
from circuitsim.layered.network import Architecture, ResistivePreset, published_models

__all__ = [
    "Architecture",
    "DRNClassifier",
    "DeepResistiveNetwork",
    "LayeredLearner",
    "ResistivePreset",
    "published_models",
    "resistive_chain",
]

# Kernels import numba, the classifier scikit-learn.
__getattr__ = at_first_use(
    __name__,
    DRNClassifier="circuitsim.layered.estimator",
    DeepResistiveNetwork="circuitsim.layered.network",
    LayeredLearner="circuitsim.layered.learner",
    resistive_chain="circuitsim.layered.learner",
)
