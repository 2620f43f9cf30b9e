"""ngspice ``.op`` with near-ideal diodes: as a process, and repeated inside one to take its start-up out."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from circuitsim.bench.competitors import NoAnswer
from circuitsim.circuit import Circuit
from circuitsim.circuit.elements import ELEMENTS
from circuitsim.netlist import dumps

MODEL = ".model near_ideal D(is=1e-18 n=0.003)"
OPTIONS = ".options gmin=1e-21 reltol=1e-6 abstol=1e-18 vntol=1e-9"
TIGHT = ".options gmin=1e-30 reltol=1e-10 abstol=1e-18 vntol=1e-14"
"""For circuits with models of their own: no conductance beside junctions, an error as small as ours."""
# Tried where Newton's method does not converge with so sharp a diode; every softening costs accuracy.
SOFTER = (("1e-18", "0.003"), ("1e-16", "0.03"), ("1e-15", "0.1"), ("1e-14", "1"))


class Adapter:
    """A deck and a process. There is no tolerance that makes a junction ideal, so only one is tried."""

    tolerances: tuple[float | None, ...] = (None,)
    approximate = True

    def build(self, circuit: Circuit, tolerance: float | None) -> None:
        """Write the deck's cards."""
        self._circuit, self._arrays = circuit, circuit.arrays()
        self._own_models = bool(circuit.devices or circuit.laws)
        self._value = self._arrays.value
        self._softness = 0

    def update(self, value: np.ndarray) -> None:
        """New source values mean a new deck."""
        self._value = value

    def solve(self) -> np.ndarray:
        """Voltages of a whole run, reading and writing included; the sharpest diode that converges is kept."""
        while True:
            try:
                return self._run(1)[0]
            except NoAnswer:
                if self._softness + 1 == len(SOFTER):
                    raise
                self._softness += 1

    @property
    def note(self) -> str:
        """Which diode was needed."""
        return "is={} n={}".format(*SOFTER[self._softness])

    def inside(self, repeats: int) -> float:
        """Seconds of one ``op`` inside a running ngspice: what ``repeats`` more of them take, each."""
        once, more = min(self._run(1)[1] for _ in range(2)), min(self._run(1 + repeats)[1] for _ in range(2))
        return (more - once) / repeats

    def _run(self, times: int) -> tuple[np.ndarray, float]:
        program = shutil.which("ngspice")
        if program is None:
            raise NoAnswer("the program ngspice is not installed")
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "deck.cir").write_text(self._deck(times), encoding="ascii")
            began = time.perf_counter()
            done = subprocess.run(
                [program, "-b", "deck.cir"], cwd=folder, capture_output=True, text=True, check=False, errors="replace"
            )
            seconds = time.perf_counter() - began
            out = Path(folder, "out.raw")
            if not out.exists():
                said = (done.stderr + done.stdout).strip().splitlines()
                raise NoAnswer(next((line for line in said if "rror" in line or "onverge" in line), "no output")[:200])
            return self._voltages(out.read_bytes()), seconds

    def _deck(self, times: int) -> str:
        # `rusage` would tell only whole seconds on some systems; two runs of different length are compared instead.
        control = [".control", "set filetype=binary", *["op"] * times, "write out.raw", "quit", ".endc", ".end", ""]
        if self._own_models:
            text = dumps(self._circuit.with_column(self._value)).removesuffix(".op\n.end\n")
            return "\n".join([text, TIGHT, *control])
        kind, first, second, _, _ = self._arrays
        saturation, emission = SOFTER[self._softness]
        model = MODEL.replace("1e-18", saturation).replace("0.003", emission)
        letters = [row.letter for row in ELEMENTS]
        columns = zip(kind.tolist(), first.tolist(), second.tolist(), self._value.tolist())
        cards = [
            f"{letters[k]}{i} {a} {b} {'near_ideal' if letters[k] == 'D' else repr(v)}"
            for i, (k, a, b, v) in enumerate(columns)
        ]
        return "\n".join(["benchmark", *cards, model, OPTIONS, *control])

    def _voltages(self, raw: bytes) -> np.ndarray:
        """Node voltages of a binary rawfile with one point."""
        head, _, body = raw.partition(b"Binary:\n")
        listed = head.decode("ascii", "replace").partition("\nVariables:")[2].splitlines()[1:]
        names = [line.split()[1] for line in listed if line.strip()]
        data = np.frombuffer(body, dtype=float, count=len(names))
        voltages = np.zeros(self._arrays.n_nodes)
        if self._own_models:
            number = {name.lower(): k for k, name in enumerate(self._circuit.node_names)}
            for name, value in zip(names, data.tolist()):
                voltages[number.get(name.removeprefix("v(").removesuffix(")"), 0)] = value
            voltages[0] = 0.0
            return voltages
        for name, value in zip(names, data.tolist()):
            if name.startswith("v(") or name.isdigit():
                voltages[int(name.strip("v()"))] = value
        return voltages
