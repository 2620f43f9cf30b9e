"""Learning rules by name. A rule is a frozen value with ``estimate(problem)``; each has a file of its own.

| name | rule | source |
|---|---|---|
| ``ep`` | `EquilibriumPropagation` | Scellier & Bengio 2017; Scellier 2024, App. B, F; Nest & Ernoult 2024, Thm 3.1 |
| ``bp`` | `TruncatedBackpropagation` | Nest & Ernoult 2024, Algorithm 12 |
| ``implicit`` | `ImplicitDifferentiation` | its limit of many sweeps |
| ``coupled`` | `CoupledLearning` | Stern, Hexner, Rocks & Liu 2021 |
| ``frequency`` | `FrequencyPropagation` | Anisetti, Kandala, Scellier & Schwarz 2024 |
| ``agnostic`` | `AgnosticPropagation` | Scellier, Mishra, Bengio & Ollivier 2022 |
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from circuitsim.blocks.propagation import check_named
from circuitsim.learning.agnostic import AgnosticPropagation
from circuitsim.learning.coupled import CoupledLearning
from circuitsim.learning.equilibrium import EquilibriumPropagation
from circuitsim.learning.estimate import Rule
from circuitsim.learning.frequency import FrequencyPropagation
from circuitsim.learning.implicit import ImplicitDifferentiation
from circuitsim.learning.nudges import NUDGES
from circuitsim.learning.truncated import TruncatedBackpropagation

RULES: dict[str, Any] = {
    "ep": EquilibriumPropagation,
    "bp": TruncatedBackpropagation,
    "implicit": ImplicitDifferentiation,
    "coupled": CoupledLearning,
    "frequency": FrequencyPropagation,
    "agnostic": AgnosticPropagation,
}


def rule_named(method: str | Rule, known: Collection[str] = RULES, **options: Any) -> Rule:
    """The rule of a name, with those of the options that it has; a rule as it is; an instance of a class.

    Parameters
    ----------
    method : str, Rule or its class
    known : collection of str
        Names to choose from.
    **options
        Fields of rules; ``nudging`` may be a name in `NUDGES`, or such a name with fields that differ: ``{"current":
        {"tolerance": 1e-9}}``.

    Raises
    ------
    UsageError
        A name that is not known, or a value that the rule refuses.
    """
    if not isinstance(method, str):
        return method() if isinstance(method, type) else method
    check_named(method=(method, known))
    nudging = options.get("nudging")
    if isinstance(nudging, str):
        nudging = {nudging: {}}
    if isinstance(nudging, Mapping):
        ((name, changed),) = nudging.items()
        of: Any = type(NUDGES[name])
        options["nudging"] = of(**changed)
    kind = RULES[method]
    return kind(**{field.name: options[field.name] for field in dataclasses.fields(kind) if field.name in options})


def describe_rule(rule: Rule) -> dict[str, Any]:
    """A rule as the arguments of `Chaining`; none for a rule of your own."""
    named = {type(nudging): name for name, nudging in NUDGES.items()}
    for method, kind in RULES.items():
        if type(rule) is kind:
            table = {"method": method, **vars(rule)}
            nudging = table.get("nudging")
            return table if nudging is None else table | {"nudging": {named[type(nudging)]: vars(nudging)}}
    return {}


def Chaining(
    method: str | Rule = "ep",
    beta: float = 0.02,
    form: str = "explicit",
    last: str = "stationary",
    scale_errors: bool = True,
    allow_nonconvex: bool = False,
    **fields: Any,
) -> Rule:
    """The rule of a chain after Nest & Ernoult (2024).

    Parameters
    ----------
    method : {"ep", "bp", "implicit"} or Rule
        ``ep``: blocks are relaxed with the error as nudge of either sign at their outputs (equilibrium propagation).
        ``bp``: backpropagation through as many free sweeps of relaxed blocks as a nudged phase makes (Algorithm 12);
        a block without sweeps gives its exact limit. ``implicit``: that limit for all blocks.
    beta : float
        Strength of the nudge, of either sign, relative to the block's own stiffness (`unit`): about how far the output
        moves that moves furthest.
    form : {"explicit", "implicit"}
        Whether the stages before a block receive the difference of its two states (Algorithm 4), or each state in turn
        (Algorithm 2). The results agree at every β.
    last : {"stationary", "elastic"}
        Whether the error at the last block stays as it was at the free state or follows the state (Algorithms 7, 9).
    scale_errors : bool
        Divide each sample's error by its largest entry before a block is relaxed, and multiply after: β is then the
        largest pull on any output, for every loss, and round-off is the same from block to block.
    allow_nonconvex : bool
        Compute with samples too whose nudged energy is not convex (an elastic nudge too strong for the last block).
        Otherwise they are left out; either way they count as uncertified.
    **fields
        Further fields of the rule.

    Raises
    ------
    UsageError
        A name that does not exist, or a β that is zero or no number.
    """
    nudges = {"stationary": "constant", "elastic": "current"}
    check_named(last=(last, nudges))
    chosen = {
        "beta": beta,
        "nudging": nudges[last],
        "relative": True,
        "bracket": False,
        "form": form,
        "allow_nonconvex": allow_nonconvex,
        "scale_errors": scale_errors and last == "stationary",
    }
    return rule_named(method, **{**chosen, **fields})
