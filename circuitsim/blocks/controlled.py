"""Circuits with controlled sources as blocks: solved, and differentiated by the transposed equations.

They have no energy: what needs one (nudged phases, clamps) is refused by name. Where controls by voltages form no loop
(buffers between passive sections) each section has an energy, and nudged phases go section by section.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from circuitsim.analysis.controlled_batch import no_energy
from circuitsim.analysis.sectioned_batch import SectionedBatch
from circuitsim.blocks.circuit import Analyse, CircuitBlock, CircuitState
from circuitsim.blocks.protocol import Nudge, State
from circuitsim.certificate import TOLERANCE
from circuitsim.circuit import Circuit
from circuitsim.errors import NoEnergyError, UsageError
from circuitsim.netlist.roles import Roles


class ControlledBlock(CircuitBlock):
    """What `CircuitBlock` makes of a circuit with controlled sources.

    Raises
    ------
    UsageError
        A trainable resistor whose current controls a source.
    """

    def __init__(
        self, circuit: Circuit, roles: Roles, tolerance: float = TOLERANCE, analyse: Analyse | None = None
    ) -> None:
        sensed = {circuit.names[c.element].lower() for law in circuit.laws.values() for c in law.currents}
        wrong = [a.name for a in roles.trainable if a.name.lower() in sensed]
        if wrong:
            raise UsageError(
                f"{wrong[0]} is to be trained, and its current controls a source: sense the current with a voltage "
                "source of 0 V in series"
            )
        super().__init__(circuit, roles, tolerance, analyse)

    def relax(self, x: np.ndarray, nudge: Nudge | None = None, start: State | None = None) -> CircuitState:
        """Operating points for the rows of ``x``; see `CircuitBlock.relax`.

        Raises
        ------
        UsageError
            A nudge, where controls form a loop or are currents; a nudge by a conductance.
        """
        if nudge is not None and not isinstance(self._analysed, SectionedBatch):
            self._refuse()
        return super().relax(x, nudge)

    @property
    def has_energy(self) -> bool:
        """No: only its sections have, if any."""
        return False

    def clamp(self, x: np.ndarray, output: np.ndarray, start: State | None = None) -> CircuitState:
        """Refused: clamped outputs are half of a rule that rests on energies.

        Raises
        ------
        NoEnergyError
        """
        self._refuse()

    def energy(self, state: State, x: np.ndarray) -> np.ndarray:
        """Refused: there is none.

        Raises
        ------
        NoEnergyError
        """
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NoEnergyError(no_energy(self.circuit))
