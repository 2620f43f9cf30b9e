"""Pictures: circuits with their voltages and currents, and the columns of sweeps.

matplotlib is imported when something is drawn, and draws to memory (Agg): no display is needed and no global state is
changed. The same input gives the same picture.
"""

from circuitsim.plotting.charts import plot_crossbar, plot_sweep, rendered
from circuitsim.plotting.circuit import draw_circuit

__all__ = ["draw_circuit", "plot_crossbar", "plot_sweep", "rendered"]
