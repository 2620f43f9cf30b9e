"""Checkpoints whose facts are not those of a run: each is refused."""

import copy

import numpy as np
import pytest
from quadratic import NoisyQuadratic

from circuitsim.training import CheckpointError, RunDirectory, Trainer, TrainingPlan, load_checkpoint, save_checkpoint


def trainer(path, create: bool = False) -> Trainer:
    directory = RunDirectory(path)
    if create:
        directory.create({})
    return Trainer(NoisyQuadratic(), (np.ones((6, 3)),), TrainingPlan(2, 2), directory=directory)


DAMAGES = [
    ("counters",),
    ("counters", "epoch"),
    ("counters", "batch"),
    ("counters", "updates"),
    ("counters", "skipped"),
    ("counters", "sums"),
    ("counters", "summed"),
    ("counters", "seconds"),
    ("rows",),
    ("rng",),
    ("rng", "bit_generator"),
    ("rng", "state"),
    ("rng", "state", "inc"),
    ("rng", "uinteger"),
]


@pytest.mark.parametrize("place", DAMAGES, ids="-".join)
@pytest.mark.parametrize("value", [None, "a", [1], -1, 10**30, {"a": "b"}, "missing"], ids=repr)
def test_damaged_facts(tmp_path, place: tuple[str, ...], value: object) -> None:
    trainer(tmp_path, create=True).train()
    arrays, facts = load_checkpoint(tmp_path / "checkpoint.npz")
    inner = facts = copy.deepcopy(facts)
    for name in place[:-1]:
        inner = inner[name]
    if value == "missing":
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    save_checkpoint(tmp_path / "checkpoint.npz", arrays, facts)
    if place == ("rng", "state", "inc") and value == 10**30:
        # Any whole number of 128 bits is a state.
        trainer(tmp_path).resume()
        return
    with pytest.raises(CheckpointError):
        trainer(tmp_path).resume()
