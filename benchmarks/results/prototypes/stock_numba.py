"""Three kernels as flat functions for numba's own compiler, beside the package's kernels by both pipelines.

    python benchmarks/results/prototypes/stock_numba.py [--repeats 5] [--kinds tile sweep-1h ...] [--forms linked ...]

Every measurement is a process of its own. Forms: ``linked`` (the package's kernels by its own pipeline), ``tested``
(the same with numba's test whether an index is negative), ``nested`` (the same by `numba.njit`), ``flat``
(`stock_numba_kernels` by `numba.njit`). ``compile`` and ``load`` are processor
seconds of the first call with an empty and a warm cache, less those of a later call; ``call`` is a later call.
"""

from __future__ import annotations

import argparse
import copy
import functools
import json
import math
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

FORM = sys.argv[2] if sys.argv[1:2] == ["worker"] else ""
if FORM not in ("linked", "tested", "inputs"):
    sys.modules["circuitsim._compile"] = None  # type: ignore[assignment]  # `circuitsim._jit` takes numba's pipeline

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1])]

KINDS = ("tile", "sweep-1h", "sweep-3h", "epoch-xs", "epoch-1h", "window", "march")
FORMS = ("linked", "tested", "nested", "flat")
FACTOR = "circuitsim.solvers.laplacian.factor"
MESH = 100
PERIODS = 1000


# ---------------------------------------------------------------- what is run
def inputs(path: Path) -> None:
    """Save what kernels are called with in a mesh and in a converter."""
    import circuits

    from circuitsim import loads, prepared
    from circuitsim.time_domain import course

    laplacian, kept = import_module(FACTOR), dict[str, Any]()
    own = laplacian.factor_active

    def factor_active(active: Any, arrays: Any, weight: Any, values: Any, pivots: Any) -> None:
        if active.all():
            kept["tile"] = arrays, weight.copy(), values.size, pivots.size
        own(active, arrays, weight, values, pivots)

    laplacian.factor_active = factor_active
    prepared(loads(circuits.mesh(MESH))).solve()
    longest = 0.0

    def call(kernel: Any, *given: Any) -> Any:
        nonlocal longest
        before = [copy.deepcopy(one.members) if hasattr(one, "members") else one for one in given]
        code = kernel(*given)
        passed = given[6].members.number[0] - before[6].number[0]
        if passed >= longest:
            longest, kept["window"] = passed, before
        return code

    course.time_kernel = Around(course.time_kernel, call)
    transient_of(PERIODS)()
    path.write_bytes(pickle.dumps(kept))


class Around:
    """The kernels of waveforms, with a function around each call of the compiled loop through time."""

    def __init__(self, family: Any, call: Callable[..., Any]) -> None:
        self.family, self.call, self.count = family, call, family.count
        family._ready["advance"] = family.compiled("advance")

    def __call__(self, name: str, *work: Any) -> Any:
        """The kernel of a name."""
        kernel = self.family(name, *work)
        return functools.partial(self.call, kernel) if name == "advance" else kernel


def transient_of(periods: int) -> Callable[[], Any]:
    """The converter from states of zero."""
    import circuits

    from circuitsim import loads
    from circuitsim.time_domain import Pulse, transient

    circuit, wave = loads(circuits.BUCK), {"V1": Pulse(-1.0, 12.0, 0.0, 1e-9, 1e-9, 4e-6, 1e-5)}
    return lambda: transient(circuit, periods * 1e-5, wave, {})


def tile(kept: dict[str, Any]) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """A factor of the mesh."""

    laplacian, (arrays, weight, stored, n) = import_module(FACTOR), kept["tile"]
    values, pivots, active = np.zeros(stored), np.zeros(n), np.ones(arrays[0].size - 1, np.bool_)
    if FORM != "flat":
        return lambda: laplacian.factor_active(active, arrays, weight, values, pivots), lambda: [values, pivots]
    import stock_numba_kernels as flat

    first, row_ptr, offset, update_ptr, target, low, held_ptr, held, edge_ptr, edges, place = arrays
    panels = np.column_stack([first, row_ptr, offset, update_ptr, edge_ptr]).astype(np.int64)
    updates = np.column_stack([np.append(target, 0), np.append(low, 0), held_ptr]).astype(np.int64)
    entries = np.column_stack([edges, place]).astype(np.int64)
    packed, work = laplacian._scratch.py_func(first, row_ptr, update_ptr, low)
    given = panels, updates, entries, held, active, weight, values, pivots, packed, work
    return lambda: flat.factor(*given), lambda: [values, pivots]


def network(name: str) -> Any:
    """A layered network with random conductances."""
    from circuitsim.layered.architecture import published_models
    from circuitsim.layered.engine import Engine

    model = published_models()[f"drn-{name}"]
    made = Engine(model.architecture, model.learning, 4)
    made.initialise(np.random.default_rng(0))
    return model, made


def sweep(name: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """A sweep of a layered network on four samples."""
    from circuitsim.layered import steps

    _, made = network(name)
    rng, m, layout = np.random.default_rng(1), made.memory, made.layout
    inverse = (np.tile(m.mask, 3) / rng.uniform(1.0, 2.0, m.inverse.size)).astype(np.float32)
    base, start = (rng.normal(size=4 * layout.total).astype(np.float32) for _ in range(2))
    v, phase = start.copy(), np.zeros(1, np.int64)
    if FORM == "flat":
        import stock_numba_kernels as flat

        head = tables(layout), layout.blocks
        shared = m.inner, base, v, m.sums, inverse, m.low, m.high, m.partial, m.lanes, phase, 4, steps.ALL
        kernel, given = flat.sweep, (*head, *shared)
    else:
        kernel = steps.sweep
        given = layout, m.inner, base, v, m.sums, inverse, m.low, m.high, m.partial, m.lanes, m.moved, 4, phase
        given = *given, None, steps.ALL

    def call() -> None:
        v[:] = start
        found.append(kernel(*given))

    found: list[Any] = []
    return call, lambda: [v, np.array(found[:1])]


def tables(layout: Any) -> np.ndarray:
    """The layers of a layout as a table of integers."""
    rows = layout.units, layout.width, layout.at, layout.matrix, layout.stride, layout.row_layer, layout.column_layer
    return np.column_stack(rows)


def epoch(name: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """A hundred steps of training on random images as sparse as MNIST's."""
    from circuitsim.layered import steps

    model, made = network(name)
    if FORM == "flat":
        steps.sweep = sweep_by_tables(tables(made.layout))
    rng = np.random.default_rng(0)
    images = np.where(rng.random((400, 784)) < 0.81, 0, rng.integers(1, 256, (400, 784))).astype(np.uint8)
    labels, rates = rng.integers(0, 10, 400), (model.weight_rates, model.bias_rates)
    found: list[np.ndarray] = []
    return lambda: found.append(made.train(images, labels, np.arange(400), *rates)), lambda: found[:1]


def sweep_by_tables(layers: np.ndarray) -> Any:
    """The flat sweep with the arguments of the package's, for the layers of one network."""
    import stock_numba_kernels as flat

    @njit(_nrt=False, **flat.FLAT)
    def sweep(layout, inner, base, v, sums, inverse, low, high, partial, lanes, moved, samples, phase, _, measured):
        work = v, sums, inverse, low, high, partial, lanes, phase
        return flat.sweep(layers, layout.blocks, inner, base, *work, samples, measured)

    return sweep


def window(kept: dict[str, Any]) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The first window of a run from where the longest call of the loop began, a hundred times."""
    from circuitsim.engine.small.pointers import Pinned
    from circuitsim.time_domain import kernels, loop, roots, scales, windows
    from circuitsim.time_domain.walk import NOW

    modes, _, inside, exponent, schedule, fixed, walk, _, stop = kept["window"]
    m = walk.mark[NOW]
    left = float(schedule.times[walk.mark[3]] if walk.mark[3] < schedule.times.size else stop) - walk.number[0]
    space = loop.space_for(modes, walk)
    found: list[Any] = []
    if FORM == "flat":
        import stock_numba_kernels as flat

        scales.sizes(walk, fixed, space.x_size)
        scales.state_sizes(modes, m, walk, space.x_size, space.z_size)
        state = np.stack([walk.z, space.z_size, walk.size, 0.0 * walk.z])
        memory = space.states, np.empty((space.orders.size, 33)), np.maximum(walk.order, 0), walk.tied
        memory = *memory, np.empty((46, 32)), np.empty(46, np.int64), np.empty((3, walk.z.size))
        mantissa, power = math.frexp(min(left, modes.longest[m]))
        numbers = float(walk.number[0]), left, float(modes.radius[m]), int(m), power - (mantissa == 0.5), int(exponent)
        given = inside, modes.window, modes.system, modes.slack, state, *memory, *numbers
        return lambda: found.extend(flat.cross(*given) for _ in range(100)), lambda: [np.array(found[0])]
    from circuitsim._jit import jit

    kernels.time_kernel._register()
    parts = Pinned(walk.parts)

    @jit(fastmath=False, unroll=True)
    def nested(modes, inside, exponent, fixed, walk, parts, space, m, left):
        code, power = loop.resolve(modes, None, inside, exponent, fixed, walk, parts, space, None, left)
        length = math.ldexp(1.0, power)
        loop.leading_zeros(modes, None, m, fixed, walk, parts, space, None)
        share, event = roots.first_root(space.slack, space.orders, space.slack_size)
        end, error = min(length, left), 0.0
        if share * length < end:
            place, y, size = share * length, parts.y, space.slack_size[event]
            states, z, now = space.states, walk.z, walk.number[0]
            end, error = windows.refined(fixed, modes, None, m, states, None, length, z, y, event, place, size, now)
        else:
            event = -1
        return code, power, end, event, error

    given = Pinned(modes), inside, exponent, Pinned(fixed), Pinned(walk), parts, Pinned(space), m, left
    return lambda: found.extend(nested(*given) for _ in range(100)), lambda: [np.array(found[0])]


def march() -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The whole run of the converter, of which the seconds of the loop through time count; the rest is interpreted."""
    from circuitsim.time_domain import course, kernels

    if FORM == "flat":
        kernels.time_kernel._register()
        kernels.time_kernel._compiled["advance"] = advance_by_arrays()
    spent: list[float] = []

    def call(kernel: Any, *given: Any) -> Any:
        begin = time.process_time()
        code = kernel(*given)
        spent.append(time.process_time() - begin)
        return code

    course.time_kernel = Around(kernels.time_kernel, call)
    run, found = transient_of(PERIODS), []

    def whole() -> float:
        spent.clear()
        found.append(run())
        return sum(spent)

    return whole, lambda: [found[0].segments.start, found[0].segments.state]


def advance_by_arrays() -> Any:
    """The loop through time with the flat window in place, and what the package does before and after one."""
    import stock_numba_kernels as flat

    from circuitsim.time_domain.loop import (
        AT_ONCE,
        CORNERS,
        DONE,
        ENDLESS,
        GOING,
        ROOM,
        end_window,
        energies,
        enter,
        move,
        space_for,
    )
    from circuitsim.time_domain.roots import DEPTH, POINTS, zero_at
    from circuitsim.time_domain.scales import sizes, state_sizes
    from circuitsim.time_domain.walk import CORNER, ENTER, EVENTS, NOW, SEGMENTS, STILL, TRIES, WANTED
    from circuitsim.time_domain.windows import ERROR, TIME, later_sizes

    @njit(**flat.EXACT)
    def advance(modes, count, inside, exponent, schedule, fixed, walk, track, stop):
        space, parts, number, mark, n = space_for(modes, walk), walk.parts, walk.number, walk.mark, walk.z.size
        state, series = np.empty((4, n)), np.empty((space.orders.size, POINTS + 1))
        c, many, room = np.empty((DEPTH + 2, POINTS)), np.empty(DEPTH + 2, np.int64), np.empty((3, n))
        laws = inside, modes.window, modes.system, modes.slack
        memory = state, space.states, series, space.orders, walk.tied, c, many, room
        while True:
            if mark[SEGMENTS] == track.start.size or mark[EVENTS] == track.time.size:
                return ROOM
            if mark[ENTER]:
                code = enter(modes, None, count, fixed, walk, parts, track)
                if code != DONE:
                    return code
            if number[TIME] >= stop:
                return DONE
            if mark[CORNER] == schedule.times.size and schedule.until < stop:
                return CORNERS
            m = mark[NOW]
            bound = schedule.times[mark[CORNER]] if mark[CORNER] < schedule.times.size else stop
            left = bound - number[TIME]
            mantissa, power = math.frexp(min(left, modes.longest[m]))
            power -= mantissa == 0.5
            sizes(walk, fixed, space.x_size)
            state_sizes(modes, m, walk, space.x_size, space.z_size)
            for i in range(n):
                state[0, i], state[1, i], state[2, i] = walk.z[i], space.z_size[i], walk.size[i]
            for k in range(space.orders.size):
                space.orders[k] = max(walk.order[k], 0)
            mark[TRIES] += 1
            numbers = number[TIME], left, modes.radius[m], m, power, exponent
            code, power, end, event, number[ERROR] = flat.cross(*laws, *memory, *numbers)
            if code != GOING:
                mark[WANTED] = exponent - power
                return code
            for k in range(space.orders.size):
                space.slack_size[k] = series[k, POINTS]
                for j in range(POINTS):
                    space.slack[k, j] = series[k, j]
            length = math.ldexp(1.0, power)
            if event < 0 and length >= left and bound == stop:
                event = zero_at(space.slack, space.orders, space.slack_size, left / length)
            last = length >= left and end == left
            since, at = left if last else end, mark[SEGMENTS]
            mark[STILL] = 0 if since > 1e-15 * number[TIME] else mark[STILL] + 1
            if mark[STILL] > AT_ONCE:
                return ENDLESS
            track.start[at], track.mode[at], track.cause[at] = number[TIME], m, event
            track.halvings[at] = exponent - power
            for i in range(n):
                track.state[at, i] = walk.z[i]
            mark[SEGMENTS] += 1
            energies(modes, None, m, fixed, walk, parts, space, None, since, length)
            tried = inside[modes.window[m, exponent - power]]
            later_sizes(tried, walk.w.size, since / length, walk.z, space.z_size, walk.size)
            move(modes, None, m, fixed, walk, parts, space, None, since, length, track.state[at], event)
            number[TIME] = bound if last else min(number[TIME] + since, bound)
            corner = bound < stop and number[TIME] >= bound
            end_window(modes, None, m, schedule, fixed, walk, parts, space, None, since, length, event, corner)

    return advance


# ---------------------------------------------------------------- how it is measured
def worker(kind: str, path: Path, out: Path) -> None:
    """Run one kind in one form; prints the seconds of the first call and of later ones."""
    kept = pickle.loads(path.read_bytes()) if kind in ("tile", "window") else None
    name, _, size = kind.partition("-")
    if FORM == "tested":
        own = import_module("circuitsim._compile")
        own._STANDING_IN = tuple(one for one in own._STANDING_IN if one[1] != "fix_integer_index")
    make: Callable[..., Any] = {"tile": tile, "sweep": sweep, "epoch": epoch, "window": window, "march": march}[name]
    call, result = make(*([kept] if kept else [size] if size else []))

    def seconds() -> float:
        begin = time.process_time()
        own = call()
        return time.process_time() - begin if own is None else own

    first, times, until = seconds(), list[float](), time.process_time() + 0.5
    np.savez(out, *result())
    while len(times) < 5 or time.process_time() < until:
        times.append(seconds())
    print(json.dumps([first - statistics.median(times), statistics.median(times)]))


def process(*words: str, cache: Path) -> str:
    """What a process prints."""
    own = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, __file__, *words], env=own, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{words}: {done.stderr[-2000:]}")
    return done.stdout


def table(options: argparse.Namespace) -> None:
    """Print a row a kind and form: medians, and the largest difference from the first form."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        path, found = folder / "inputs", defaultdict(list)
        process("worker", "inputs", str(path), "", "", cache=folder / "package")
        for k in range(options.repeats):
            for kind in options.kinds:
                for form in options.forms:
                    cache, words = folder / f"{k}-{kind}-{form}", ("worker", form, str(path), kind)
                    for what in ("compile", "load"):
                        printed = process(*words, str(folder / f"{kind}-{form}.npz"), cache=cache)
                        seconds, call = json.loads(printed.splitlines()[-1])
                        found[kind, form, what].append(seconds)
                    found[kind, form, "call"].append(call)
            print(f"\n{k + 1} of {options.repeats}, load {os.getloadavg()[0]:.1f}\n")
            print("| kernel | form | compile, s | load, s | call, ms | differs by |\n|---|---|--:|--:|--:|--:|")
            for kind in options.kinds:
                for form in options.forms:
                    print(row(folder, kind, options.forms[0], form, found), flush=True)


def row(folder: Path, kind: str, first: str, form: str, found: dict[Any, list[float]]) -> str:
    """Medians so far, and the largest difference from the first form's results."""
    one, other = (np.load(folder / f"{kind}-{which}.npz") for which in (first, form))
    apart = max(float(np.nanmax(np.abs(one[k] - other[k])) / np.nanmax(np.abs(one[k]))) for k in one.files)
    mid = {what: statistics.median(found[kind, form, what]) for what in ("compile", "load", "call")}
    return f"| {kind} | {form} | {mid['compile']:.2f} | {mid['load']:.2f} | {1e3 * mid['call']:.4g} | {apart:.1e} |"


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--forms", nargs="+", default=FORMS, choices=FORMS)
    table(parser.parse_args())


if __name__ == "__main__":
    if FORM == "inputs":
        inputs(Path(sys.argv[3]))
    elif FORM:
        worker(sys.argv[4], Path(sys.argv[3]), Path(sys.argv[5]))
    else:
        main()
