"""Runs decks in ngspice and measures how far its node voltages are from ours.

``python tests/ngspice/ngspice_runs.py`` prints a table of the differences and their bounds.
"""

import math
import re
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from spice import PROGRAM

import circuitsim
from circuitsim.circuit.amplifiers import section_gains

ROOT = Path(__file__).parents[2]
NETLISTS = ROOT / "netlists"
THERMAL = 0.025865  # kT/q at 27 °C, V


class Model(NamedTuple):
    """A junction diode: saturation current in A, emission coefficient."""

    saturation: float
    emission: float

    def text(self) -> str:
        return f"D(is={self.saturation:g} n={self.emission:g})"

    def drop(self, current: float) -> float:
        """Forward voltage at a current, V."""
        return self.emission * THERMAL * math.log1p(current / self.saturation)


NEAR_IDEAL = Model(1e-18, 0.003)  # what the decks are run with; circuitsim's export brings a model of its own
# Without these ngspice puts 1e-12 S across every diode, and stops at a thousandth of a node's voltage.
OPTIONS = ".options gmin=1e-21 reltol=1e-6 abstol=1e-18 vntol=1e-9"
# The ungrounded deck needs ngspice's own 1e-12 S to ground.
DEFAULT_OPTIONS = {"floating-reference"}
# Equal sources in parallel are a singular matrix to ngspice.
SINGULAR = {"parallel-sources"}
# ngspice has no op-amps of these names: only the export runs there.
OP_AMPS = {
    "amplifier-instrumentation",
    "amplifier-logarithm",
    "negative-resistance",
    "rectifier-precision",
    "schmitt-trigger",
}
# The drop of a clamp's diode, times the gain of 1e5 before it, stands at an inner node.
CLAMPED = {"schmitt-trigger"}
CONTROL = ".control\nset numdgt=15\nop\nprint all\nquit\n.endc\n.end\n"


def run(text: str, includes: dict[str, str], timeout: float = 60.0) -> tuple[dict[str, float], str]:
    """Node voltages that ``ngspice -b`` prints for a deck, by name in lower case, and everything it said."""
    assert PROGRAM is not None
    with tempfile.TemporaryDirectory() as folder:
        for name, content in {**includes, "deck.cir": text}.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(content, encoding="utf-8")
        done = subprocess.run(
            [PROGRAM, "-b", "deck.cir"], cwd=folder, capture_output=True, text=True, timeout=timeout, check=False
        )
    found = re.findall(r"^(?:v\((\S+)\)|(\S+)) = (\S+)$", done.stdout, re.MULTILINE)
    return {(a or b).lower(): float(value) for a, b, value in found}, done.stdout + done.stderr


def original(name: str) -> tuple[str, dict[str, str], Model]:
    """The deck as committed, with the near-ideal model for its diodes; what it includes; the model."""
    near_ideal = NEAR_IDEAL.text()

    def ready(text: str) -> str:
        requests = (".op", ".dc", ".step", ".print")
        lines = text.lower().splitlines()
        kept = [line for line in lines if not line.startswith(requests) and line != ".end"]
        text = "\n".join(re.sub(r"(?i)^(d\S*\s+\S+\s+\S+)$", r"\1 ideal", line) for line in kept)
        return re.sub(r"(?im)^\.model (ideal|circuitsim_ideal) D\b.*$", rf".model \1 {near_ideal}", text) + "\n"

    text = ready((NETLISTS / f"{name}.cir").read_text(encoding="utf-8"))
    if not re.search(r"(?im)^\.model ideal", text):
        text += f".model ideal {near_ideal}\n"
    includes = {f"parts/{path.name}": ready(path.read_text(encoding="utf-8")) for path in NETLISTS.glob("parts/*")}
    return text + options(name) + CONTROL, includes, NEAR_IDEAL


def flattened(name: str) -> tuple[str, dict[str, str], Model]:
    """What ``circuitsim convert`` writes, with nothing changed but the request for fifteen digits; its own model."""
    text = circuitsim.dumps(circuitsim.load(NETLISTS / f"{name}.cir").circuit)
    found = re.search(r"^\.model \S+ D\(is=(\S+) n=(\S+)\)$", text, re.MULTILINE)
    model = Model(float(found[1]), float(found[2])) if found else NEAR_IDEAL
    assert text.endswith("\n.end\n")
    return text.removesuffix(".end\n").removesuffix(".op\n") + options(name) + CONTROL, {}, model


def options(name: str) -> str:
    return "" if name in DEFAULT_OPTIONS else OPTIONS + "\n"


class Comparison(NamedTuple):
    """Nodes compared, the largest difference (V) and what the diode model accounts for (V)."""

    nodes: int
    error: float
    bound: float


def compare(name: str, source: tuple[str, dict[str, str], Model]) -> Comparison:
    """ngspice against circuitsim on one deck.

    A real diode that conducts is an ideal one in series with a source of its forward drop; one that blocks has a source
    of its saturation current across it. In a network of resistors and ideal diodes no node moves by more than a source
    in series does (there is no gain), nor by more than a source's current times the resistances in its way. So the
    bound is: diodes that are tight in the ideal solution, times the drop at the largest current, plus the others, times
    the saturation current and the sum of all resistances, plus the tolerances that ngspice was given.
    """
    text, includes, model = source
    circuit = circuitsim.load(NETLISTS / f"{name}.cir")
    op = circuitsim.solve(circuit)
    theirs, log = run(text, includes)
    floating = {node for w in op.warnings if w.kind == "floating" for node in w.names}
    shift = theirs[min(floating)] - op[min(floating)] if floating and theirs else 0.0
    ours = {node: op[node] for node in circuit.node_names[1:] if node not in op.intervals}
    missing = [node for node in ours if node.lower() not in theirs]
    if missing:
        raise RuntimeError(f"ngspice gave no voltage for {missing}:\n{log[-2000:]}")
    error = max(abs(theirs[node.lower()] - shift - v) for node, v in ours.items())
    drop = model.drop(2 * max(abs(i) for i in op.currents.tolist()) + 1e-12)
    reverse = [op.voltage(e.second, e.first) for e in circuit if e.kind == "ideal diode"]
    tight = sum(v <= len(reverse) * drop for v in reverse)
    ohms = sum(e.value or 0.0 for e in circuit if e.kind == "resistor")
    leak = (len(reverse) - tight) * model.saturation * ohms
    largest = max(abs(v) for v in ours.values())
    # A drop in one section is felt in another multiplied by the gain between them.
    gains = section_gains(circuit)
    gain = max(gains) / min(gains)
    return Comparison(len(ours), error, gain * (tight * drop + leak) + 1e-6 * largest + 1e-9)


def decks() -> list[str]:
    """The bundled decks by name."""
    return sorted(path.stem for path in NETLISTS.glob("*.cir"))


def table() -> str:
    """The comparison as a table in Markdown."""
    lines = ["| deck | nodes | export: difference | its bound | deck itself: difference | its bound |"]
    lines.append("|---|---|---|---|---|---|")
    for name in decks():
        if name in SINGULAR:
            lines.append(f"| {name} | | fails | | fails | |")
            continue
        if name in OP_AMPS:
            continue
        flat, own = compare(name, flattened(name)), compare(name, original(name))
        cells = [f"{volts(x)}" for x in (flat.error, flat.bound, own.error, own.bound)]
        lines.append(f"| {name} | {own.nodes} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def volts(x: float) -> str:
    """A voltage in millivolts, or as rounding."""
    return "rounding" if x < 1e-10 else f"{x * 1e3:.2g} mV"


if __name__ == "__main__":
    print(table())
