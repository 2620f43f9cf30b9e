"""Deep Hopfield networks that learn classes, the published ones among them; their kinship with resistive networks."""

from circuitsim.hopfield.network import DeepHopfieldNetwork, HopfieldLearning, network
from circuitsim.hopfield.recipe import HopfieldRecipe, recipes

Learning, Recipe = HopfieldLearning, HopfieldRecipe
"""The former names."""

__all__ = ["DeepHopfieldNetwork", "HopfieldLearning", "HopfieldRecipe", "Learning", "Recipe", "network", "recipes"]
