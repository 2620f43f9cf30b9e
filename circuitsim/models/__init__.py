"""The table of element models: elementary elements (`elementary`), devices (one file each) and controlled sources.

A circuit stores an element's row number as its code. The first seven rows are elementary elements, whose codes the
program and its kernels use. The later rows are devices, which consist of elementary elements (``expand`` lists them,
``collapse`` makes their currents the device's: `circuitsim.circuit.expansion`), and controlled sources
(`circuitsim.controlled`). A new device needs a file and a row here.
"""

from __future__ import annotations

from circuitsim.models import (
    controlled_sources,
    elementary,
    formula_law,
    junction_diode,
    limiter,
    piecewise_diode,
    rounded_diode,
    sinh_cell,
    table,
    varistor,
)
from circuitsim.models.base import Device, ElementModel, Multiplier, Parameter, Part, Region
from circuitsim.models.junction_diode import JunctionDiode
from circuitsim.models.limiter import Limiter
from circuitsim.models.piecewise_diode import PiecewiseLinearDiode, zener
from circuitsim.models.rounded_diode import RoundedDiode
from circuitsim.models.sinh_cell import SinhCell
from circuitsim.models.smooth import SmoothDevice
from circuitsim.models.table import Table
from circuitsim.models.varistor import Varistor

MODELS: tuple[ElementModel, ...] = (
    *elementary.MODELS,
    rounded_diode.MODEL,
    piecewise_diode.MODEL,
    junction_diode.MODEL,
    limiter.MODEL,
    varistor.MODEL,
    sinh_cell.MODEL,
    table.MODEL,
    formula_law.MODEL,
    formula_law.OF_CURRENT,
    *controlled_sources.CONTROLLED,
)

ELEMENTARY = 7
"""Rows before this one are elementary elements, in the order that kernels rely on; the others are devices."""

__all__ = [
    "ELEMENTARY",
    "MODELS",
    "Device",
    "ElementModel",
    "JunctionDiode",
    "Limiter",
    "Multiplier",
    "Parameter",
    "Part",
    "PiecewiseLinearDiode",
    "Region",
    "RoundedDiode",
    "SinhCell",
    "SmoothDevice",
    "Table",
    "Varistor",
    "zener",
]
