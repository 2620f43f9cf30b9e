"""Roles of a circuit that learns: which sources are inputs, what is read, which values are trainable."""

from circuitsim.netlist.roles import Adjustable, Roles, make_roles, read_roles

__all__ = ["Adjustable", "Roles", "make_roles", "read_roles"]
