"""What people ask of a circuit: its operating point, sweeps."""

from circuitsim.analysis.operating_point import OperatingPoint, Status
from circuitsim.analysis.solve import Prepared, prepared, solve

__all__ = ["OperatingPoint", "Prepared", "Status", "prepared", "solve"]
