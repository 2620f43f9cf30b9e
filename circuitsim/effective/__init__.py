"""Linear circuits as matrices: `effective_matrix`, and crossbars with wire resistance (`CrossbarLayer`)."""

from circuitsim.effective.matrix import CrossbarLayer, EffectiveMatrix, effective_matrix

__all__ = ["CrossbarLayer", "EffectiveMatrix", "effective_matrix"]
