"""Factor grounded weighted graph Laplacians without a single subtraction, so that every weight ratio is safe.

``analyse`` (pattern) → ``factor`` (weights) → ``solve`` (currents). An ideal short is the weight `SHORT`, an open
edge the weight zero, so one analysis serves every set of conducting diodes.
"""

from circuitsim.solvers.laplacian.factor import SHORT, Factor, factor
from circuitsim.solvers.laplacian.solve import solve
from circuitsim.solvers.laplacian.symbolic import Pattern, Symbolic, analyse, panels, predict

__all__ = [
    "SHORT",
    "Factor",
    "Pattern",
    "Symbolic",
    "analyse",
    "factor",
    "panels",
    "predict",
    "solve",
]
