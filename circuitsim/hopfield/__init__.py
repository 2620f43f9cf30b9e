"""Deep Hopfield networks that learn classes, with the published settings; their equivalence to resistive networks."""

from circuitsim.hopfield.network import DeepHopfieldNetwork, HopfieldLearning, network
from circuitsim.training.presets import Preset as HopfieldPreset

__all__ = ["DeepHopfieldNetwork", "HopfieldLearning", "HopfieldPreset", "network", "published_models"]


def published_models() -> dict[str, HopfieldPreset]:
    """The published models by name."""
    return HopfieldPreset.models("dhn")
