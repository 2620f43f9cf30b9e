"""Energy-based blocks: circuits and networks that settle where an energy is least, behind one protocol."""

from circuitsim.blocks.protocol import EnergyBlock, Nudge, State

__all__ = ["EnergyBlock", "Nudge", "State"]
