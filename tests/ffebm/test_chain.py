"""Chains: their gradients against finite differences, backpropagation and each other."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from energy_blocks import agree, slopes

from circuitsim import circuit_block, loads
from circuitsim.blocks.convolutional import ConvolutionalHopfieldBlock
from circuitsim.blocks.hopfield import DeepHopfieldBlock, Sweeps
from circuitsim.blocks.layered import ResistiveBlock
from circuitsim.errors import ConvergenceError, UsageError
from circuitsim.learning.chain import Chain
from circuitsim.learning.chaining import forward
from circuitsim.learning.rules import Chaining
from circuitsim.learning.stages import Activation, BatchNorm, Conv2d, Linear, MaxPool, Readout, SoftPool
from circuitsim.training import Trainable

EXACT = Sweeps(3000, 3000, 1e-14)
RNG = np.random.default_rng(0)
Batch = tuple[np.ndarray, np.ndarray]

VOLTAGES = """voltage inputs, three diodes between free nodes, a current source that learns
*! input V1 V2
*! output v(a) v(b,m) v(c)
*! trainable R* min=100 max=100k
*! trainable I1 min=-1m max=1m
V1 x 0 0
V2 y 0 0
R1 x a 1k
R2 y b 2k
R3 a 0 3k
R4 b 0 1.5k
D1 a b
D2 b m
D3 c m
R5 m 0 1k
R6 x c 1.2k
I1 0 c 0.2m
"""
CURRENTS = """current inputs, a diode between free nodes
*! input I1 I2 I3
*! output v(p) v(q)
*! trainable R* min=0.01 max=100
I1 0 a 0
I2 0 p 0
I3 0 q 0
R1 a p 1
R2 p q 2
R3 q 0 0.7
R4 a 0 1.5
R5 p 0 3
D1 a q
"""


def mixed(**options: Any) -> Chain:
    """Every kind of block that needs no deck, batch norm before the first and between."""
    elements = [
        Linear(4, 6),
        BatchNorm(6),
        DeepHopfieldBlock([6, 5], clamped=False, sweeps=EXACT),
        Linear(5, 3),
        ResistiveBlock([6, 4], inputs=3, sweeps=EXACT),
        Linear(4, 5),
        DeepHopfieldBlock([5, 4], "laborieux", clamped=False, sweeps=EXACT),
        Readout(4, 3),
    ]
    return Chain(elements, dtype=np.float64, seed=4, **options)


def images(**options: Any) -> Chain:
    """Convolution, pooling of both kinds, batch norm, two convolutional blocks."""
    elements = [
        Conv2d(2, 3),
        MaxPool(),
        BatchNorm(3),
        ConvolutionalHopfieldBlock((4, 4, 3), [4], [True], clamped=False, sweeps=EXACT, variance=0.02),
        Conv2d(4, 3, bias=True),
        SoftPool(),
        Activation("tanh"),
        ConvolutionalHopfieldBlock((1, 1, 3), [], [], [4], sweeps=EXACT),
        Readout(4, 3),
    ]
    return Chain(elements, dtype=np.float64, seed=1, **options)


def circuits(**options: Any) -> Chain:
    """Voltage and current inputs, diodes between free nodes that conduct for some samples only."""
    blocks = [circuit_block(loads(text)) for text in (VOLTAGES, CURRENTS)]
    elements = [Linear(4, 2, spread=3.0), blocks[0], Linear(3, 3, spread=3.0), blocks[1], Readout(2, 3)]
    return Chain(elements, dtype=np.float64, seed=10, **options)


def batch_for(chain: Chain, samples: int = 5) -> Batch:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(samples, 4)) if isinstance(chain.elements[0], Linear) else rng.normal(size=(samples, 8, 8, 2))
    return x, rng.integers(3, size=samples)


def mean_loss(chain: Chain, batch: Batch) -> float:
    output, _ = forward(chain.elements, batch[0], True)
    return float(chain.loss.value(output, batch[1]).mean())


def checked_against_differences(chain: Chain, batch: Batch) -> None:
    gradients, metrics = chain.gradient(batch, RNG)
    assert metrics["uncertified_fraction"] == 0 and set(gradients) == set(chain.parameters)
    for name, step, slope in slopes(chain, batch[0], lambda: mean_loss(chain, batch)):
        if name in gradients:
            agree(gradients[name], step, slope, name)


@pytest.mark.parametrize("make", [mixed, images, circuits])
@pytest.mark.parametrize("method", ["ep", "implicit"])
def test_gradient_is_that_of_the_loss(make: Any, method: str) -> None:
    chain = make(rule=Chaining(method, beta=1e-4))
    assert isinstance(chain, Trainable)
    checked_against_differences(chain, batch_for(chain))
    if make is mixed and method == "ep":
        chain.rule = Chaining("ep", 1e-6, last="elastic")
        checked_against_differences(chain, batch_for(chain))


@pytest.mark.parametrize("loss", ["mse", "cross-entropy"])
@pytest.mark.parametrize("last", ["stationary", "elastic"])
@pytest.mark.parametrize("beta", [1e-4, 0.02, 0.7, -0.3])
def test_algorithm_2_is_algorithm_4_at_every_beta(loss: str, last: str, beta: float) -> None:
    """Sweeps are few: the identity needs no equilibrium."""
    chain = mixed(loss=loss)
    for element in chain.elements:
        if hasattr(element, "sweeps"):
            element.sweeps = Sweeps(6, 4)
    found = []
    for form in ("explicit", "implicit"):
        chain.rule = Chaining("ep", beta, form, last)
        found.append(chain.gradient(batch_for(chain), RNG)[0])
    for name, array in found[0].items():
        np.testing.assert_allclose(array, found[1][name], atol=1e-11, err_msg=name)
        assert np.abs(array).max() > 0, name


@pytest.mark.parametrize("method", ["ep", "bp", "implicit"])
def test_one_layer_a_block_is_backpropagation(method: str) -> None:
    """U = 0 (Nest & Ernoult 2024, Corollary A.5.1): a block is an activation."""
    widths = [4, 6, 5]
    blocks = [e for a, b in pairwise(widths) for e in (Linear(a, b), DeepHopfieldBlock([b]))]
    plain = [e for a, b in pairwise(widths) for e in (Linear(a, b), Activation("ernoult"))]
    chain = Chain([*blocks, Readout(5, 3)], dtype=np.float64, rule=Chaining(method, beta=1e-3))
    network = Chain([*plain, Readout(5, 3)], dtype=np.float64)
    batch = batch_for(chain)
    for other, array in zip(
        network.parameters.values(), (chain.parameters[n] for n in network.parameters), strict=True
    ):
        array[...] = other
    expected, _ = network.gradient(batch, RNG)
    found, _ = chain.gradient(batch, RNG)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=0, atol=1e-14 if method == "bp" else 1e-12, err_msg=name)


def test_scaling_of_errors_changes_nothing_but_rounding() -> None:
    chain = mixed()
    chain.rule = Chaining("ep", 1e-3)
    scaled, _ = chain.gradient(batch_for(chain), RNG)
    chain.rule = Chaining("ep", 1e-3, scale_errors=False)
    plain, _ = chain.gradient(batch_for(chain), RNG)
    for name, array in scaled.items():
        np.testing.assert_allclose(array, plain[name], atol=1e-8, err_msg=name)


def test_running_statistics_move_once_for_each_batch() -> None:
    chain = mixed()
    norm = chain.elements[1]
    x, _ = batch = batch_for(chain)
    chain.gradient(batch, RNG)
    mean = chain.elements[0].forward(x)[0].mean(axis=0)
    np.testing.assert_allclose(norm.averages["mean"], 0.1 * mean)


def test_unconverged_nudged_states_are_counted_and_give_no_gradient() -> None:
    short = Sweeps(3000, 1, 1e-13)
    chain = Chain([Linear(4, 4), DeepHopfieldBlock([4, 3, 3], bias=0.5, sweeps=short), Readout(3, 3)], dtype=np.float64)
    gradients, metrics = chain.gradient(batch_for(chain), RNG)
    assert gradients is None
    assert metrics["uncertified_fraction"] == 1.0


@pytest.mark.parametrize(("loss", "least"), [("cross-entropy", 0.9), ("mse", 0.8)])
def test_a_chain_learns_and_predicts(loss: str, least: float) -> None:
    x = np.random.default_rng(0).normal(size=(300, 4))
    classes, values = (x[:, 0] * x[:, 1] > 0).astype(int), np.stack([x[:, 0], x[:, 1] ** 2], axis=1)
    target = classes if loss == "cross-entropy" else values
    chain = Chain([Linear(4, 16), DeepHopfieldBlock([16, 16], clamped=False), Readout(16, 2)], loss)
    assert chain.fit(x, target, epochs=40, batch=20, rate=0.01).score(x, target) > least
    assert chain.predict(x).shape == target.shape and chain.history.rows[-1]["loss"] < chain.history.rows[0]["loss"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Chain([]), "at least one"),
        (lambda: Chain([Linear(2, 2), "relu"]), "element 1"),
        (lambda: Chaining("backprop"), "method"),
        (lambda: Chaining(beta=0.0), "beta"),
        *((lambda beta=beta: Chaining(beta=beta), "finite number") for beta in ("auto", np.nan)),
        (
            lambda: Chain([Linear(4, 3)], rule=Chaining(last="elastic")).gradient(
                (np.ones((2, 4)), np.array([0, 1])), RNG
            ),
            "needs a block",
        ),
    ],
)
def test_what_makes_no_chain_is_refused(make: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


class Tensor:
    """What torch's tensors have that numpy's arrays have not."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def detach(self) -> "Tensor":
        return self

    def cpu(self) -> np.ndarray:
        return self.array


@pytest.mark.parametrize("library", ["tensors", "tables"])
def test_tensors_and_tables_are_arrays(library: str) -> None:
    """In fit, predict and score."""
    table = column = Tensor
    if library == "tables":
        pandas = pytest.importorskip("pandas")
        table, column = pandas.DataFrame, pandas.Series
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(30, 4)).astype(np.float32), rng.integers(2, size=30)
    ours, theirs = (
        Chain([Linear(4, 5), DeepHopfieldBlock([5, 4], clamped=False), Readout(4, 2)], seed=1).fit(*data, 2)
        for data in ((x, y), (table(x), column(y)))
    )
    np.testing.assert_array_equal(ours.predict(x), theirs.predict(table(x)))
    assert ours.score(x, y) == theirs.score(table(x), column(y))
    np.testing.assert_array_equal(ours.output(x), ours.output(x.tolist()).astype(np.float32))
    with pytest.raises(UsageError, match=r"chain\.convert\(to_numpy\) before it"):
        ours.convert(Tensor).fit(x, y, 1)


def test_a_fit_without_a_step_is_an_error() -> None:
    """The elastic nudge takes all curvature away at each sample: nothing can be learned from it."""
    rng = np.random.default_rng(0)
    x, y = rng.random((60, 8)).astype(np.float32), rng.integers(0, 3, 60)
    chaining = Chaining(beta=0.5, last="elastic", scale_errors=False)
    block = DeepHopfieldBlock([8, 8], activation="ernoult", clamped=False)
    chain = Chain([Linear(8, 8), block, Readout(8, 3)], seed=1, rule=chaining)
    chain.parameters["2.weights"][...] *= 9.0
    before = {name: array.copy() for name, array in chain.parameters.items()}
    with pytest.raises(ConvergenceError, match="nothing was learned: all 8 steps were skipped"):
        chain.fit(x, y, epochs=2, batch=16)
    assert all((before[name] == array).all() for name, array in chain.parameters.items())
    assert chain.history.rows[-1]["uncertified_fraction"] == 1.0


@pytest.mark.parametrize(
    "wrong", [(np.full((4, 3), np.nan), np.zeros(4, int)), (np.ones((4, 3)), np.array(list("abab")))]
)
def test_what_is_no_number_is_refused_before_training(wrong: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(UsageError, match="must be finite numbers; labels are 0, 1"):
        Chain([Readout(3, 2)], dtype=np.float64).fit(*wrong, epochs=1, batch=2)


def nudged_by_loss(spread: float, loss: str, rows: slice = slice(None), **rule: object) -> tuple[np.ndarray, float]:
    """Gradient, zero if there is none, and the share of samples without a certificate."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(16, 10)), rng.integers(4, size=16)
    block = DeepHopfieldBlock([12, 8], clamped=False, sweeps=Sweeps(300, 40))
    given = {"method": "ep", "last": "elastic", "scale_errors": False, **rule}
    elements = [Linear(10, 12), block, Readout(8, 4, spread=spread)]
    chain = Chain(elements, loss, Chaining(**given), seed=1, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        found, metrics = chain.gradient((x[rows], y[rows]), rng)
    flat = np.zeros(1) if found is None else np.concatenate([g.ravel() for g in found.values()])
    return flat, metrics["uncertified_fraction"]


@pytest.mark.parametrize("loss", ["cross-entropy", "mse"])
def test_an_elastic_nudge_is_right_or_counted(loss: str) -> None:
    """What counts as certified has the adjoint's gradient; the others leave the gradient to the rest of the batch."""
    shares = []
    for spread in (0.5, 2.0, 5.0, 10.0, 20.0, 60.0):
        exact, _ = nudged_by_loss(spread, loss, method="implicit", last="stationary")
        for beta in (0.02, 0.1, 0.2):
            found, share = nudged_by_loss(spread, loss, beta=beta)
            if share == 0.0:
                error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
                assert error < (0.06 if beta == 0.02 else 0.5), (spread, beta)
            elif share < 1.0:
                alone = [nudged_by_loss(spread, loss, slice(k, k + 1), beta=beta) for k in range(16)]
                assert sum(each for _, each in alone) / 16 == pytest.approx(share)
                np.testing.assert_allclose(found, sum(gradient for gradient, _ in alone) / 16, atol=1e-10)
            shares.append(share)
    assert shares.count(0.0) >= 4 and sum(share > 0.0 for share in shares) >= 4


def test_what_diverges_is_computed_only_when_asked_and_never_certified() -> None:
    assert nudged_by_loss(10.0, "mse", beta=0.2)[1] == 1.0
    exact, _ = nudged_by_loss(10.0, "mse", method="implicit", last="stationary")
    found, share = nudged_by_loss(10.0, "mse", beta=0.2, allow_nonconvex=True)
    assert share == 1.0 and not np.linalg.norm(found - exact) < np.linalg.norm(exact)
    with pytest.raises(ConvergenceError, match="smaller beta"):  # not a gradient of zero, with which a run would go on
        nudged_by_loss(1e6, "mse", beta=0.5, allow_nonconvex=True)
    assert nudged_by_loss(2.0, "cross-entropy", beta=0.02, scale_errors=True)[1] == 0.0
