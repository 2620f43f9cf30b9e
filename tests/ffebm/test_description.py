"""Chains as data and in files."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from chains import batch, every_kind

from circuitsim import circuit_block, loads
from circuitsim.errors import UsageError
from circuitsim.ffebm import Chain, Linear, Readout, build, build_chain, describe_chain
from circuitsim.learning import NUDGES, EquilibriumPropagation, FollowingCurrent, Nudging
from circuitsim.learning.stages import KINDS
from circuitsim.training import CheckpointError

DECK = """two inputs, diodes between free nodes
*! input V1 V2
*! output v(a) v(b,0)
*! trainable R* min=100 max=100k
V1 x 0 0
V2 y 0 0
R1 x a 1k
R2 y b 2k
R3 a 0 3k
R4 b 0 1.5k
D1 a b
D2 b m
R5 m 0 1k
"""


def with_a_circuit() -> Chain:
    return every_kind(Linear(4, 2, spread=9.0), circuit_block(loads(DECK)), Readout(2, 3))


def test_every_kind_survives_a_file(tmp_path: Path) -> None:
    chain, (x, y) = with_a_circuit(), batch(np.random.default_rng(0))
    assert {e["kind"] for e in describe_chain(chain)["elements"]} == {*KINDS, "circuit"}
    gradients, _ = chain.gradient((x, y), np.random.default_rng(0))
    for name, array in chain.parameters.items():
        array -= 1e-2 * gradients[name] * np.abs(array).mean()
    chain.project()
    path = tmp_path / "model.npz"
    chain.save(path)
    again = Chain.load(path)
    np.testing.assert_array_equal(again.output(x), chain.output(x))
    assert describe_chain(again) == describe_chain(chain)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(CheckpointError):
        Chain.load(path)


@pytest.mark.parametrize("nudging", [*NUDGES.values(), FollowingCurrent(tolerance=1e-9)], ids=str)
def test_a_rule_is_restored_with_its_nudge(tmp_path: Path, nudging: Nudging) -> None:
    rule = EquilibriumPropagation(beta=0.3, nudging=nudging)
    Chain([Linear(4, 2)], seed=1, rule=rule).save(tmp_path / "model.npz")
    assert Chain.load(tmp_path / "model.npz").rule == rule


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"kind": "dropout"}, "no kind of element 'dropout'"),
        ({}, "no kind"),
        ({"kind": "linear", "inputs": 3}, "missing .* 'outputs'; its options are .inputs: 'int', outputs"),
        ({"kind": "linear", "inputs": 3, "size": 2}, "unexpected keyword argument 'size'"),
        ({"kind": "flatten", "of": 2}, "unexpected keyword argument 'of'"),
        ({"kind": "deep-hopfield", "layers": [2], "sweeps": {"many": 3}}, "cannot be made"),
        ({"kind": "circuit"}, "deck"),
        ({"kind": "linear", "inputs": 3, "rng": 2}, "unexpected keyword argument 'rng'"),
    ],
)
def test_a_wrong_description_is_refused(table: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        build(table)
    with pytest.raises(UsageError, match="element 1"):
        build_chain([{"kind": "flatten"}, table])


def test_rates_follow_the_size_of_conductances() -> None:
    rates = with_a_circuit().rates(0.1)
    assert rates["14.weights"] == 0.1
    assert rates["15.conductance"] == pytest.approx(0.1 * np.mean(1 / np.array([1e3, 2e3, 3e3, 1.5e3, 1e3])))


class Doubling:
    """A block of a user's own: E = ½ ‖s − θ x‖², so s = θ x."""

    kind = "doubling"

    def __init__(self, units: int, factor: float = 2.0) -> None:
        self.options = {"units": units, "factor": factor}
        self.n_inputs = self.n_outputs = units
        self.parameters = {"theta": np.full(units, factor)}

    def relax(self, x: Any, nudge: Any = None, start: Any = None) -> Any:
        output = self.parameters["theta"] * x
        if nudge is not None:
            output = (output - nudge.linear) / (1.0 + nudge.stiffness)
        certified = np.ones(len(x), bool)
        return SimpleNamespace(output=output, residual=np.zeros(len(x)), certified=certified)

    def energy(self, state, x):
        return 0.5 * ((state.output - self.parameters["theta"] * x) ** 2).sum(axis=1)

    def parameter_difference(self, plus, minus, x, weight):
        return {"theta": -(weight[:, None] * x * (plus.output - minus.output)).sum(axis=0)}

    def input_difference(self, plus, minus, x):
        return -self.parameters["theta"] * (plus.output - minus.output)

    def implicit(self, state, x, cotangent, weight):
        return {"theta": (weight[:, None] * x * cotangent).sum(axis=0)}, cotangent * self.parameters["theta"]

    def project(self) -> None:
        """All values are allowed."""


def test_a_block_of_ones_own_is_saved_and_loaded(tmp_path: Path) -> None:
    chain = Chain([Linear(3, 2), Doubling(2, 3.0), Readout(2, 2)], dtype=np.float64, seed=2)
    x, y = np.random.default_rng(0).normal(size=(12, 3)), np.array([0, 1] * 6)
    chain.fit(x, y, 3)
    assert not np.allclose(chain.elements[1].parameters["theta"], 3.0)
    chain.save(tmp_path / "own.npz")
    again = Chain.load(tmp_path / "own.npz", [Doubling])
    assert isinstance(again.elements[1], Doubling) and again.elements[1].options["factor"] == 3.0
    np.testing.assert_array_equal(again.output(x), chain.output(x))
    with pytest.raises(UsageError, match=r"no kind of element 'doubling'.*Name a class of your own in elements="):
        Chain.load(tmp_path / "own.npz")
    chain.elements[1].kind = "linear"
    with pytest.raises(UsageError, match="Doubling has the kind 'linear' of another element"):
        chain.save(tmp_path / "own.npz")
    del chain.elements[1].kind, chain.elements[1].options
    with pytest.raises(UsageError, match="it needs 'kind', a name in its class, and 'options'"):
        chain.save(tmp_path / "own.npz")
