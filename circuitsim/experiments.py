"""Runs that ``circuitsim train`` would make, from Python."""

from circuitsim.cli.train import experiment
from circuitsim.training.experiment import Experiment

__all__ = ["Experiment", "experiment"]
