"""Factor grounded weighted graph Laplacians without a single subtraction, so that every weight ratio is safe.

``analyse`` (pattern) → ``factor`` (weights) → ``solve`` (currents). An ideal short is the weight `SHORT`, an open
edge the weight zero, so one analysis serves every set of conducting diodes.
"""

from circuitsim.solvers.laplacian.factor import SHORT, Factor, factor
from circuitsim.solvers.laplacian.solve import solve
from circuitsim.solvers.laplacian.symbolic import Symbolic, analyse

__all__ = [
    "SHORT",
    "Factor",
    "Symbolic",
    "analyse",
    "factor",
    "solve",
]
