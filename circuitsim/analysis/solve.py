"""Circuit → certified operating point, or an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from circuitsim.analysis.convex import Prepared
from circuitsim.analysis.elementary import prepared_elementary
from circuitsim.analysis.operating_point import OperatingPoint
from circuitsim.analysis.switching import PreparedSwitched, switches_of, switching_of
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.circuit.dynamics import Dynamics
from circuitsim.circuit.source import analysis, circuit_of
from circuitsim.errors import TopologyError
from circuitsim.netlist.deck import Deck, warn_of_time
from circuitsim.solvers import choose

if TYPE_CHECKING:
    from circuitsim.analysis.amplified import PreparedAmplified
    from circuitsim.analysis.controlled import PreparedControlled
    from circuitsim.analysis.expanded import PreparedExpanded

    Unswitched: TypeAlias = Prepared | PreparedAmplified | PreparedControlled | PreparedExpanded
    Ready: TypeAlias = Unswitched | PreparedSwitched


@analysis()
def prepared(circuit: Circuit | Deck, solver: str = "auto", tolerance: float = TOLERANCE) -> Ready:
    """Analyse a circuit once, to solve it many times with other values.

    Parameters
    ----------
    circuit : Circuit or Deck
    solver : str
        As for `solve`.
    tolerance : float
        Largest relative residual that the certificate of each solution allows, 0 to 1.

    Returns
    -------
    Prepared or PreparedAmplified or PreparedControlled or PreparedExpanded or PreparedSwitched
        Its ``solve(values)`` takes other element values by name.

    Raises
    ------
    TopologyError
        A circuit without elements, or a tolerance out of range.
    UsageError
        A deck with a source by a formula of others that is not affine: it would not follow their values.
    """
    if isinstance(circuit, Deck):
        return prepared_switched(*circuit.where_change(None), solver, tolerance)
    dynamics = circuit_of(circuit).dynamics
    if dynamics is not None:
        dynamics.check_changes(None)
    return as_read(circuit, solver, tolerance)


def as_read(source: Circuit | Deck, solver: str = "auto", tolerance: float = TOLERANCE) -> Ready:
    """`prepared` for operating points at a deck's own values: sources by formulas of others then have known values, and
    the circuit has its energy function."""
    circuit = circuit_of(source)
    return prepared_switched(circuit, circuit.dynamics, solver, tolerance)


def prepared_switched(circuit: Circuit, following: Dynamics | None, solver: str, tolerance: float) -> Ready:
    """A deck's circuit prepared, with its switches if there are any."""
    inner = prepared_as_it_is(circuit, solver, tolerance)
    if following is None or not following.switches:
        return inner
    return PreparedSwitched(circuit, inner, switching_of(circuit, switches_of(circuit, following)))


def prepared_as_it_is(circuit: Circuit, solver: str = "auto", tolerance: float = TOLERANCE) -> Unswitched:
    """`prepared`, with switches as resistors of the circuit's own values."""
    if not len(circuit):
        raise TopologyError("the circuit has no elements")
    choose(solver)  # refused where nothing asks for it, too
    if circuit.devices:
        from circuitsim.analysis.expanded import prepared_expanded

        return prepared_expanded(circuit, solver, float(tolerance))
    return prepared_elementary(circuit, solver, float(tolerance))


@analysis()
def solve(circuit: Circuit | Deck, solver: str = "auto", tolerance: float = TOLERANCE) -> OperatingPoint:
    """The certified steady state of a circuit.

    Parameters
    ----------
    circuit : Circuit or Deck
    solver : str
        ``"auto"``, ``"active-set"``, ``"coordinate-descent"`` or ``"cvxpy:NAME"`` (for instance ``cvxpy:CLARABEL``).
    tolerance : float
        Largest relative residual that the certificate allows, on local scales (see `circuitsim.certificate`).

    Returns
    -------
    OperatingPoint

    Raises
    ------
    InfeasibleError, UnboundedError
        No steady state exists; the error names the cycle or cut.
    ConvergenceError
        The method stopped without a certified solution.
    TopologyError
        A circuit without elements; an unknown solver.
    """
    warn_of_time(circuit)
    return as_read(circuit, solver, tolerance).solve()
