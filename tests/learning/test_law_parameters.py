"""Parameters of devices that learn: every rule against finite differences on random circuits of all devices."""

from __future__ import annotations

import math

import numpy as np
import pytest
from random_circuits import random_case

from circuitsim import batched, netlist
from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.circuit import Circuit
from circuitsim.cli import main
from circuitsim.errors import UsageError
from circuitsim.learning import (
    CoupledLearning,
    EquilibriumPropagation,
    FrequencyPropagation,
    GradientProblem,
    ImplicitDifferentiation,
    SquaredError,
)
from circuitsim.models import Device
from circuitsim.models.junction_diode import JunctionDiode
from circuitsim.models.limiter import Limiter
from circuitsim.models.piecewise_diode import PiecewiseLinearDiode
from circuitsim.models.rounded_diode import RoundedDiode
from circuitsim.models.sinh_cell import SinhCell
from circuitsim.models.smooth import SmoothDevice
from circuitsim.models.varistor import Varistor
from circuitsim.netlist.roles import make_roles, read_roles

LOSS = SquaredError()


def devices(rng: np.random.Generator) -> list[tuple[Device, str]]:
    """One device of each kind, with the parameters to train, for voltages around a volt and currents of an ampere."""
    junction = {"is": 10.0 ** rng.uniform(-12, -5), "n": rng.uniform(1.0, 2.0), "rs": rng.uniform(0.05, 0.5)}
    return [
        (JunctionDiode(**junction), "is n rs"),
        (JunctionDiode(**junction, bv=rng.uniform(0.5, 1.5), ibv=1e-2, nbv=1.5), "is bv ibv nbv"),
        (
            PiecewiseLinearDiode(vfwd=rng.uniform(0.1, 0.4), ron=rng.uniform(0.1, 1.0), vrev=0.8, rrev=0.7, roff=20.0),
            "vfwd ron vrev rrev roff",
        ),
        (
            RoundedDiode(
                vfwd=rng.uniform(0.1, 0.4),
                ron=0.3,
                vrev=0.5,
                roff=9.0,
                epsilon=0.3,
                revepsilon=0.4,
                ilimit=1.0,
                revilimit=0.5,
            ),
            "vfwd ron vrev roff epsilon revepsilon ilimit revilimit",
        ),
        (Varistor(vnom=rng.uniform(0.5, 1.5), inom=0.3, alpha=rng.uniform(1.5, 5.0), rs=0.1), "vnom inom alpha rs"),
        (SinhCell(g=rng.uniform(0.1, 1.0), v0=rng.uniform(0.2, 0.5), rs=0.2), "g v0 rs"),
        (Limiter(imax=rng.uniform(0.05, 0.3), irev=0.1, ron=0.5), "imax irev ron"),
    ]


def random_block(seed: int) -> tuple[CircuitBlock, np.ndarray, np.ndarray]:
    """The resistor graph of `random_case` with two devices of each kind between its free nodes."""
    case = random_case(seed, diodes=2)
    rng, circuit, lines = np.random.default_rng((seed, 1)), case.circuit, ["R* min=1m max=1k", "Ib min=-9 max=9"]
    for k in range(2):
        for number, (device, names) in enumerate(devices(rng)):
            a, b = rng.choice(7, 2, replace=False)
            name = f"{device.model.letter}x{k}{number}"
            circuit.device(name, f"n{a}", f"n{b}", device)
            for parameter in names.split():
                value = getattr(device, parameter)
                low = max(0.9 * value, 1.0) if parameter == "alpha" else 0.9 * value
                lines.append(f"{name}.{parameter} min={low!r} max={1.1 * value!r}")
    roles = make_roles(circuit, "V1 V2 I1", "v(n8) v(n7,n4)", lines)
    return CircuitBlock(circuit, roles, 1e-10), 2.0 * case.x, case.y


def problem_of(block: CircuitBlock, x: np.ndarray, y: np.ndarray) -> GradientProblem:
    free = block.relax(x)
    assert free.certified.all()
    return GradientProblem(block, x, y, LOSS, free, np.full(len(x), 1.0 / len(x)))


def slope_along(block: CircuitBlock, x: np.ndarray, y: np.ndarray, direction: np.ndarray, step: float = 3e-5) -> float:
    """Derivative of the mean loss of the free states along a direction of the coordinates, by central differences."""
    own, ends = block.parameters["law"].copy(), []
    for sign in (1.0, -1.0):
        block.parameters["law"][:] = own + sign * step * direction
        ends.append(float(LOSS.value(block.relax(x).output, y).mean()))
    block.parameters["law"][:] = own
    return (ends[0] - ends[1]) / (2.0 * step)


@pytest.mark.parametrize("seed", range(30))
def test_rules_are_the_gradient(seed: int) -> None:
    """All parameters of all devices at once, along two directions; each rule against implicit differentiation."""
    block, x, y = random_block(seed)
    problem = problem_of(block, x, y)
    exact = ImplicitDifferentiation().estimate(problem).parameters["law"]
    rng = np.random.default_rng((seed, 2))
    for _ in range(2):
        direction = rng.choice([-1.0, 1.0], exact.size)
        assert slope_along(block, x, y, direction) == pytest.approx(exact @ direction, abs=1e-6 * np.abs(exact).sum())
    size = np.abs(exact).max()
    for rule in (EquilibriumPropagation(1e-5), FrequencyPropagation(1e-5, 4)):
        found = rule.estimate(problem)
        assert found.certified.all() and np.abs(found.parameters["law"] - exact).max() <= 1e-6 * size
    wide, near = (EquilibriumPropagation(beta).estimate(problem) for beta in (1e-2, 1e-3))
    if not (wide.kinks.changes.any() or near.kinks.changes.any()):  # O(β²) while the same ideal diodes conduct
        off, less = (np.abs(found.parameters["law"] - exact).max() for found in (wide, near))
        assert less <= 0.03 * off + 1e-7 * size


@pytest.mark.parametrize("seed", range(4))
def test_coupled_learning_follows_its_own_direction(seed: int) -> None:
    """As the step vanishes: the gradient for the cotangent S (o − y), S the conductance matrix of the outputs."""
    block, x, y = random_block(seed)
    problem = problem_of(block, x, y)
    solver, solution = block._current(), problem.free.solution
    compliance = np.empty((len(x), 2, 2))
    for k in range(2):
        response, _ = solver.adjoint(solution, np.eye(2)[[k] * len(x)])
        for j, (p, q) in enumerate(solver.outputs):
            compliance[:, j, k] = response[:, q] - response[:, p]
    pull = np.linalg.solve(compliance, (problem.free.output - y)[:, :, None])[:, :, 0]
    wanted, _ = block.implicit(problem.free, x, pull, problem.weight)
    found = CoupledLearning(1e-5).estimate(problem)
    assert found.certified.all()
    assert np.abs(found.parameters["law"] - wanted["law"]).max() <= 1e-4 * np.abs(wanted["law"]).max()


def test_piecewise_linear_laws_are_exact_at_a_finite_nudge() -> None:
    circuit = netlist.loads(REGULATOR)
    block = CircuitBlock(circuit, make_roles(circuit, "V1", "v(out)", ["DZ1.vrev", "DZ1.rrev", "D1.vfwd", "D1.ron"]))
    x, y = np.array([[9.0], [12.0], [15.0]]), np.full((3, 1), 5.0)
    problem = problem_of(block, x, y)
    exact = ImplicitDifferentiation().estimate(problem).parameters["law"]
    found = EquilibriumPropagation(1e-2).estimate(problem)
    assert not found.kinks.changes.any() and np.abs(exact).min() > 0.0
    np.testing.assert_allclose(found.parameters["law"], exact, rtol=1e-9)


REGULATOR = """a regulator, a Zener and a diode of elementary elements
V1 in 0 12
R1 in a 470
D1 a out d
DZ1 0 out z
RL out 0 1k
.model d D(Vfwd=0.6 Ron=2)
.model z D(Vrev=5.1 Rrev=10)
"""


@pytest.mark.parametrize("number", range(6))
def test_contrasts_are_differences_of_co_contents(number: int) -> None:
    """Between voltages far apart, against difference quotients of the co-content's own formula or quadrature."""
    rng = np.random.default_rng(number)
    device, names = [row for row in devices(rng) if isinstance(row[0], SmoothDevice)][number % 5]
    circuit = Circuit("one device")
    circuit.voltage_source("V1", "a", "0", 1.0)
    circuit.resistor("R1", "a", "b", 0.5)
    circuit.device("D1", "b", "0", device)
    lines = [
        f"D1.{name} min={max(0.9 * value, float(name == 'alpha'))!r} max={1.1 * value!r}"
        for name in names.split()
        for value in [getattr(device, name)]
    ]
    block = CircuitBlock(circuit, make_roles(circuit, "V1", "v(b)", lines), 1e-10)
    x = np.array([[1.5], [-1.5]])
    plus, minus = block.relax(x), block.relax(np.zeros((2, 1)))
    found = block.parameter_difference(plus, minus, x, np.ones(2))["law"]
    for k, name in enumerate(sorted(names.split())):
        value, total = getattr(device, name), 0.0
        for sign in (1.0, -1.0):
            moved = device.with_value(name, value * math.exp(sign * 1e-4))
            total += sign * sum(moved.energy(v) for v in plus.output[:, 0].tolist()) / 2e-4
        assert found[k] == pytest.approx(total, rel=1e-5, abs=1e-9)


def test_training_a_deck_changes_its_devices(tmp_path, monkeypatch, capsys) -> None:
    """By the command line: two diodes of one model get laws of their own, and the trained deck reads back."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.cir").write_text(
        "two diodes\n*! input V1\n*! output v(b)\n*! trainable D*.is min=1e-12 max=1e-6\nV1 a 0 1\nR1 a b 1k\n"
        "D1 b 0 d\nD2 b c d\nR2 c 0 200\n.model d D(IS=1e-9 N=1.5)\n"
    )
    truth = netlist.loads((tmp_path / "net.cir").read_text()).with_values({"D1.is": 3e-11, "D2.is": 2e-7})
    volts = np.linspace(0.2, 3.0, 12)[:, None]
    wanted = batched(truth, ["V1"], [("b", "0")]).solve(volts).output
    lines = ["V1,v(b)", *(f"{v!r},{w!r}" for v, w in zip(volts[:, 0].tolist(), wanted[:, 0].tolist()))]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    command = ["train", "circuit", "net.cir", "--data", "data.csv", "--epochs", "150", "--lr-device", "0.1"]
    assert main([*command, "--schedule", "cosine", "--out", "run", "--no-pictures"]) == 0
    capsys.readouterr()
    trained = netlist.load(tmp_path / "run" / "trained.cir")
    assert trained.circuit.device_of("D1").values()["is"] == pytest.approx(3e-11, rel=0.05)
    assert trained.circuit.device_of("D2").values()["is"] == pytest.approx(2e-7, rel=0.05)
    assert {a.name for a in read_roles(trained)[0].trainable} == {"D1.is", "D2.is"}
    assert main(["train", "circuit", "net.cir", "--data", "data.csv", "--compare", "csv"]) == 0
    assert "D1.is,D2.is" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("D1.rs", "D1.rs is 0: state its bounds, min= and max="),
        ("D1.tnom", "D1.tnom cannot be trained: there is no rule for the tnom of a junction diode"),
        ("D1.is min=1 max=2", "D1.is has 1e-09 A, outside its bounds 1 … 2 A"),
        ("D2.ron min=0 max=5", "state bounds, min= and max=, that leave each resistance above zero"),
        ("D2.ron min=1 max=1k", "must not be above Roff .*; state narrower bounds"),
        ("D1.bv", "no element matches|D1.bv"),
        ("D1", "parameters of devices"),
    ],
)
def test_what_cannot_be_trained_is_refused_by_name(line: str, message: str) -> None:
    circuit = netlist.loads("t\nV1 a 0 1\nD1 a 0 d\nD2 a 0 p\n.model d D(IS=1n)\n.model p D(Ron=2 Roff=100)\n")
    with pytest.raises(UsageError, match=message):
        make_roles(circuit, trainable=[line])
