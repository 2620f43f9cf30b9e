"""Deep Hopfield networks that learn classes, the published ones among them; their kinship with resistive networks."""

from circuitsim.hopfield.network import DeepHopfieldNetwork, HopfieldLearning, network
from circuitsim.hopfield.preset import HopfieldPreset, published_models

__all__ = ["DeepHopfieldNetwork", "HopfieldLearning", "HopfieldPreset", "network", "published_models"]
