"""Decks, circuits, prepared circuits and results travel to other processes."""

import pickle
from pathlib import Path

import pytest

import circuitsim
from circuitsim.netlist import load

NETLISTS = Path(__file__).parents[2] / "netlists"
SMOOTH = "d\nV1 a 0 5\nR1 a b 1k\nD1 b 0 dz\n.model dz D(is=1e-12)"
CONTROLLED = "e\nV1 a 0 5\nR1 a b 1k\nE1 c 0 a b 2\nR2 c 0 1\nR3 b 0 1"


def again(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("path", sorted(NETLISTS.glob("*.cir")), ids=lambda path: path.stem)
def test_every_bundled_deck(path: Path) -> None:
    deck = load(path)
    there = again(deck)
    assert list(there.circuit) == list(deck.circuit)
    assert (there.title, there.parameters, there.temperature) == (deck.title, deck.parameters, deck.temperature)
    assert repr((there.problems, there.notes, there.analyses)) == repr((deck.problems, deck.notes, deck.analyses))
    for name in deck.parameters:
        other = {name: 1.25 * deck.parameters[name]}
        assert list(there.elaborate(other)) == list(deck.elaborate(other))


def test_a_deck_still_sweeps_its_parameters() -> None:
    deck = again(load(NETLISTS / "zener-stack.cir"))
    assert circuitsim.sweep(deck, {"V1": [11.5, 12.0]}, "v(out)")["v(out)"].tolist() == pytest.approx([8.4, 8.4])


@pytest.mark.parametrize("text", [SMOOTH, CONTROLLED, SMOOTH.replace("is=1e-12", "ron=1 vfwd=0.6")])
def test_prepared_circuits_and_results(text: str) -> None:
    circuit = circuitsim.loads(text)
    ready = circuitsim.prepared(circuit)
    point = ready.solve()
    assert again(ready).solve({"V1": 3.0}).voltages.tolist() == ready.solve({"V1": 3.0}).voltages.tolist()
    assert again(point).to_dict() == point.to_dict()
    swept = circuitsim.sweep(circuit, {"V1": [1.0]})
    assert again(swept).to_dict() == swept.to_dict()
    found = circuitsim.sensitivity(circuit, "v(b)")
    assert again(found).to_dict() == found.to_dict()
    samples = circuitsim.montecarlo(circuit, ["R*=1%"], "v(b)", 20, workers=1)
    assert again(samples).to_dict() == samples.to_dict()


def test_batches_from_memory_that_cannot_be_written_to() -> None:
    """As in a file that several processes map."""
    solver = circuitsim.batched(circuitsim.loads("t\nV1 a 0 5\nR1 a b 1k\nD1 b c\nR2 c 0 1k"), ["V1"])
    buffers: list[pickle.PickleBuffer] = []
    packed = pickle.dumps(solver, protocol=5, buffer_callback=buffers.append)
    there = pickle.loads(packed, buffers=[bytes(buffer) for buffer in buffers])
    assert there.solve([[1.0], [-2.0]]).voltages.tolist() == solver.solve([[1.0], [-2.0]]).voltages.tolist()
