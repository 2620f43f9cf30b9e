"""Energy-based blocks: circuits and networks in states of least energy, with one interface."""

from circuitsim.blocks.protocol import EnergyBlock, Nudge, State

__all__ = ["EnergyBlock", "Nudge", "State"]
