"""Deep Hopfield networks that learn classes, the published ones among them; their kinship with resistive networks."""

from circuitsim.hopfield.network import DeepHopfieldNetwork, Learning, network
from circuitsim.hopfield.recipe import Recipe, recipes

__all__ = ["DeepHopfieldNetwork", "Learning", "Recipe", "network", "recipes"]
