"""Smooth devices: a junction in series with a resistance, linearised in each Newton step.

The linearised device is a conductance in parallel with a current source, so each step solves the same circuit of
elementary elements with other values (`circuitsim.analysis.newton`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from circuitsim.models.base import Device, Part, Region

if TYPE_CHECKING:
    import numpy as np


class Limits(NamedTuple):
    """The limiting reverse and forward currents of a device, A; infinite if there is no limit."""

    least: float
    most: float


class SmoothDevice(Device):
    """A device whose current is a smooth, monotone function of its voltage, with a resistance in series.

    A subclass defines its junction (`junction`, see `circuitsim.models.curve`), the derivatives by parameters
    (`by_parameters`), the row of parameters (`row`), the energy of its junction and the names of its regions.
    """

    @staticmethod
    @abstractmethod
    def junction(p: Any, u: Any) -> tuple[Any, Any]:
        """Current (A) and slope (S) of the junction; infinite on overflow.

        Parameters
        ----------
        p : sequence of float
            The law's parameters, as `row` gives them.
        u : float
            Voltage of the junction, V.
        """

    @staticmethod
    @abstractmethod
    def by_parameters(p: Any, u: Any, out: Any) -> None:
        """Fill in the derivatives of the junction's current with respect to its parameters.

        Parameters
        ----------
        p : sequence of float
            The law's parameters, as `row` gives them; ``p[0]`` is the resistance in series, whose derivative is zero.
        u : float
            Voltage of the junction, V.
        out : ndarray
            Filled, one value for each entry of ``p``.
        """

    @abstractmethod
    def row(self) -> tuple[float, ...]:
        """The argument p of `junction`: the series resistance, Ω, then the model's own parameters."""

    def limits(self) -> Limits:
        """The limiting currents; none unless overridden."""
        return Limits(-math.inf, math.inf)

    def stores(self) -> bool:
        """Whether its junction has a charge (`circuitsim.models.junction_diode.charge`)."""
        return False

    def rises(self) -> bool:
        """Whether its current rises strictly with the voltage."""
        return True

    def junction_energy(self, voltage: float) -> float:
        """Co-content ∫ j du of the junction from 0 to ``voltage`` (V), W; by quadrature unless overridden."""
        nodes, weights = quadrature(voltage)
        return float(self.junction_currents(nodes) @ weights)

    def junction_currents(self, volts: np.ndarray) -> np.ndarray:
        """Currents of the junction, A, at voltages, V, of any shape."""
        import numpy as np

        row = self.row()
        return np.array([type(self).junction(row, u)[0] for u in volts.ravel().tolist()]).reshape(volts.shape)

    @abstractmethod
    def region_at(self, voltage: float) -> Region:
        """The device's region at a junction voltage, V."""

    def expand(self) -> tuple[Part, ...]:
        """Its tangent at zero junction voltage: i = I + (v − V)/R through the point (V, I)."""
        row, (first, second) = self.row(), self.model.terminals
        current, slope = type(self).junction(row, 0.0)
        return (
            Part("R", "slope", first, "inside", row[0] + 1.0 / max(slope, 1e-100)),
            Part("V", "voltage", "inside", second, row[0] * current),
            Part("I", "current", first, second, current),
        )

    def region(self, currents: Mapping[str, float]) -> Region:
        """The region at zero volts, as the parts do not determine it."""
        return self.region_at(0.0)

    def at(self, voltage: float) -> tuple[float, float]:
        """Junction voltage (V) and current (A) at a device voltage, V."""
        import numpy as np

        from circuitsim.models.curve import point

        with np.errstate(all="ignore"):
            found = point(type(self).junction, np.array(self.row()), voltage, 0.0, 0.0, voltage)
        return float(found[0]), float(found[2])

    def law(self, voltage: float) -> tuple[float, float]:
        """The current at ``voltage``, twice; by iteration if there is a series resistance."""
        current = self.at(voltage)[1]
        return current, current

    def energy(self, voltage: float) -> float:
        """Co-content of junction and resistance, W."""
        junction, current = self.at(voltage)
        return self.junction_energy(junction) + 0.5 * self.row()[0] * current * current


def quadrature(voltage: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes, V, and weights, V, of an integral from 0 to ``voltage``: Gauss–Legendre on 256 equal intervals."""
    import numpy as np

    nodes, weights = np.polynomial.legendre.leggauss(12)
    edges = np.linspace(0.0, voltage, 257)
    half = 0.5 * (edges[1] - edges[0])
    return (edges[:-1, None] + half * (1.0 + nodes)).ravel(), np.tile(half * weights, 256)


class WithoutModel(SmoothDevice):
    """A smooth device without an ngspice model; it is written as a formula of its junction."""

    @abstractmethod
    def junction_text(self, volts: str) -> str:
        """The current, A, as a formula of the junction voltage, which is itself a formula in parentheses."""
