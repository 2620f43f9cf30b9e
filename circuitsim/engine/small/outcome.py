"""How the solution of a sample of a small circuit ends."""

from __future__ import annotations

import enum


class Outcome(enum.IntEnum):
    """Result of one solution; integers, so that kernels can store them in arrays."""

    CONVERGED = 0
    """Potentials and currents are unique."""
    NONUNIQUE_CURRENTS = 1
    """Conducting diodes close loops; their currents are not unique."""
    SINGULAR = 2
    """Potentials are not unique, or voltage constraints close a loop."""
    MAX_ITERATIONS = 3
    """The active set did not become optimal, or a net current has no path to ground."""
    NONCONVEX = 4
    """Negative conductances make the energy concave."""
    TOPOLOGY_CHANGED = 5
    """A resistance changed from or to zero."""
    OUT_OF_RANGE = 6
    """An element value is out of range."""
    CANCELLING_SOURCES = 7
    """As `CONVERGED`, but current sources cancel at a node, whose sum needs refinement."""
    CANCELLING_NONUNIQUE = 8
    """As `NONUNIQUE_CURRENTS`, with such sources."""


REFINED = (Outcome.CONVERGED, Outcome.NONUNIQUE_CURRENTS, Outcome.CANCELLING_SOURCES)
"""Outcomes whose branch currents `circuitsim.engine.small.single.refine_once` can refine."""
