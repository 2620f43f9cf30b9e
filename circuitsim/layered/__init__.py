"""Deep resistive networks: layers of resistors and diodes that learn, at the speed of memory (Scellier 2024)."""

from typing import Any

from circuitsim.layered.architecture import Architecture, ResistivePreset, published_models

_HOMES = {
    "DRNClassifier": "circuitsim.layered.estimator",
    "DeepResistiveNetwork": "circuitsim.layered.network",
    "LayeredLearner": "circuitsim.layered.learner",
    "resistive_chain": "circuitsim.layered.learner",
}

__all__ = [
    "Architecture",
    "DRNClassifier",
    "DeepResistiveNetwork",
    "LayeredLearner",
    "ResistivePreset",
    "published_models",
    "resistive_chain",
]


def __getattr__(name: str) -> Any:
    # Kernels import numba, the classifier scikit-learn: each is imported at first use.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
