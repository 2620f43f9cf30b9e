"""Linear circuits as matrices: `effective_matrix`, and crossbars with wire resistance (`CrossbarLayer`)."""

from circuitsim.effective.crossbar import CrossbarLayer
from circuitsim.effective.matrix import EffectiveMatrix, effective_matrix

__all__ = ["CrossbarLayer", "EffectiveMatrix", "effective_matrix"]
