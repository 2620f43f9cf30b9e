"""Which implicit method over time: ESDIRK 3(2), ESDIRK 4(3) (two tables) and Radau IIA(5) on four circuits.

C x' + f(x, t) = 0 in modified nodal form. Stages hold charges and fluxes: C (X − x) = h Σ a F with F = −f. Factors are
kept until Newton's method converges by less than a factor of four an iteration. The error of a waveform is carried
forward with the run, e' = A e + the error of the step: of the embedded method, or of the residual of the collocation
method on the same stages; within steps the residual of the dense output is added. Steps end at breakpoints only.

    python benchmarks/results/prototypes/implicit_method.py [multiplier flyback mesh astable]
"""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from implicit_method_kernels import FACTORS, ITERATIONS, REJECTED, STEPS, Circuit
from implicit_method_marches import march_esdirk, march_radau

R2 = math.sqrt(2.0)


# ---------------------------------------------------------------------------------------------------------- methods
def rows(gamma: float, c: list[float], lower: list[list[float]]) -> np.ndarray:
    """Table of an ESDIRK method: the first column makes row sums c, the diagonal is gamma."""
    a = np.zeros((len(c), len(c)))
    for i, own in enumerate(lower, 1):
        a[i, 1:i], a[i, i] = own, gamma
        a[i, 0] = c[i] - a[i].sum()
    return a


def ark32() -> tuple[np.ndarray, np.ndarray]:
    """ARK3(2)4L[2]SA, implicit part (Kennedy & Carpenter 2003)."""
    g = 0.43586652150845899942
    c = np.array([0.0, 2 * g, 0.6, 1.0])
    last = np.linalg.solve(np.vander(c[:3], increasing=True).T, 1 / np.arange(1.0, 4.0) - g)
    a = rows(g, c.tolist(), [[], [(0.18 - g * 0.6) / c[1]], last[1:].tolist()])
    late = np.array([0.8687250025, 0.4016969751])
    second = (0.5 - c[2:] @ late) / c[1]
    return a, np.array([1 - late.sum() - second, second, *late])


def ark43() -> tuple[np.ndarray, np.ndarray]:
    """ARK4(3)6L[2]SA, implicit part (Kennedy & Carpenter 2003)."""
    c = [0.0, 1 / 2, 83 / 250, 31 / 50, 17 / 20, 1.0]
    lower = [[], [-1743 / 31250], [-654441 / 2922500, 174375 / 388108]]
    lower += [[-71443401 / 120774400, 730878875 / 902184768, 2285395 / 8070912]]
    lower += [[0.0, 15625 / 83664, 69875 / 102672, -2260 / 8211]]
    other = [4586570599 / 29645900160, 0.0, 178811875 / 945068544, 814220225 / 1159782912]
    return rows(0.25, c, lower), np.array([*other, -3700637 / 11593932, 61727 / 225920])


def esdirk43() -> tuple[np.ndarray, np.ndarray]:
    """ESDIRK4(3)6L[2]SA (Kennedy & Carpenter 2016); its fifth stage is beyond the step."""
    c = [0.0, 0.5, (2 - R2) / 4, 5 / 8, 26 / 25, 1.0]
    lower = [[], [(1 - R2) / 8], [(5 - 7 * R2) / 64, 7 * (1 + R2) / 32]]
    lower += [[(-13796 - 54539 * R2) / 125000, (506605 + 132109 * R2) / 437500, 166 * (-97 + 376 * R2) / 109375]]
    lower += [[(1181 - 987 * R2) / 13782, 47 * (-267 + 1783 * R2) / 273343, -16 * (-22922 + 3525 * R2) / 571953]]
    lower[-1].append(-15625 * (97 + 376 * R2) / 90749876)
    late = [-480923228411 / 4982971448372, 6709447293961 / 12833189095359, 3513175791894 / 6748737351361]
    late += [-498863281070 / 6042575550617, 2077005547802 / 8945017530137]
    return rows(0.25, c, lower), np.array([1 - sum(late), *late])


def conditions(a: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Conditions of an order on weights b(θ) of a method of stage order 2: (m, s) rows, and the power of θ of each."""
    c = a.sum(axis=1)
    made = [(c**k, k + 1, 1 / (k + 1)) for k in range(order)]
    if order == 4:
        made.append((a @ c**2, 4, 1 / 12))
    return np.array([row for row, _, _ in made]), np.array([(power, value) for _, power, value in made])


def dense(a: np.ndarray, order: int) -> np.ndarray:
    """Weights (order, s) of θ, θ², ...: all conditions of the order, from values of stages alone.

    Without the slope at the beginning, which is any number where the circuit is stiff.
    """
    given, right = conditions(a, order)
    left = np.vstack([given, np.append(1.0, -np.linalg.solve(a[1:, 1:], a[1:, 0]))])
    values = [[value if power == k + 1 else 0.0 for power, value in right] + [0.0] for k in range(order)]
    found = np.linalg.solve(left, np.array(values).T).T
    assert np.abs(found.sum(axis=0) - a[-1]).max() < 1e-9
    return found


def collocation(c: np.ndarray) -> np.ndarray:
    """Integrals from 0 to c of the polynomials of Lagrange on c."""
    return np.array([c ** (k + 1) / (k + 1) for k in range(c.size)]).T @ np.linalg.inv(np.vander(c, increasing=True))


# ----------------------------------------------------------------------------------------------------------- circuits
class Maker:
    """Elements into matrices; node −1 is ground."""

    def __init__(self, nodes: int, currents: int = 0, modes: int = 1) -> None:
        n = nodes + currents
        self.c, self.g = np.zeros((n, n)), np.zeros((modes, n, n))
        self.s0, self.s1, self.kind = np.zeros(n), np.zeros(n), np.array([0] * nodes + [1] * currents)
        self.junctions: list[tuple[int, int]] = []
        self.laws: list[tuple[float, float]] = []

    def _two(self, into: np.ndarray, a: int, b: int, value: float) -> None:
        for i, j, sign in ((a, a, 1), (b, b, 1), (a, b, -1), (b, a, -1)):
            if i >= 0 and j >= 0:
                into[i, j] += sign * value

    def capacitor(self, a: int, b: int, farads: float) -> None:
        self._two(self.c, a, b, farads)

    def resistor(self, a: int, b: int, ohms: float, mode: int | None = None) -> None:
        for k in range(len(self.g)) if mode is None else [mode]:
            self._two(self.g[k], a, b, 1 / ohms)

    def branch(self, row: int, a: int, b: int) -> None:
        """A current x[row] from a to b, and the voltage between them in this row."""
        for node, sign in ((a, 1.0), (b, -1.0)):
            if node >= 0:
                self.g[:, node, row] += sign
                self.g[:, row, node] -= sign

    def diode(self, a: int, b: int, saturation: float, emission: float) -> None:
        self.junctions.append((a, b))
        self.laws.append((saturation, emission * 0.025864926))

    def done(
        self, stop, probes, full, band=None, marks=None, modes=None, levels=None, sine=(0.0, 0.0), amps=(), limits=()
    ):
        marks = np.array([0.0, stop]) if marks is None else np.asarray(marks)
        count, n = len(marks) - 1, len(self.c)
        shown = np.zeros((len(probes), n))
        for k, (a, b) in enumerate(probes):
            for node, sign in ((a, 1.0), (b, -1.0)):
                if node >= 0:
                    shown[k, node] += sign
        return Circuit(
            self.c,
            self.g,
            self.s0,
            self.s1,
            marks,
            np.zeros(count, dtype=np.int64) if modes is None else np.asarray(modes),
            np.zeros((count, 2)) if levels is None else np.asarray(levels),
            np.array(sine),
            np.array(self.junctions, dtype=np.int64).reshape(-1, 2),
            np.array(self.laws).reshape(-1, 2),
            np.array(amps, dtype=np.int64).reshape(-1, 3),
            np.array(limits).reshape(-1, 3),
            self.kind,
            np.array([*full, 1.0]),
            n if band is None else band,
            shown,
        )


def multiplier(stop: float = 5e-3) -> tuple[Circuit, np.ndarray]:
    """Four diodes with 42 mΩ, 500 periods."""
    a, p, q, m, out, source = 0, 1, 2, 3, 4, 9
    made = Maker(9, 1)
    made.kind[source] = 2
    made.branch(source, a, -1)
    made.s1[source] = -1.0
    made.resistor(a, p, 0.01)
    for one, other in ((p, q), (-1, m), (p, q), (m, out)):
        made.capacitor(one, other, 100e-9)
    for k, (one, other) in enumerate(((-1, p), (p, m), (m, q), (q, out)), 5):
        made.resistor(one, k, 0.042)
        made.diode(k, other, 76.9e-12, 1.45)
    return made.done(stop, [(out, -1), (m, -1)], (50.0, 1.0), sine=(50.0, 2e5 * math.pi)), np.zeros(10)


def flyback(periods: int = 200) -> tuple[Circuit, np.ndarray]:
    """netlists/flyback-converter.cir with a junction diode of 20 mΩ: 24 V to 8 V, a switch at known times."""
    source, d, s, k, out, first, second, supply = range(8)
    made = Maker(5, 3, modes=2)
    made.kind[supply] = 2
    made.branch(supply, source, -1)
    made.s0[supply] = -24.0
    made.branch(first, source, d)
    made.branch(second, -1, s)
    made.c[np.ix_([first, second], [first, second])] = np.array([[100e-6, 50e-6], [50e-6, 25e-6]])
    made.resistor(d, -1, 1e7, mode=0)
    made.resistor(d, -1, 0.01, mode=1)
    made.resistor(s, k, 0.02)
    made.diode(k, out, 1e-9, 1.5)
    made.capacitor(out, -1, 47e-6)
    made.resistor(out, -1, 10.0)
    marks = [0.0]
    for period in range(periods):
        marks += [period * 10e-6 + 6e-9, period * 10e-6 + 4.006e-6]
    marks.append(periods * 10e-6)
    begin = np.array([24.0, 23.8, 9.0, 9.0, 8.0, 0.2, 0.0, -0.2])
    modes = [0] + [1, 0] * periods
    return made.done(marks[-1], [(out, -1), (first, -1)], (24.0, 2.0), marks=marks, modes=modes), begin


def mesh(side: int = 20) -> tuple[Circuit, np.ndarray]:
    """A grid of 1 kΩ with 1 nF to ground at its nodes, junction diodes at a third of them, driven at a corner."""
    rng, n = np.random.default_rng(0), side * side
    made = Maker(n)
    for k in range(n):
        made.capacitor(k, -1, 1e-9 * rng.uniform(0.5, 1.5))
        if k % side + 1 < side:
            made.resistor(k, k + 1, 1e3)
        if k + side < n:
            made.resistor(k, k + side, 1e3)
        if k % 3 == 0:
            one = (k, -1) if k % 2 else (-1, k)
            made.diode(*one, 1e-12, 1.0 if k % 2 else 1.6)
    made.resistor(0, -1, 50.0)
    made.s1[0] = 1 / 50.0
    marks = [0.0, 1e-6, 1e-6 + 50e-9, 30e-6, 30e-6 + 50e-9, 60e-6]
    levels = [(0, 0), (0, 10 / 50e-9), (10, 0), (10, -20 / 50e-9), (-10, 0)]
    probes = [(1, -1), (side + 1, -1), (n // 2 + side // 2, -1)]
    return made.done(
        60e-6, probes, (10.0, 1.0), band=side, marks=marks, levels=levels, sine=(2.0, 2e5 * math.pi)
    ), np.zeros(n)


def astable(gain: float = 1e5) -> tuple[Circuit, np.ndarray]:
    """cases/astable-limited-opamp.cir with a smooth law, 100 Ω and 1 nF at its output, 1 pF at its + input."""
    p, n, o = range(3)
    made = Maker(3)
    made.resistor(o, p, 1e4)
    made.resistor(p, -1, 1e4)
    made.resistor(o, n, 1e4)
    made.capacitor(n, -1, 10e-9)
    made.capacitor(o, -1, 1e-9)
    made.capacitor(p, -1, 1e-12)
    return made.done(1e-3, [(n, -1)], (10.0, 1.0), amps=[(o, p, n)], limits=[(gain, 10.0, 0.01)]), np.array(
        [5.0, -6.0, 10.0]
    )


# ---------------------------------------------------------------------------------------------------------- measuring
METHODS = {
    "ESDIRK 3(2)": (ark32, 3, [0.3, 0.8]),
    "ESDIRK 4(3), 2003": (ark43, 4, [0.17, 0.73]),
    "ESDIRK 4(3), 2016": (esdirk43, 4, [0.32, 0.8]),
    "Radau IIA(5)": (None, 3, [0.4, 0.85]),
}
"""Table, order of the dense output, places of its residual in the step: the widest gaps between stages."""
CIRCUITS = {"multiplier": multiplier, "flyback": flyback, "mesh": mesh, "astable": astable}
TOLERANCES = [10.0**-k for k in range(3, 10)]
UNITS = 5
"""Real factorisations that a real and a complex one of the same size cost."""


class Run(NamedTuple):
    counts: np.ndarray
    wave: np.ndarray
    stated: np.ndarray
    reached: float
    seconds: float


def march(
    circuit: Circuit,
    begin: np.ndarray,
    method: str,
    tol: float,
    wanted: np.ndarray,
    inside: bool = True,
    carry: bool = True,
) -> Run:
    """One run; `inside`: the residual of the dense output controls steps too; `carry`: errors are carried."""
    make, order, places = METHODS[method]
    gaps, started = np.array(places if inside else []), time.process_time()
    if make is None:
        found = march_radau(circuit, begin, carry, gaps, tol, wanted, 4_000_000)
    else:
        a, low = make()
        s = collocation(a.sum(axis=1))
        found = march_esdirk(circuit, begin, a, dense(a, order), low, s, carry, gaps, order, tol, wanted, 4_000_000)
    return Run(*found[:3], float(found[3]), time.process_time() - started)


def checked() -> None:
    """Order conditions of the tables, and stability along the imaginary axis."""
    for name, (make, order, _) in METHODS.items():
        if make is None:
            continue
        a, low = make()
        (given, right), (less, other) = conditions(a, order), conditions(a, order - 1)
        off = max(np.abs(given @ a[-1] - right[:, 1]).max(), np.abs(less @ low - other[:, 1]).max())
        off = max(off, np.abs(a @ a.sum(axis=1) - a.sum(axis=1) ** 2 / 2).max())
        z = 1j * np.logspace(-2, 4, 600)
        one = np.ones(len(a))
        most = max(abs(1 + k * a[-1] @ np.linalg.solve(np.eye(len(a)) - k * a, one)) for k in z)
        late = -np.linalg.solve(a[1:, 1:], a[1:, 0])[-1]
        print(f"{name}: order conditions to {off:.0e}, max |R(iy)| = {most:.9f}, R(∞) = {late:.0e}")


def share(run: Run, right: np.ndarray) -> float:
    """Largest error of all waveforms, of the largest value of each."""
    return float((np.abs(run.wave - right).max(axis=0) / np.abs(right).max(axis=0)).max())


def measured(name: str) -> None:
    """Table of a circuit."""
    circuit, begin = CIRCUITS[name]()
    stop = circuit.marks[-1]
    wanted = np.sort(np.concatenate([np.linspace(0, stop, 20001), stop * np.random.default_rng(1).random(10000)]))
    for method in METHODS:  # compiles
        march(circuit, begin, method, 1e-2, np.zeros(1))
    right = march(circuit, begin, "Radau IIA(5)", 1e-11, wanted).wave
    second = march(circuit, begin, "ESDIRK 4(3), 2016", 1e-11, wanted)
    print(f"\n### {name}\n\nTwo references differ by {share(second, right):.1e}.")
    if name == "multiplier":
        print(f"v(out) at 4.999 ms: {np.interp(4.999e-3, wanted, right[:, 0]):.5f} V.")
    print(
        "\n| method | tolerance | steps | again | iterations | factors | s | s, errors carried | error | stated | ",
        end="",
    )
    print("error / stated | of embedded | of the run beside |\n|" + 13 * "---|")
    needs: dict[tuple[str, float], str] = {}
    for method in METHODS:
        runs = [march(circuit, begin, method, tol, wanted) for tol in TOLERANCES]
        bare = [march(circuit, begin, method, tol, wanted, carry=False).seconds for tol in TOLERANCES]
        errors = [share(run, right) for run in runs]
        costs = []
        for k, (tol, run, error) in enumerate(zip(TOLERANCES, runs, errors)):
            largest = np.abs(right).max(axis=0)
            embedded, swept = (run.stated.max(axis=0) / largest).max(axis=1)
            stated = swept if METHODS[method][0] else embedded
            beside = share(runs[k + 1], run.wave) if k + 1 < len(runs) else math.nan
            costs.append(int(run.counts[FACTORS]) * (1 if METHODS[method][0] else UNITS))
            done = "" if run.reached >= stop * (1 - 1e-12) else f" (ends at {run.reached:.3g} s)"
            print(
                f"| {method} | {tol:.0e}{done} | {run.counts[STEPS]:,} | {run.counts[REJECTED]:,} | "
                f"{run.counts[ITERATIONS]:,} | {costs[-1]:,} | {bare[k]:.2f} | {run.seconds:.2f} | {error:.1e} | "
                f"{stated:.1e} | {error / stated:.2f} | {error / embedded:.2f} | {error / beside:.2f} |",
                flush=True,
            )
        for target in (1e-4, 1e-6):
            late = [k for k in range(len(errors)) if not errors[k] <= target]
            k = late[-1] + 1 if late else 0
            needs[method, target] = "not reached"
            if 0 < k < len(errors):
                part = math.log(errors[k - 1] / target) / math.log(errors[k - 1] / errors[k])
                cost, seconds, tol = (
                    math.exp((1 - part) * math.log(one) + part * math.log(other))
                    for one, other in (
                        costs[k - 1 : k + 1],
                        (bare[k - 1], bare[k]),
                        TOLERANCES[k - 1 : k + 1],
                    )
                )
                needs[method, target] = f"{tol:.0e}: {cost:,.0f}, {seconds:.2f} s"
            elif k == 0:
                needs[method, target] = f"≤ {costs[0]:,}, {bare[0]:.2f} s at 1e-3"
    print("\n| method | global 1e-4: tolerance, factors, time | global 1e-6 |\n|---|---|---|")
    for method in METHODS:
        print(f"| {method} | {needs[method, 1e-4]} | {needs[method, 1e-6]} |")
    blind = [share(march(circuit, begin, method, 1e-5, wanted, inside=False), right) for method in METHODS]
    print("\nWithout a look inside the steps, at 1e-5: " + ", ".join(f"{k} {e:.1e}" for k, e in zip(METHODS, blind)))


# ------------------------------------------------------------------------------------------------------------- ngspice
DECK = """voltage multiplier
Vin a 0 SIN(0 50 100k)
Rs a p 0.01
Ca p q 100n
Da 0 p DM
Cb 0 m 100n
Db p m DM
Cc p q 100n
Dc m q DM
Cd m out 100n
Dd q out DM
.model DM D(IS=76.9p RS=42m N=1.45 BV=1k IBV=5u)
.tran 1u 5m 0 {longest} UIC
.options {options}
.control
run
{save}
.endc
.end
"""


def ngspice() -> None:
    """ngspice on the multiplier."""
    circuit, begin = multiplier()
    rows_ = []
    with tempfile.TemporaryDirectory() as folder:
        for method, reltol, longest in itertools.product(
            ("trap", "gear"), (1e-3, 1e-6), ("1u", "100n", "20n", "5n", "2n")
        ):
            deck, out = Path(folder, "deck.cir"), Path(folder, "out.txt")
            out.unlink(missing_ok=True)
            for save in ("", f"wrdata {out} v(out)"):
                options = f"method={method} reltol={reltol:g} abstol=1e-12 vntol=1e-9"
                deck.write_text(DECK.format(longest=longest, options=options, save=save), encoding="utf-8")
                before = os.times()
                subprocess.run(["ngspice", "-b", str(deck)], capture_output=True, check=False)
                after = os.times()
                if not save:
                    spent = after.children_user + after.children_system - before.children_user - before.children_system
            if out.exists():
                data = np.loadtxt(out)
                rows_.append((method, reltol, longest, spent, len(data), data[:: max(1, len(data) // 20000)]))
    wanted = np.unique(np.concatenate([seen[:, 0] for *_, seen in rows_]))
    right = march(circuit, begin, "ESDIRK 4(3), 2016", 1e-8, wanted[wanted <= 5e-3]).wave[:, 0]
    print("\n### ngspice on the multiplier\n\n| method | reltol | longest step | s | points | error | ends at |")
    print("|---|---|---|---|---|---|---|")
    for method, reltol, longest, spent, points, seen in rows_:
        last = seen[-1, 0]
        seen = seen[seen[:, 0] <= 5e-3]
        off = np.abs(seen[:, 1] - right[np.searchsorted(wanted, seen[:, 0])]).max() / np.abs(right).max()
        print(f"| {method} | {reltol:.0e} | {longest} | {spent:.2f} | {points:,} | {off:.1e} | {last:.4g} s |")


if __name__ == "__main__":
    print(f"Load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors.")
    checked()
    chosen = sys.argv[1:] or [*CIRCUITS, "ngspice"]
    for name in chosen:
        if name == "ngspice":
            ngspice()
        else:
            measured(name)
