"""Derivatives by parameters of devices on 30 random circuits: every rule against finite differences of the loss.

Usage: ``python benchmarks/learning/laws.py``. The circuits are those of ``tests/learning/test_law_parameters.py``: two
devices of each kind, 60 parameters of laws, between the free nodes of a resistor graph. Writes
``benchmarks/results/learning/laws.md``.
"""

from __future__ import annotations

import sys

import numpy as np
from common import ROOT, machine, write

sys.path.insert(0, str(ROOT / "tests" / "learning"))

from test_law_parameters import problem_of, random_block, slope_along

from circuitsim.learning import EquilibriumPropagation, FrequencyPropagation, ImplicitDifferentiation

RULES = {
    "ep, β = 1e-5": EquilibriumPropagation(1e-5),
    "frequency, γ = 1e-5": FrequencyPropagation(1e-5),
    "ep, β = 1e-3": EquilibriumPropagation(1e-3),
    "ep, β = 1e-2": EquilibriumPropagation(1e-2),
}


def main() -> None:
    """Measure and write."""
    off: dict[str, list[float]] = {name: [] for name in ("implicit", *RULES)}
    changed = dict.fromkeys(RULES, 0)
    for seed in range(30):
        block, x, y = random_block(seed)
        problem = problem_of(block, x, y)
        exact = ImplicitDifferentiation().estimate(problem).parameters["law"]
        size = np.abs(exact).max()
        measured = [slope_along(block, x, y, axis) for axis in np.eye(exact.size)]
        off["implicit"].append(float(np.abs(exact - measured).max() / size))
        for name, rule in RULES.items():
            found = rule.estimate(problem)
            if found.kinks is not None and found.kinks.changes.any():
                changed[name] += 1
            else:
                off[name].append(float(np.abs(found.parameters["law"] - exact).max() / size))
    rows = [
        f"| {name} | {'finite differences' if name == 'implicit' else 'implicit'} | {np.median(errors):.1e} | "
        f"{max(errors):.1e} | {changed.get(name, 0)} |"
        for name, errors in off.items()
    ]
    write(
        "laws.md",
        [
            "# Parameters of devices: rules against differences",
            "",
            f"`python benchmarks/learning/laws.py`: 30 random circuits, 60 parameters of laws each. {machine()}",
            "",
            "Largest error as a share of the largest derivative; circuits in which an ideal diode changes between the "
            "phases are counted and left out.",
            "",
            "| rule | against | median | most | with a kink |",
            "|---|---|--:|--:|--:|",
            *rows,
        ],
    )


if __name__ == "__main__":
    main()
