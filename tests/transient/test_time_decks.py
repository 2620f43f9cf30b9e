"""The bundled decks over time: their stories as numbers, and ngspice with its own devices on the same decks."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from spice import needed

from circuitsim.errors import UsageError
from circuitsim.netlist import load, loads
from circuitsim.netlist.writer import text_of
from circuitsim.time_domain import ImplicitResult, TransientResult, transient
from circuitsim.units import parse

NETLISTS = Path(__file__).parents[2] / "netlists"


def ran(name: str) -> TransientResult:
    return transient(load(NETLISTS / f"{name}.cir"))


# Deck, quantity, bound: ngspice's diodes drop N vt ln(i / IS), some millivolts here, and its steps resolve events.
THEIRS = (
    ("half-wave-smoothed", "out", 0.05),
    ("rectifier-bridge-smoothed", "out", 0.05),
    ("voltage-doubler", "out", 0.1),
    ("cockcroft-walton", "b3", 2.0),
    ("clamp-capacitor", "out", 0.05),
    ("peak-detector", "out", 0.05),
    ("buck-converter", "out", 0.05),
    ("boost-converter", "out", 0.1),
    ("buck-boost-converter", "out", 0.1),
    ("flyback-converter", "out", 0.1),
    ("charge-sharing", "b", 0.05),
    ("relay-flyback", "d", 0.12),
    ("clipper-1n4148", "out", 0.005),
)


@needed
@pytest.mark.parametrize(("name", "node", "bound"), THEIRS)
def test_against_ngspice(name: str, node: str, bound: float, tmp_path: Path) -> None:
    """The same deck, its cards unchanged; only the steps are made shorter."""
    ours, text = ran(name), (NETLISTS / f"{name}.cir").read_text()
    cards = [line for line in text.splitlines() if not line.startswith((".end", ".meas", ".print", ".tran"))]
    _, step, stop, *rest = next(line for line in text.splitlines() if line.startswith(".tran")).split()
    uic, out = " uic" if rest else "", tmp_path / "waves.txt"
    path, shorter = tmp_path / "deck.cir", 0.1 * parse(step)
    shown = f"set wr_singlescale\nset wr_vecnames\nrun\nlinearize v({node})\nwrdata {out} v({node})\n"
    asked = [".options reltol=1e-4 method=gear", f".tran {step} {stop} 0 {shorter}{uic}", ".control", shown + ".endc"]
    path.write_text("\n".join([*cards, *asked, ".end", ""]))
    subprocess.run(["ngspice", "-b", str(path)], capture_output=True, text=True, check=False, timeout=120)
    theirs = np.loadtxt(out, skiprows=1)
    times = theirs[:, 0]
    inside = (times > 0.02 * ours.stop) & (times < ours.stop)
    gap = np.abs(ours.voltage(node, times=times[inside]) - theirs[inside, 1])
    # Beside the steps of its own sources, which it rounds off.
    assert np.quantile(gap, 0.98) < bound


def test_the_longest_step_of_a_card() -> None:
    """Output times where the card states no other, as LTspice's do, and no step of the implicit method is longer."""
    deck = "t\nV1 a 0 1\nR1 a b 1k\nC1 b 0 1u\n.tran {} uic\n.end\n"
    run = transient(loads(deck.format("0 1m 0 10u")))
    assert np.diff(run.times) == pytest.approx(np.full(100, 1e-5), rel=1e-9)
    counts = []
    for card in ("0.5m 1m", "0.5m 1m 0 1u"):
        run = transient(loads(deck.format(card)), method="implicit", accuracy=1e-2)
        assert isinstance(run, ImplicitResult)
        starts = run.segment_starts()
        counts.append(starts.size)
        assert np.diff(starts).max() <= (1.001e-6 if card.endswith("1u") else 1.0)
    assert counts[0] < 100 < 1000 <= counts[1]
    with pytest.raises(UsageError, match="max_step must be a number above 0"):
        transient(loads(deck.format("0 1m")).circuit, 1e-3, {}, {}, method="implicit", max_step=0.0)


def test_a_deck_of_ltspice_as_a_flat_one() -> None:
    """The longest step stays; sources that startup turns on are ramps."""
    deck = loads("t\nV1 a 0 3\nR1 a b 1k\nC1 b 0 1n Rser=10\n.tran 1u 60u 0 0.5u startup\n.end\n")
    text = text_of(deck)
    again = loads(text)
    assert ".tran 1e-06 6e-05 0 5e-07" in text and "startup" not in text
    assert transient(again).voltage("b") == pytest.approx(transient(deck).voltage("b"), abs=1e-12)
    squared = loads("t\nV1 a 0 3\nB1 b 0 V=v(a)*v(a)\nR1 b 0 1\n.tran 1u 60u startup\n")
    assert transient(squared).voltage("b", times=[1e-5]).tolist() == pytest.approx([2.25])
