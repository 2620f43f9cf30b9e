"""Roles as directives of a deck."""

from __future__ import annotations

import math
from collections.abc import Sequence

from circuitsim.circuit import Circuit
from circuitsim.errors import UsageError
from circuitsim.netlist.roles import Adjustable, Roles, make_roles
from circuitsim.units import exact

WIDTH = 100
"""Most letters of a line."""


def directives(roles: Roles, circuit: Circuit, names: Sequence[str], nodes: Sequence[str]) -> list[str]:
    """The lines that give ``roles`` again in a deck whose elements and nodes have other names.

    The lines as they were, where they still mean the same; spelled out name by name elsewhere.

    Parameters
    ----------
    roles : Roles
        Of ``circuit``.
    names, nodes : sequence of str
        What the deck calls the elements and nodes of ``circuit``.
    """
    kind, first, second, value = circuit.columns()
    # A resistor may lie on its bound within rounding; only the matches of the patterns are used here.
    columns = kind, first, second, value
    written = Circuit.from_columns("", columns, list(names), list(nodes), devices=circuit.devices)
    renamed = _renamed(roles, circuit, names, nodes)
    try:
        same = make_roles(written, base=roles)[:3] == renamed[:3]
    except UsageError:
        same = False
    return [f"*! {line}" for line in (roles.lines if same else _spelled(renamed))]


def _renamed(roles: Roles, circuit: Circuit, names: Sequence[str], nodes: Sequence[str]) -> Roles:
    return Roles(
        tuple(names[circuit.element_index(name)] for name in roles.inputs),
        tuple((nodes[circuit.node_index(p)], nodes[circuit.node_index(q)]) for p, q in roles.outputs),
        tuple(Adjustable(_called(a.name, circuit, names), *a[1:]) for a in roles.trainable),
    )


def _called(name: str, circuit: Circuit, names: Sequence[str]) -> str:
    """What the deck calls an element, or a number of one."""
    if name in circuit:
        return names[circuit.element_index(name)]
    element, _, number = name.rpartition(".")
    return f"{names[circuit.element_index(element)]}.{number}"


def _spelled(roles: Roles) -> list[str]:
    """Roles name by name."""
    lines = _wrapped("input", roles.inputs)
    lines += _wrapped("output", roles.output_names)
    groups: dict[tuple[float, float], list[str]] = {}
    for name, low, high in roles.trainable:
        groups.setdefault((low, high), []).append(name)
    for (low, high), members in groups.items():
        options = [f"{word}={exact(bound)}" for word, bound in (("min", low), ("max", high)) if math.isfinite(bound)]
        lines += [" ".join([line, *options]) for line in _wrapped("trainable", members)]
    return lines


def _wrapped(word: str, names: Sequence[str]) -> list[str]:
    lines: list[str] = []
    for name in names:
        if lines and len(lines[-1]) + len(name) < WIDTH:
            lines[-1] += f" {name}"
        else:
            lines.append(f"{word} {name}")
    return lines
