"""Networks that can learn, as circuits: what a person would otherwise have to draw."""

from __future__ import annotations

import numpy as np

from circuitsim.circuit import Circuit
from circuitsim.errors import TopologyError
from circuitsim.netlist.roles import Roles, make_roles


def rectifier_network(
    inputs: int,
    hidden: int,
    outputs: int,
    rng: np.random.Generator,
    title: str = "rectifier network",
    resistance: float = 1.0,
    span: float = 1e3,
) -> tuple[Circuit, Roles]:
    """Inputs and their negatives → rectified hidden nodes → outputs: resistors between neighbours, one diode a unit.

    Every hidden unit is two nodes, a and b, and a diode between them: in the first half of the units from a to b, so
    that b follows a upwards only, in the second half from b to a. Both are free, so a conducting diode merges two
    unknown potentials. Sources of +1 V and −1 V give every unit and output a bias.

    Parameters
    ----------
    inputs : int
        Features; each has two sources, ``Vp{j}`` for its value and ``Vn{j}`` for its negative, V.
    hidden : int
        Hidden units; with none the resistors go from the inputs to the outputs.
    outputs : int
        Nodes ``o0``, ``o1`` …
    rng : numpy.random.Generator
        For the first resistances.
    title : str
    resistance : float
        Geometric mean of the first resistances, Ω.
    span : float
        Bounds: so many times more or less than ``resistance``.

    Returns
    -------
    circuit : Circuit
    roles : Roles
        The inputs are ``Vp0 … Vp{n-1} Vn0 … Vn{n-1}``: `doubled` gives their values.

    Raises
    ------
    TopologyError
        No inputs, no outputs, or a negative number of hidden units.
    """
    if inputs < 1 or hidden < 0 or outputs < 1:
        raise TopologyError(f"a network of {inputs} inputs, {hidden} hidden units and {outputs} outputs cannot be made")
    circuit = Circuit(title)
    rails = [f"p{j}" for j in range(inputs)] + [f"n{j}" for j in range(inputs)]
    for name in rails:
        circuit.voltage_source(f"V{name}", name, "0", 0.0)
    for name, volts in (("high", 1.0), ("low", -1.0)):
        circuit.voltage_source(f"V{name}", name, "0", volts)
    rails += ["high", "low"]

    def ohms() -> float:
        return float(f"{resistance * np.exp(rng.uniform(-1.0, 1.0)):.4g}")

    layer = rails
    for k in range(hidden):
        for j, rail in enumerate(rails):
            circuit.resistor(f"Ra{k}_{j}", rail, f"a{k}", ohms())
        ends = (f"a{k}", f"b{k}") if k < (hidden + 1) // 2 else (f"b{k}", f"a{k}")
        circuit.diode(f"D{k}", *ends)
        circuit.resistor(f"Rb{k}", f"b{k}", "0", ohms())
    if hidden:
        layer = [f"b{k}" for k in range(hidden)] + ["high", "low"]
    for m in range(outputs):
        for j, name in enumerate(layer):
            circuit.resistor(f"Ro{m}_{j}", name, f"o{m}", ohms())
    names = " ".join(f"V{name}" for name in rails[:-2])
    bounds = f"min={resistance / span:g} max={resistance * span:g}"
    roles = make_roles(circuit, names, " ".join(f"v(o{m})" for m in range(outputs)), f"R* {bounds}")
    return circuit, roles


def doubled(x: np.ndarray, gain: float = 1.0) -> np.ndarray:
    """Features (samples, n) as values of the input sources (samples, 2 n): ``[+gain x, −gain x]`` (Scellier 2024)."""
    return np.concatenate([gain * x, -gain * x], axis=1)
