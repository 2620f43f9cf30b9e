"""Batches of circuits with smooth devices beside controlled sources: sample by sample, with tangents in the adjoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from circuitsim.analysis.controlled_batch import ControlledBatch
from circuitsim.analysis.newton import Smooth, Start, tangents
from circuitsim.analysis.smooth_controlled import SmoothControlled
from circuitsim.circuit import Circuit
from circuitsim.circuit.expansion import Expansion

if TYPE_CHECKING:
    from circuitsim.analysis.batch_solution import BatchSolution


@dataclass(frozen=True, eq=False, repr=False)
class SmoothControlledBatch(ControlledBatch):
    """A circuit of elementary elements, tangents of smooth devices among them; stands in for `BatchSolver`.

    Attributes
    ----------
    outer : Circuit
        With the devices.
    expansion : Expansion
    smooth : Smooth
    """

    outer: Circuit
    expansion: Expansion
    smooth: Smooth

    def with_values(self, values: np.ndarray | Mapping[str, float]) -> SmoothControlledBatch:
        """See `ControlledBatch.with_values`."""
        return replace(self, ready=super().with_values(values).ready)

    def with_devices(self, outer: Circuit, smooth: Smooth) -> SmoothControlledBatch:
        """With other parameters of the devices."""
        return replace(self, outer=outer, smooth=smooth)

    def point(self, column: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """See `ControlledBatch.point`; of the elementary elements."""
        ready = SmoothControlled(self.expansion, self.ready, self.ready.tolerance)
        found = ready.certified(self.outer, self.smooth, column)
        elementary = found.elementary
        assert elementary is not None
        return elementary.voltages, elementary.currents, found.certificate.worst

    def column(self, solution: BatchSolution, s: int) -> np.ndarray:
        """The values with the tangents of sample ``s``."""
        arrays, smooth = self.circuit.arrays(), self.smooth
        volts, amperes = solution.voltages[s], solution.currents[s]
        drops = volts[arrays.first] - volts[arrays.second]
        start = Start(None, drops[smooth.rest], amperes[smooth.slope] + amperes[smooth.rest])
        column = arrays.value.copy()
        tangents(start.state(smooth), column, smooth)
        return column


__all__ = ["SmoothControlledBatch"]
