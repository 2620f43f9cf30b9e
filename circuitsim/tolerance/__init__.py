"""Tolerances: Monte Carlo analysis with statistics, worst cases with proof."""

from circuitsim.tolerance.montecarlo import MonteCarlo, montecarlo
from circuitsim.tolerance.spread import Spread, Tolerance, parse_tolerance
from circuitsim.tolerance.worst_case import WorstCase, worst_case

__all__ = ["MonteCarlo", "Spread", "Tolerance", "WorstCase", "montecarlo", "parse_tolerance", "worst_case"]
