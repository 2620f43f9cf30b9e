"""Values that spread: Monte Carlo samples with statistics, worst cases with proof."""

from circuitsim.tolerance.montecarlo import MonteCarlo, montecarlo
from circuitsim.tolerance.spread import Spread, Tolerance, parse_tolerance

__all__ = ["MonteCarlo", "Spread", "Tolerance", "montecarlo", "parse_tolerance"]
