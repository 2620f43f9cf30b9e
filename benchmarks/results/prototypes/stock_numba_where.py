"""Where numba's own compiler spends its time on the package's kernels, and what splitting the largest one saves.

python benchmarks/results/prototypes/stock_numba_where.py warm-up    (every kernel, an empty cache; minutes)
python benchmarks/results/prototypes/stock_numba_where.py root       (`entered_decays` as it stands)
python benchmarks/results/prototypes/stock_numba_where.py leaves     (what it calls, each compiled by itself)
python benchmarks/results/prototypes/stock_numba_where.py nested     (`mode_kernels.resistors` as it stands)
python benchmarks/results/prototypes/stock_numba_where.py flat       (the same on arrays)
python benchmarks/results/prototypes/stock_numba_where.py pointer    (a call of a kernel by its address)
"""

from __future__ import annotations

import inspect
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

sys.modules["circuitsim._compile"] = None  # type: ignore[assignment]  # `circuitsim._jit` takes numba's pipeline
os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp()

import numpy as np  # noqa: E402
from numba import njit, types  # noqa: E402
from numba.core import event  # noqa: E402

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
LEAVES = {
    "mode_kernels": "resistors in_loops capacitors inductors blocking conducting mismatches sums_of_currents times",
    "mode_equations": "mismatches sums_of_currents times",
    "mode_parts": "decompose backward link_flows part_currents",
    "mode_rows": "wired not_zero over_parts wires ordered_row over_state",
}
"""Functions that are compiled one by one; what calls them stays Python and runs once a mode."""


class Clock(event.Listener):
    """Processor seconds of each function that numba compiles, with and without those that it calls."""

    def __init__(self) -> None:
        self.open: list[list[float]] = []
        self.rows: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0, 0.0, 0.0])
        self.total = 0.0
        event.register("numba:compile", self)

    def on_start(self, event: Any) -> None:
        """A function is about to be compiled."""
        self.open.append([time.process_time(), 0.0])

    def on_end(self, event: Any) -> None:
        """It is."""
        begin, inner = self.open.pop()
        whole, function = time.process_time() - begin, event.data["dispatcher"].py_func
        if self.open:
            self.open[-1][1] += whole
        else:
            self.total += whole
        row = self.rows[f"{function.__module__}.{function.__qualname__}"]
        arrays = sum(leaves(one) for one in event.data["args"])
        row[:] = row[0] + 1, len(inspect.getsourcelines(function)[0]), max(row[2], arrays), row[3], row[4]
        row[3:] = row[3] + whole - inner, row[4] + whole

    def print(self, most: int) -> None:
        """The functions that take longest by themselves."""
        print("| function | forms | lines | values | s alone | s with its calls |\n|---|--:|--:|--:|--:|--:|")
        for name, row in sorted(self.rows.items(), key=lambda item: -item[1][3])[:most]:
            print(f"| {name} | {row[0]:.0f} | {row[1]:.0f} | {row[2]:.0f} | {row[3]:.1f} | {row[4]:.1f} |")
        print(f"all: {self.total:.1f} s, {len(self.rows)} functions, load {os.getloadavg()[0]:.1f}")


def leaves(kind: Any) -> int:
    """Arrays and numbers that an argument holds."""
    inner = leaves(kind.members) if hasattr(kind, "members") else 0
    return inner or (sum(leaves(one) for one in kind.types) if hasattr(kind, "types") else 1)


def rectifier() -> Callable[[], Any]:
    """A run of a rectifier, whose states decay."""
    from circuitsim import loads
    from circuitsim.time_domain import Sine, transient

    circuit = loads("rectifier\nV1 in 0 0\nD1 in out\nC1 out 0 10u\nR1 out 0 1k\nC2 out b 1u\nR2 b 0 2k\n")
    return lambda: transient(circuit, 0.02, {"V1": Sine(0.0, 1.0, 50.0)}, {})


def modes(split: bool) -> None:
    """Make the modes of a rectifier; the seconds of compilation, and of a mode later on."""
    from circuitsim.time_domain import kernels, library, mode_rows

    kernels.time_kernel._register()
    compiled: dict[Any, Any] = {}
    for home, names in LEAVES.items() if split else ():
        module = sys.modules[f"circuitsim.time_domain.{home}"]
        for name in names.split():
            function = getattr(module, name)
            setattr(module, name, compiled.setdefault(function, njit(**OPTIONS)(function)))
    made: Callable[..., Any] = mode_rows.entered_decays if split else njit(**OPTIONS)(mode_rows.entered_decays)
    spent, clock, family = list[float](), Clock(), kernels.time_kernel

    def timed(*given: Any) -> Any:
        begin = time.process_time()
        found = made(*given)
        spent.append(time.process_time() - begin)
        return found

    library.time_kernel = lambda name, work: timed if name == "entered_decays" else family(name, work)  # type: ignore
    run = rectifier()
    run()
    seconds = clock.total
    spent.clear()
    for _ in range(20):
        run()
    clock.print(12)
    print(f"compilation {seconds:.1f} s; a mode {1e6 * statistics.median(spent):.0f} µs")


@njit(**OPTIONS)
def resistors(cut, twigs, links, tree, rest, value, voltage, current, first, matrix, right, drive):
    """`circuitsim.time_domain.mode_kernels.resistors` of real numbers on arrays; the last three are memory."""
    n, m = voltage.shape[1], right.shape[0]
    t0, t1, l0, l1 = tree[first], tree[first + 1], rest[first], rest[first + 1]
    matrix[:, :] = 0.0
    right[:, :] = 0.0
    drive[:, :] = 0.0
    for k in range(l0, l1):
        for t in range(t0):
            if cut[t, k] != 0.0:
                for c in range(n):
                    drive[k - l0, c] += cut[t, k] * voltage[twigs[t], c]
    for t in range(t0, t1):
        i = t - t0
        matrix[i, i] = 1.0 / value[twigs[t]]
        for k in range(l1, rest[first + 3]):  # inductors, then current sources and blocking diodes
            if cut[t, k] != 0.0:
                for c in range(n):
                    right[i, c] += cut[t, k] * current[links[k], c]
        for k in range(l0, l1):
            if cut[t, k] != 0.0:
                weight = cut[t, k] / value[links[k]]
                for c in range(n):
                    right[i, c] += weight * drive[k - l0, c]
                for j in range(m):
                    matrix[i, j] += weight * cut[t0 + j, k]
    for j in range(m):
        for i in range(j + 1, m):
            if matrix[i, j] != 0.0:
                share = matrix[i, j] / matrix[j, j]
                for k in range(j + 1, i + 1):
                    matrix[i, k] -= share * matrix[k, j]
                for c in range(n):
                    right[i, c] -= share * right[j, c]
    for j in range(m - 1, -1, -1):
        for c in range(n):
            right[j, c] /= matrix[j, j]
        for i in range(j):
            for c in range(n):
                right[i, c] -= matrix[j, i] * right[j, c]
    for i in range(m):
        e = twigs[t0 + i]
        for c in range(n):
            voltage[e, c], current[e, c] = -right[i, c], -right[i, c] / value[e]
    for k in range(l0, l1):
        e = links[k]
        for i in range(m):
            if cut[t0 + i, k] != 0.0:
                for c in range(n):
                    drive[k - l0, c] += cut[t0 + i, k] * voltage[twigs[t0 + i], c]
        for c in range(n):
            voltage[e, c], current[e, c] = drive[k - l0, c], drive[k - l0, c] / value[e]


def one(flat: bool) -> None:
    """Compile the equations of the resistors, and compare."""
    from circuitsim.time_domain import kernels, mode_kernels
    from circuitsim.time_domain.trees import R

    found: list[Any] = []
    own = mode_kernels.resistors

    def taken(net: Any, value: Any, waves: Any) -> None:
        if not found:
            found.append((net, value, mode_kernels.Waves(*(part.copy() for part in waves))))
        own(net, value, waves)

    mode_kernels.resistors = taken
    rectifier()()
    mode_kernels.resistors = own
    kernels.time_kernel._register()
    (net, value, waves), clock = found[0], Clock()
    again = mode_kernels.Waves(*(part.copy() for part in waves))
    own(net, value, again)
    if flat:
        l, t = int(net.rest[R + 1] - net.rest[R]), int(net.tree[R + 1] - net.tree[R])
        n = waves.voltage.shape[1]
        room = np.zeros((t, t)), np.zeros((t, n)), np.zeros((l, n))
        given = net.cut, net.twigs, net.links, net.tree, net.rest, value, waves.voltage, waves.current
        resistors(*given, int(R), *room)
    else:
        njit(**OPTIONS)(own)(net, value, waves)
    clock.print(5)
    print("differs by", max(float(np.abs(a - b).max()) for a, b in zip(again, waves)))


class Address(types.WrapperAddressProtocol):  # type: ignore[misc]
    """A compiled function as numba's first-class function: its caller is compiled without it."""

    def __init__(self, kernel: Any) -> None:
        self.compiled = kernel.overloads[kernel.signatures[0]]

    def __wrapper_address__(self) -> int:
        """Where it is."""
        name = self.compiled.fndesc.llvm_cfunc_wrapper_name
        address: int = self.compiled.library.get_pointer_to_function(name)
        return address

    def signature(self) -> Any:
        """Its types."""
        return self.compiled.signature


def pointer() -> None:
    """Seconds to compile a caller of `stock_numba_kernels.first_zero`, and nanoseconds a call, in both ways."""
    from stock_numba_kernels import first_zero

    c, many, times = np.zeros((46, 32)), np.zeros(46, np.int64), 100_000
    c[0, 0] = 1.0
    first_zero(c, many, 1.0)

    @njit(**OPTIONS)
    def direct(c, many, limit, times):
        found = 0.0
        for _ in range(times):
            found += min(first_zero(c, many, limit), 1.0)
        return found

    @njit(**OPTIONS)
    def addressed(kernel, c, many, limit, times):
        found = 0.0
        for _ in range(times):
            found += min(kernel(c, many, limit), 1.0)
        return found

    for name, call in (
        ("in the caller's code", lambda: direct(c, many, 1.0, times)),
        ("by its address", lambda: addressed(Address(first_zero), c, many, 1.0, times)),
    ):
        seconds = list[float]()
        for _ in range(8):
            begin = time.process_time()
            call()
            seconds.append(time.process_time() - begin)
        later = statistics.median(seconds[1:])
        print(f"{name}: compilation {seconds[0] - later:.2f} s, a call {1e9 * later / times:.0f} ns")


def main() -> None:
    """Measure one of them."""
    what = sys.argv[1] if sys.argv[1:] else "warm-up"
    if what == "warm-up":
        from circuitsim.cli import main as command

        clock = Clock()
        command(["warm-up"])
        clock.print(15)
    elif what in ("root", "leaves"):
        modes(what == "leaves")
    elif what == "pointer":
        pointer()
    else:
        one(what == "flat")


if __name__ == "__main__":
    main()
