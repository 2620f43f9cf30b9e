"""``circuitsim reproduce cosine``."""

from circuitsim.cli.studies.gradients import add_arguments
from circuitsim.cli.studies.gradients import run_cosine as run

__all__ = ["add_arguments", "run"]
