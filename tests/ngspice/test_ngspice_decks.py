"""ngspice agrees with circuitsim on every deck it can run, within the forward drops of its diode model."""

import pytest
from ngspice_runs import CLAMPED, OP_AMPS, SINGULAR, compare, decks, flattened, original, run
from spice import NEEDED

pytestmark = NEEDED

# Here the saturation current of the export's model (1 pA) through teraohms is volts: the bound says nothing.
VACUOUS = {("gate-teraohm", "flattened")}


FORMS = {"original": SINGULAR | OP_AMPS, "flattened": SINGULAR | CLAMPED}
"""Form of a deck → decks that ngspice does not run in this form, or to other inner nodes."""


@pytest.mark.parametrize(("form", "name"), [(f, n) for f in FORMS for n in decks() if n not in FORMS[f]])
def test_agrees_within_the_forward_drops(name: str, form: str) -> None:
    found = compare(name, original(name) if form == "original" else flattened(name))
    assert found.error <= found.bound
    assert found.bound < 0.2 or (name, form) in VACUOUS


@pytest.mark.parametrize("name", sorted(SINGULAR))
def test_ngspice_gives_up_where_currents_are_a_choice(name: str) -> None:
    """If a later ngspice solves it, the list and docs/netlists.md want to know."""
    voltages, log = run(*flattened(name)[:2])
    assert not voltages
    assert "singular" in log.lower() or "timestep too small" in log.lower()
