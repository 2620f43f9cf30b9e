"""Deep Hopfield networks that learn classes, with the published settings; their equivalence to resistive networks."""

from circuitsim.hopfield.network import DeepHopfieldNetwork, HopfieldLearning, network
from circuitsim.hopfield.preset import HopfieldPreset, published_models

__all__ = ["DeepHopfieldNetwork", "HopfieldLearning", "HopfieldPreset", "network", "published_models"]
