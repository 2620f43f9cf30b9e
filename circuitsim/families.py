"""Families of circuits of any size (meshes, random graphs, ladders, arrays of diodes …) for measurements and tests."""

from circuitsim.bench.families import FAMILIES, Family, make

__all__ = ["FAMILIES", "Family", "make"]
