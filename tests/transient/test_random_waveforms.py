"""Random circuits over time: every run certified, the implicit method as the exact one, circuits that once failed."""

from pathlib import Path

import numpy as np
import pytest
from corpus import FAMILIES

from circuitsim import Deck, UsageError, load, loads, transient

CASES = sorted((Path(__file__).parent / "cases").glob("*.cir"))
ACCURACY = 1e-5


def apart(deck: Deck, kinds: str, accuracy: float = ACCURACY) -> float:
    """Largest difference of states between both methods, of the largest of each kind, over the accuracy.

    The exact run is certified, and loses energy at most; the implicit one says how far it is off.
    """
    exact = transient(deck, method="exact")
    assert exact.certificate.certified and exact.energies.imbalance < 1e-9
    assert exact.energies.lost >= -1e-12 * max(1.0, exact.energies.turned_over)
    if not kinds:
        return 0.0
    found = transient(deck, method="implicit", accuracy=accuracy)
    off = [0.0]
    for kind, pick in (("C", 0), ("L", 1)):
        own = [k for k, name in enumerate(deck.names) if name[0] == kind and kind in kinds]
        if own:
            theirs = exact.at(exact.times)[pick][:, own]
            size = max(np.abs(theirs).max(), 1e-9)
            off.append(float(np.abs(found.at(exact.times)[pick][:, own] - theirs).max()) / size)
    said = found.difference
    assert said is not None and (said <= accuracy or found.warnings) and off[0] <= 3.0 * said + 1e-12
    return max(off) / accuracy


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_circuits_that_were_found(path: Path) -> None:
    """The title of each deck says what went wrong; no implicit runs of ideal windings, whose currents jump, and none of
    the deck of the next test."""
    assert apart(load(path), "" if path.stem.startswith(("windings", "switched-40013")) else "CL") <= 10.0


def test_a_transient_that_a_stage_overshoots() -> None:
    assert apart(load(CASES[0].with_name("switched-40013.cir")), "C", 1e-3) <= 10.0


@pytest.mark.parametrize("seed", range(0, 24, 4))
def test_the_implicit_method_as_the_exact_one(seed: int) -> None:
    assert apart(loads(FAMILIES["implicit"].deck(seed)), "CL") <= 10.0


def test_an_error_that_is_not_met_is_stated() -> None:
    """Rounding leaves some 1e-12, which no finer run makes less."""
    found = transient(load(CASES[0].with_name("cascade-101.cir")), 3e-5, method="implicit", accuracy=1e-13)
    assert found.difference is not None and found.difference > 1e-13
    (warning,) = found.warnings
    assert warning.kind == "accuracy" and f"off by {found.difference:.1e} of" in warning.message
    assert warning.hint is not None and warning.hint.startswith("rounding")
    found.accuracy, found.difference = 1e-4, 2e-3
    del found.warnings
    assert found.warnings[0].hint == "a run for 1e-06 should be within it"


def test_memory_is_bounded() -> None:
    many = "\n".join(f"R{k} a 0 1meg" for k in range(150))
    with pytest.raises(UsageError, match=r"output times of .* at most"):
        transient(loads(f"many\nV1 a 0 SIN(0 1 1)\nC1 a 0 1u\n{many}\n.tran 1m 10 uic\n"), points=1_000_000)
