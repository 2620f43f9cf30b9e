"""``circuitsim reproduce gdu``."""

from circuitsim.cli.studies.gradients import add_arguments
from circuitsim.cli.studies.gradients import run_gdu as run

__all__ = ["add_arguments", "run"]
