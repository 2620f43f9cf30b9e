"""Circuit → convex quadratic program, the map back, and the conditions under which a steady state exists."""

from circuitsim.program.existence import check_bounded, feasible_program
from circuitsim.program.structure import QuadraticProgram, Structure, analyse, quadratic_program

__all__ = ["QuadraticProgram", "Structure", "analyse", "check_bounded", "feasible_program", "quadratic_program"]
