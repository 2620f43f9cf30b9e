"""Times of one installed circuitsim, for `headline.py`: a line of JSON in, a line of JSON out.

    PYTHON benchmarks/headline_worker.py

``{"set": TASK, "with": {…}}`` prepares a task, ``{"go": BUDGET}`` measures it once: medians of calls within so many
seconds. Times are processor seconds, but where threads work together. Only public names are used; `NAMES` says where
versions have them.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import circuits
import numpy as np

ROOT = Path(__file__).parents[1]

NAMES = {
    "loads": ("circuitsim.loads",),
    "load": ("circuitsim.read_deck", "circuitsim.load"),
    "prepared": ("circuitsim.prepared",),
    "batched": ("circuitsim.batched",),
    "ir_drop": ("circuitsim.ir_drop",),
    "montecarlo": ("circuitsim.montecarlo",),
    "CrossbarLayer": ("circuitsim.CrossbarLayer",),
    "transient": ("circuitsim.transient",),
    "Sine": ("circuitsim.time_domain.Sine",),
    "Pulse": ("circuitsim.time_domain.Pulse",),
    "published_models": ("circuitsim.layered.published_models",),
    "DeepResistiveNetwork": ("circuitsim.layered.DeepResistiveNetwork",),
    "LayeredLearner": ("circuitsim.layered.LayeredLearner",),
    "ContrastiveDivergenceRBM": ("circuitsim.boltzmann.ContrastiveDivergenceRBM",),
    "ConvolutionalHopfieldBlock": ("circuitsim.ffebm.ConvolutionalHopfieldBlock",),
    "Sweeps": ("circuitsim.ffebm.Sweeps",),
    "main": ("circuitsim.cli.main",),
}
"""Public name → where it is, the newest version's place first: the one adapter for other versions."""

Action = Callable[[float], dict[str, float]]


def public(name: str) -> Any:
    """A public object, wherever this version has it."""
    for place in NAMES[name]:
        module, _, attribute = place.rpartition(".")
        with contextlib.suppress(ImportError, AttributeError):
            return getattr(import_module(module), attribute)
    raise ImportError(f"this version has none of {', '.join(NAMES[name])}")


def median(
    call: Callable[[], object], budget: float, clock: Callable[[], float] = time.process_time, least: int = 1
) -> float:
    """Median time of calls, at least so many, for a budget of seconds; short ones are timed several at once."""
    began = clock()
    call()
    first = clock() - began
    count, found = 1 + int(3e-4 / max(first, 1e-6)), [first]
    while len(found) < least or (sum(found) * count < budget and len(found) < 200):
        began = clock()
        for _ in range(count):
            call()
        found.append((clock() - began) / count)
    return statistics.median(found[1:] or found)


def timed(call: Callable[[], object], clock: Callable[[], float] = time.process_time, factor: float = 1.0) -> Action:
    """Medians of calls times a factor, after calls of a second in all, by which kernels are loaded."""
    began = time.process_time()
    while time.process_time() - began < 1.0:
        call()
    return lambda budget: {"seconds": factor * median(call, budget, clock)}


def children(words: list[str], cache: str | None = None) -> float:
    """Processor seconds of a process of this installation; its kernels are stored in ``cache``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | ({} if cache is None else {"NUMBA_CACHE_DIR": cache})
    done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()[-300:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def certified(point: Any) -> Any:
    """A point, read as a user reads it; an error without a certificate."""
    if not point.certificate.certified:
        raise ArithmeticError("no certificate")
    point.voltages, point.currents  # noqa: B018
    return point


def circuit_of(text: str) -> Any:
    """The circuit of a netlist."""
    return public("loads")(text)


def cold(side: int) -> Action:
    """From a circuit in memory to a certified operating point."""
    circuit, prepared = circuit_of(circuits.mesh(side)), public("prepared")
    certified(prepared(circuit).solve())
    return timed(lambda: certified(prepared(circuit).solve()))


def new_values(circuit: str, size: int) -> Action:
    """Other source values on what is prepared."""
    made = circuit_of(getattr(circuits, circuit)(size))
    ready, own = public("prepared")(made), np.array(made.arrays().value, dtype=float)
    sources = np.flatnonzero([name[0] in "VI" for name in made.names])
    certified(ready.solve())
    rng = np.random.default_rng(1)

    def call() -> None:
        value = own.copy()
        value[sources] *= rng.uniform(0.9, 1.1, sources.size)
        certified(ready.solve(value))

    return timed(call)


def turned_values(size: int) -> Action:
    """Op-amp stages, the sign of whose source changes each time: all diodes change their state."""
    ready, turn = public("prepared")(circuit_of(circuits.stages(size))), iter(range(10**9))
    ready.solve()
    values = 1.5, -2.5, 3.5, -0.5
    return timed(lambda: certified(ready.solve({"V0": values[next(turn) % 4]})))


def drn(preset: str, threads: int = 2) -> Action:
    """Seconds of an epoch of 60,000 images, from some hundred steps of four; wall clock."""
    model = public("published_models")()[preset]
    rng = np.random.default_rng(0)
    images = np.where(rng.random((4000, 784)) < 0.81, 0, rng.integers(1, 256, (4000, 784))).astype(np.uint8)
    data = images, rng.integers(0, 10, 4000)
    kind = public("LayeredLearner")
    try:
        given = None, rng, model.sweeps, 0.0, np.float32
        network = public("DeepResistiveNetwork")(model.architecture, *given)
        learner = kind(network, 4, "ep", model.beta, threads=threads)
    except (AttributeError, TypeError):  # an older version's, which makes the network itself
        learner = kind(model.architecture, model.learning, 4, rng, threads=threads)
    learner.warm_up(*data)
    steps, rates = {"drn-xs": 400, "drn-1h": 100}.get(preset, 8), model.rates()

    def call() -> None:
        learner.steps(data, rng.permutation(4000)[: 4 * steps], 4, rates, rng)

    return timed(call, time.perf_counter, 15_000 / steps)


def rbm(batch: int, samples: int) -> Action:
    """An epoch of persistent CD-1 with 256 hidden units on images as sparse as MNIST's."""
    x = pictures(samples)
    rows = {"learning_rate_init": 0.05, "batch_size": batch, "max_iter": 1, "random_state": 0}
    kind = public("ContrastiveDivergenceRBM")
    kind(256, **rows).fit(x[:200])
    return timed(lambda: kind(256, **rows).fit(x))


def pictures(samples: int) -> np.ndarray:
    """Grey values between 0 and 1, four fifths of them 0, float32."""
    rng = np.random.default_rng(0)
    return np.where(rng.random((samples, 784)) < 0.8, 0.0, rng.random((samples, 784))).astype(np.float32)


POOLS = (True, True, True, False)


def convolution(batch: int, sweeps: int) -> Action:
    """The free phase of the block of the published 6-layer network."""
    block = public("ConvolutionalHopfieldBlock")(
        (16, 16, 128),
        [256, 256, 512, 512],
        list(POOLS),
        [256],
        sweeps=public("Sweeps")(sweeps, sweeps),
        variance=8.4e-4,
    )
    x = np.random.default_rng(2).normal(size=(batch, block.n_inputs)).astype(np.float32)
    block.relax(x)
    return timed(lambda: block.relax(x))


def layer(side: int, diodes: int) -> Action:
    """A circuit as a layer, by batches: construction, one sample there and back, a batch of 64; wall clock."""
    text, read = circuits.layer(side, diodes)
    circuit, batched = circuit_of(text), public("batched")
    inputs, outputs = [f"V{k}" for k in range(4)], [(node, "0") for node in read]
    made, rng = batched(circuit, inputs, outputs), np.random.default_rng(1)
    x, cotangent = rng.normal(size=(64, 4)), rng.normal(size=(64, len(read)))
    found = made.solve(x)
    one = made.solve(x[:1])
    made.adjoint(one, cotangent[:1])
    if not found.certified.all():
        raise ArithmeticError("no certificate")

    def construct() -> float:
        fresh = circuit_of(text)
        began = time.perf_counter()
        batched(fresh, inputs, outputs)
        return time.perf_counter() - began

    def go(budget: float) -> dict[str, float]:
        calls: dict[str, Callable[[], object]] = {
            "forward": lambda: made.solve(x[:1]),
            "backward": lambda: made.adjoint(one, cotangent[:1]),
            "batch": lambda: made.solve(x),
        }
        found = {name: median(call, budget, time.perf_counter) for name, call in calls.items()}
        return {"construct": statistics.median(construct() for _ in range(3)), **found}

    return go


def crossbar(side: int, inputs: int) -> Action:
    """Products with a crossbar as one batch, on one thread."""
    batch = public("batched")(circuit_of(circuits.crossbar(side)), [f"V{k}" for k in range(side)], [("1", "0")])
    x = np.random.default_rng(1).uniform(0.0, 0.2, (inputs, side))
    batch.solve(x, threads=1)
    return timed(lambda: batch.solve(x, threads=1))


def images(count: int) -> Action:
    """From conductances to the outputs of all images, 784-256-10, wires of 1 Ω; wall clock."""
    kind, x = public("CrossbarLayer"), 0.2 * pictures(count).astype(np.float64)
    kind(np.random.default_rng(9).uniform(1e-6, 1e-4, (64, 64)))(x[:8, :64])

    def call() -> None:
        shapes = (784, 256), (256, 10)
        first, second = (kind(np.random.default_rng(k).uniform(1e-6, 1e-5, s)) for k, s in enumerate(shapes))
        hidden = np.maximum(first(x), 0.0)
        second(hidden * (0.2 / hidden.max()))

    return timed(call, time.perf_counter)


def montecarlo(samples: int, of: int) -> Action:
    """So many samples of 100 nodes in this process, as seconds of ``of`` samples."""
    circuit, run = circuit_of(circuits.tolerances()), public("montecarlo")

    def call() -> None:
        run(circuit, ["R*=1%"], "v(100)", samples, ["1<v(100)<1.1"], workers=1)

    return timed(call, factor=of / samples)


def grid(deck: str) -> Action:
    """A power grid from its file to certified drops, once, with the peak of this process's memory; wall clock."""

    def go(_: float) -> dict[str, float]:
        began = time.perf_counter()
        circuit = public("load")(deck).circuit
        public("ir_drop")(certified(public("prepared")(circuit).solve()))
        seconds = time.perf_counter() - began
        return {"seconds": seconds, "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}

    return go


def buck(periods: int) -> Action:
    """A converter from states of zero, exact method."""
    circuit, transient = circuit_of(circuits.BUCK), public("transient")
    wave = {"V1": public("Pulse")(-1.0, 12.0, 0.0, 1e-9, 1e-9, 4e-6, 1e-5)}
    call = functools.partial(transient, circuit, periods * 1e-5, wave, {})
    return timed(call)


def rectified(name: str) -> Any:
    """Ten periods of a rectifier from states of zero, exact method."""
    text, phases, _ = circuits.RECTIFIERS[name]
    waves = {f"V{k}": public("Sine")(0.0, 10.0, 50.0, phase=-120.0 * k) for k in range(phases)}
    return public("transient")(circuit_of(text), 0.2, waves, {}, method="exact")


def rectifier(name: str) -> Action:
    """The run of `rectified`."""
    rectified(name)
    return timed(lambda: rectified(name))


def capacitors(stop: float) -> Action:
    """A mesh of 10,000 capacitors with 100 diodes, implicit method."""
    text, numbers = circuits.capacitors()
    circuit, transient, sine, pulse = circuit_of(text), public("transient"), public("Sine"), public("Pulse")
    waves = {name: sine(0.0, *given) if len(given) == 2 else pulse(*given) for name, given in numbers.items()}
    transient(circuit, 0.02 * stop, waves, points=3, method="implicit")
    call = functools.partial(transient, circuit, stop, waves, points=11, method="implicit")
    return timed(call)


def command(*words: str) -> Action:
    """A command of the program inside this process."""
    with tempfile.NamedTemporaryFile(suffix=".csv", delete=False) as file:
        given = [word.replace("ROOT", str(ROOT)) for word in words] + ["--output", file.name]
    main = public("main")

    def call() -> None:
        with contextlib.redirect_stdout(sys.stderr):
            if main(given):
                raise RuntimeError(f"circuitsim {' '.join(words)} failed")

    return timed(call)


def process(*words: str, repeats: int = 11) -> Action:
    """Whole processes of Python."""
    return lambda _: {"seconds": statistics.median(children(list(words)) for _ in range(repeats))}


def first_use(side: int = 0, *words: str) -> Action:
    """A command with an empty cache, then again: both, and the difference; ``side`` asks for the solution of a mesh."""

    def go(_: float) -> dict[str, float]:
        with tempfile.TemporaryDirectory() as folder:
            deck = Path(folder, "mesh.cir")
            if side:
                deck.write_text(circuits.mesh(side))
            given = list(words) or ["solve", str(deck), "--format", "json"]
            given = [
                "-m",
                "circuitsim",
                *(word.replace("ROOT", str(ROOT)) for word in given),
                "--output",
                f"{folder}/out",
            ]
            first, later = (children(given, f"{folder}/cache") for _ in range(2))
        return {"first": first, "later": later, "seconds": first - later}

    return go


def suite(tree: str, processes: int) -> Action:
    """All tests of a source tree with an empty cache; wall clock."""

    def go(_: float) -> dict[str, float]:
        with tempfile.TemporaryDirectory() as cache:
            words = [sys.executable, "-m", "pytest", "-q", "-n", str(processes)]
            began = time.perf_counter()
            done = subprocess.run(
                words,
                cwd=tree,
                env=os.environ | {"NUMBA_CACHE_DIR": cache},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise RuntimeError(f"the suite ended with {done.returncode}: {done.stdout.strip().splitlines()[-1:]}")
            return {"seconds": time.perf_counter() - began}

    return go


TASKS: dict[str, Callable[..., Action]] = {
    made.__name__: made
    for made in (
        cold,
        new_values,
        turned_values,
        drn,
        rbm,
        convolution,
        layer,
        crossbar,
        images,
        montecarlo,
        grid,
        buck,
        rectifier,
        capacitors,
        command,
        process,
        first_use,
        suite,
    )
}


def serve(tasks: dict[str, Callable[..., Action]]) -> None:
    """Answer requests until standard input ends; what a library prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    action: Action | None = None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if "set" in request:
                action = tasks[request["set"]](*request.get("words", ()), **request["with"])
                answer: dict[str, Any] = {}
            else:
                assert action is not None
                answer = action(request["go"])
        except Exception as error:  # whatever one version raises is that version's result
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    serve(TASKS)
