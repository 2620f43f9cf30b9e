"""The network as a circuit, as a file, and what it refuses."""

import numpy as np
import pytest
from networks import parameters

import circuitsim
from circuitsim.blocks.layered import Sweeps
from circuitsim.errors import UsageError
from circuitsim.layered import (
    Architecture,
    DeepResistiveNetwork,
    LayeredLearner,
    published_models,
)
from circuitsim.training import CheckpointError

SMALL = DeepResistiveNetwork((5, 4, 3))


def test_the_circuit_survives_as_a_deck() -> None:
    of = Architecture((3, 4, 2), 2.0, (2.0, 0.5))
    net = DeepResistiveNetwork(of, parameters(of), sweeps=500, tolerance=1e-13)
    x = np.array([0.3, -0.2, 1.0])
    again = circuitsim.loads(circuitsim.dumps(net.to_circuit(x)))
    point = circuitsim.solve(again)
    output = net.relax(x[None]).output[0]
    np.testing.assert_allclose([point["out1"], point["out2"]], output, atol=1e-10)


def test_saving_and_loading_keeps_every_bit(tmp_path) -> None:
    of = Architecture((5, 8, 3), 3.0, (2.0, 0.5))
    net = DeepResistiveNetwork(of, parameters(of, dtype=np.float32), sweeps=7, tolerance=0.0, dtype=np.float32)
    net.save(tmp_path / "net.npz")
    again = DeepResistiveNetwork.load(tmp_path / "net.npz")
    assert again.architecture == of and again.sweeps == net.sweeps == Sweeps(7, 7, None, False)
    assert all(
        (again.parameters[k] == v).all() and again.parameters[k].dtype == v.dtype for k, v in net.parameters.items()
    )
    x = np.ones((2, 5))
    assert (again.relax(x).output == net.relax(x).output).all()
    np.savez(tmp_path / "other.npz", a=1)
    with pytest.raises(CheckpointError):
        DeepResistiveNetwork.load(tmp_path / "other.npz")


def test_the_table_holds_the_papers_numbers() -> None:
    found = published_models()
    assert list(found) == ["drn-xs", "drn-1h", "drn-2h", "drn-3h", "drn-xl"]
    layers = {name: preset.architecture.units for name, preset in found.items()}
    assert layers["drn-xl"] == (784, 32768, 10) and layers["drn-3h"] == (784, 1024, 1024, 1024, 10)
    for preset in found.values():
        depth = preset.architecture.depth
        assert len(preset.weight_rates) == len(preset.bias_rates) == depth
        assert set(preset.rates()) == {f"conductances{k}" for k in range(depth)} | {
            f"bias{k + 1}" for k in range(depth)
        }
        assert set(preset.published) == {"ep", "bp"}
    units = layers["drn-3h"]
    weights = sum(a * b for a, b in zip((2 * units[0], *units[1:]), units[1:]))
    assert round(weights / 1e6, 1) == 3.7  # millions, as printed in the paper


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Architecture((5, 3)), "at least one hidden layer"),
        (lambda: Architecture((5, 1, 3)), "at least 2 units"),
        (lambda: DeepResistiveNetwork(Architecture((5, 4, 3), 1.0, (2.0,))), "2 amplifiers"),
        (lambda: DeepResistiveNetwork(Architecture((5, 4, 3), -1.0)), "gain above 0"),
        (lambda: LayeredLearner(SMALL, 4, variant="both"), "there are centred, positive, negative"),
        (lambda: LayeredLearner(SMALL, 4, beta=0.0), "beta must be positive"),
        (lambda: DeepResistiveNetwork((5, 4, 3), sweeps=0), "at least one"),
        (lambda: DeepResistiveNetwork((5, 4, 3), tolerance=1.0), "below 1"),
        (lambda: DeepResistiveNetwork((5, 4, 3)).relax(np.zeros((2, 4))), "rows of 5 inputs"),
        (lambda: DeepResistiveNetwork((5, 4, 3)).to_circuit(np.zeros(4)), "shape"),
        (lambda: DeepResistiveNetwork((5, 4, 3), {"conductances0": np.zeros((10, 4))}), "shapes"),
        (
            lambda: LayeredLearner(DeepResistiveNetwork(Architecture((5, 4, 3), 1.0, (2.0, 1.0))), 4),
            "no amplifiers",
        ),
    ],
)
def test_refusals_say_what_is_wrong(make, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        make()
