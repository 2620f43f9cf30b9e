"""Operating points, DC sweeps, batches and I–V curves."""

from circuitsim.analysis.convex import Prepared
from circuitsim.analysis.operating_point import OperatingPoint, Status
from circuitsim.analysis.solve import prepared, solve
from circuitsim.analysis.sweep import Sweep, sweep

__all__ = ["OperatingPoint", "Prepared", "Status", "Sweep", "prepared", "solve", "sweep"]
