"""Energy-based blocks of every family at exact states, with inputs: what the tests of blocks and of rules share."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from circuitsim import Circuit, circuit_block, loads
from circuitsim.blocks.circuit import CircuitBlock
from circuitsim.ffebm import ConvolutionalHopfieldBlock, DeepHopfieldBlock, ResistiveBlock, Sweeps
from circuitsim.layered import Architecture, DeepResistiveNetwork
from circuitsim.models import Device
from circuitsim.models.junction_diode import JunctionDiode
from circuitsim.models.limiter import Limiter
from circuitsim.models.piecewise_diode import PiecewiseLinearDiode
from circuitsim.models.rounded_diode import RoundedDiode
from circuitsim.models.sinh_cell import SinhCell
from circuitsim.models.varistor import Varistor
from circuitsim.netlist.roles import Roles, make_roles

EXACT = Sweeps(5000, 5000, 1e-14)


class Case(NamedTuple):
    circuit: Circuit
    roles: Roles
    x: np.ndarray
    y: np.ndarray

    def block(self) -> CircuitBlock:
        return CircuitBlock(self.circuit, self.roles, 1e-10)


def random_case(seed: int, nodes: int = 9, diodes: int = 5, batch: int = 6, devices: bool = False) -> Case:
    """Two voltage inputs (one floating between two nodes), one current input, a trainable current source, two outputs.

    Every node leaks to ground, so that a steady state always exists. With ``devices`` two of each kind between free
    nodes learn all their parameters.
    """
    rng = np.random.default_rng(seed)
    circuit = Circuit(f"random circuit {seed}")
    names = [f"n{k}" for k in range(nodes)]
    circuit.voltage_source("V1", "in", "0", 1.0)
    circuit.voltage_source("V2", "float", "n0", 0.5)
    circuit.resistor("Rfloat", "float", "n1", 1.0)
    circuit.current_source("I1", "0", "n2", 0.1)
    circuit.current_source("Ib", "n3", "n4", 0.05)
    for k, name in enumerate(names):
        circuit.resistor(f"Rleak{k}", name, "0", float(np.exp(rng.uniform(0.5, 2.5))))
        circuit.resistor(f"Rin{k}", "in", name, float(np.exp(rng.uniform(-1, 1.5))))
    for k in range(2 * nodes):
        a, b = rng.choice(nodes, 2, replace=False)
        circuit.resistor(f"R{k}", names[a], names[b], float(np.exp(rng.uniform(-1, 1.5))))
    # From lower to higher numbers: no loops, so that currents are unique. The outputs can take any voltages.
    for k in range(diodes):
        a, b = sorted(rng.choice(nodes - 2, 2, replace=False))
        circuit.diode(f"D{k}", names[a], names[b])
    circuit.diode("Dout", names[-3], names[-2])
    lines = ["R* min=1m max=1k", "Ib min=-9 max=9"]
    x = rng.normal(size=(batch, 3)) * [2.0, 1.0, 0.5]
    y = rng.normal(size=(batch, 2)) * 0.3
    for k, (device, parameters) in enumerate(2 * device_of_each_kind(rng) if devices else []):
        a, b = rng.choice(nodes - 2, 2, replace=False)
        name = f"{device.model.letter}x{k}"
        circuit.device(name, names[a], names[b], device)
        lines += around(name, device, parameters)
    outputs = f"v({names[-1]}) v({names[-2]},{names[4]})"
    return Case(circuit, make_roles(circuit, "V1 V2 I1", outputs, lines), x * (2.0 if devices else 1.0), y)


def around(name: str, device: Device, parameters: str) -> list[str]:
    """Lines of roles that train these parameters within a tenth of their values."""
    values = {own: float(getattr(device, own)) for own in parameters.split()}
    return [
        f"{name}.{own} min={max(0.9 * value, float(own == 'alpha'))!r} max={1.1 * value!r}"
        for own, value in values.items()
    ]


def device_of_each_kind(rng: np.random.Generator) -> list[tuple[Device, str]]:
    """With the parameters to train, for voltages around a volt and currents of an ampere."""
    junction = {"is": 10.0 ** rng.uniform(-12, -5), "n": rng.uniform(1.0, 2.0), "rs": rng.uniform(0.05, 0.5)}
    linear = {"vfwd": rng.uniform(0.1, 0.4), "ron": rng.uniform(0.1, 1.0), "vrev": 0.8, "rrev": 0.7, "roff": 20.0}
    rounded = {"vfwd": 0.3, "ron": 0.3, "vrev": 0.5, "roff": 9.0, "epsilon": 0.3, "revepsilon": 0.4}
    return [
        (JunctionDiode(**junction), "is n rs"),
        (JunctionDiode(**junction, bv=rng.uniform(0.5, 1.5), ibv=1e-2, nbv=1.5), "is bv ibv nbv"),
        (PiecewiseLinearDiode(**linear), " ".join(linear)),
        (RoundedDiode(**rounded, ilimit=1.0, revilimit=0.5), " ".join([*rounded, "ilimit", "revilimit"])),
        (Varistor(vnom=rng.uniform(0.5, 1.5), inom=0.3, alpha=rng.uniform(1.5, 5.0), rs=0.1), "vnom inom alpha rs"),
        (SinhCell(g=rng.uniform(0.1, 1.0), v0=rng.uniform(0.2, 0.5), rs=0.2), "g v0 rs"),
        (Limiter(imax=rng.uniform(0.05, 0.3), irev=0.1, ron=0.5), "imax irev ron"),
    ]


LAYERS = """two layers, gains 3 and 2
*! input V1 V2 I1
*! output v(out) v(low)
*! trainable R* min=10 max=100k
*! trainable Ib min=-1 max=1
V1 a 0 1
V2 b 0 -1
Ra1 a l1 1k
Rb1 b l1 3k
Ra2 a l2 2k
Rb2 b l2 1.5k
X1 l1 h1 bidiramp gain=3
X2 l2 h2 bidiramp gain=3
D1 0 h1
D2 h2 0
Ib 0 h1 0.2m
I1 0 h2 0.1m
R1 h1 low 1k
R2 h2 low 2k
R3 h1 0 4k
Xo low out bidiramp gain=2
Ro out 0 5k
"""
AMPLIFIED = """piecewise-linear diodes before and behind a bidirectional amplifier
*! input V1
*! output v(out)
*! trainable R* min=10 max=1e6
*! trainable D*.vfwd min=0.1 max=2
*! trainable D*.ron min=1 max=1k
*! trainable I1 min=-10m max=10m
V1 in 0 0
R1 in a 1k
D1 a 0 low
X1 a b bidiramp gain=3
R2 b out 2k
R3 out 0 3k
I1 0 out 0.1m
D2 out k high
R4 k 0 1k
.model low D(Ron=10 Roff=1meg Vfwd=0.4)
.model high D(Ron=20 Roff=1meg Vfwd=0.7)
"""
BUFFERED = """an op-amp buffer, a Shockley, an ideal and a piecewise-linear diode, and a switch
*! input V1
*! output v(out)
*! trainable R* min=10 max=1e6
*! trainable D1.is min=1e-12 max=1e-6
*! trainable D3.ron D3.vfwd min=0.01 max=1k
V1 in 0 0
R1 in a 1k
D1 a 0 shockley
R2 a 0 5k
E1 b 0 OPAMP a b
R3 b c 2k
S1 c out on 0 closed ON
VON on 0 1
R4 out 0 3k
D2 out k
R5 k 0 1k
D3 c 0 knee
.model knee D(Ron=100 Roff=1meg Vfwd=0.1)
.model shockley D(IS=1n N=1.5)
.model closed SW(RON=10 ROFF=1G VT=0.5)
"""
ONE = np.array([[0.3], [0.8], [2.5], [-1.0]])
THREE = np.array([[1.0, -0.5, 1e-4], [0.6, 0.8, -2e-4], [-0.9, 0.3, 0.0]])


def offset(made: Any, low: float, high: float) -> Any:
    """Biases and conductances that matter, off kinks."""
    rng = np.random.default_rng(5)
    for name, array in made.parameters.items():
        if name.startswith("bias"):
            array[...] = rng.uniform(low, high, array.shape)
        elif name.startswith("conductances"):
            array += rng.uniform(0.05, 0.3, array.shape)
    return made


def hopfield(layers: list[int], **options: Any) -> DeepHopfieldBlock:
    return offset(DeepHopfieldBlock(layers, **{"rng": 3, "sweeps": EXACT, "spread": 0.8, **options}), 0.1, 0.5)


def resistive(layers: list[int], **options: Any) -> ResistiveBlock:
    return offset(ResistiveBlock(layers, **{"rng": 1, "sweeps": EXACT, **options}), -0.3, 0.3)


def convolutional(**options: Any) -> ConvolutionalHopfieldBlock:
    given = {"sweeps": EXACT, "variance": 0.02, "rng": 2, "dtype": np.float64, **options}
    return offset(ConvolutionalHopfieldBlock((4, 4, 2), [3, 2], [True, False], **given), 0.1, 0.5)


def deep(*hidden: int, gains: tuple[float, ...] = ()) -> DeepResistiveNetwork:
    of = Architecture((6, *hidden, 3), 2.0, gains)
    return offset(DeepResistiveNetwork(of, rng=1, sweeps=5000, tolerance=1e-14), -0.1, 0.1)


CIRCUITS: dict[str, Callable[[], tuple[CircuitBlock, np.ndarray]]] = {
    **{
        f"circuit {seed}{' with devices' * devices}": lambda seed=seed, devices=devices: (
            (case := random_case(seed, devices=devices)).block(),
            case.x,
        )
        for seed, devices in ((3, False), (4, False), (11, False), (2, True), (10, True), (13, True))
    },
    "amplified layers": lambda: (circuit_block(loads(LAYERS), tolerance=1e-11), THREE),
    "amplified devices": lambda: (circuit_block(loads(AMPLIFIED), tolerance=1e-11), ONE),
}
SWEPT: dict[str, Callable[[], Any]] = {
    "hopfield": lambda: hopfield([5, 4, 3]),
    "hopfield with free input": lambda: hopfield([5, 4, 3, 2], clamped=False),
    "hopfield, laborieux": lambda: hopfield([4, 6, 5], activation="laborieux"),
    "hopfield of weighted inputs": lambda: hopfield([6, 5, 3], activation="laborieux", clamped=False, inputs=7),
    "hopfield of one layer": lambda: hopfield([4], clamped=False),
    "resistive": lambda: resistive([4, 2], inputs=3),
    "resistive with gain and leak": lambda: resistive([6, 4, 3], inputs=2, gain=4.0, leak=0.1),
    "resistive, fed by currents": lambda: resistive([6, 4, 2]),
    "resistive of one layer": lambda: resistive([2], inputs=3),
    "deep resistive network": lambda: deep(12, 10),
    "amplified network": lambda: deep(9, 10, 8, gains=(2.0, 0.5, 1.5, 2.0)),
    "convolutional": lambda: convolutional(dense=[3]),
    "convolutional with free input": lambda: convolutional(clamped=False),
    "convolutional, laborieux": lambda: convolutional(activation="laborieux", dense=[4, 3]),
}


def made(name: str) -> tuple[Any, np.ndarray]:
    """A block by its name, and inputs."""
    if name in CIRCUITS:
        return CIRCUITS[name]()
    block = SWEPT[name]()
    return block, np.random.default_rng(7).uniform(-0.3, 0.9, (4, block.n_inputs))


WEIGHT = np.array([0.3, 1.0, 0.7, 0.0, 0.4, 0.9])


def slopes(block: Any, x: np.ndarray, value: Callable[[], float]) -> Iterator[tuple[str, np.ndarray, float]]:
    """For each parameter and the inputs two steps, and how ``value`` changes along them, by central differences."""
    rng = np.random.default_rng(8)
    for name, array in [*block.parameters.items(), ("x", x)]:
        kept = array.copy()
        for _ in range(2):
            step = rng.choice([-1.0, 1.0], kept.shape) * (np.abs(kept) + 0.01 * np.abs(kept).max())
            ends = []
            for sign in (1e-5, -1e-5):
                array[...] = kept + sign * step
                ends.append(value())
            array[...] = kept
            yield name, step, (ends[0] - ends[1]) / 2e-5


def agree(found: np.ndarray, step: np.ndarray, slope: float, name: str) -> None:
    assert (found * step).sum() == pytest.approx(slope, abs=2e-6 * np.abs(found * step).sum() + 5e-10), name
