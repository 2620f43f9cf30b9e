"""Pictures that commands write."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from circuitsim.cli.output import check_target, save
from circuitsim.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from circuitsim.analysis import OperatingPoint, Sweep
    from circuitsim.analysis.curve import Curve
    from circuitsim.analysis.ir_drop import IrDrop
    from circuitsim.analysis.sensitivity import Sensitivity
    from circuitsim.formats.table import Table
    from circuitsim.time_domain import TransientResult
    from circuitsim.tolerance import MonteCarlo, WorstCase
    from circuitsim.tolerance.design import Design

FORMATS = (".png", ".svg", ".pdf")


def check_drawing(path: str, decks: Sequence[str], output: str | None, option: str = "--plot") -> None:
    """Refuse a picture that cannot be written, before any work is done.

    Raises
    ------
    UsageError
        An unknown format, the deck, the result's own file, or a folder that does not exist.
    """
    if os.path.splitext(path)[1].lower() not in FORMATS:
        raise UsageError(f"{option} {path!r}: the name must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    check_target(path, decks, option)
    if output is not None and os.path.realpath(path) == os.path.realpath(output):
        raise UsageError(f"{option} and --output name the same file {path!r}")


def draw(point: OperatingPoint, path: str) -> None:
    """Draw a circuit with its voltages and currents into a file."""
    from circuitsim.plotting import draw_circuit

    _save(draw_circuit(point), path)


def draw_sweep(sweep: Sweep, path: str) -> None:
    """Plot the columns of a sweep into a file."""
    from circuitsim.plotting import plot_sweep

    _save(plot_sweep(sweep), path)


def draw_sensitivity(found: Sensitivity, path: str) -> None:
    """Plot the effects of 1 % of each number into a file."""
    from circuitsim.plotting.bars import plot_sensitivity

    _save(plot_sensitivity(found), path)


def draw_montecarlo(found: MonteCarlo, path: str) -> None:
    """Plot histograms and contributions into a file."""
    from circuitsim.plotting.bars import plot_montecarlo

    _save(plot_montecarlo(found), path)


def draw_worst_case(found: WorstCase, path: str) -> None:
    """Draw the proven ranges into a file."""
    from circuitsim.plotting.bars import plot_worst_case

    _save(plot_worst_case(found), path)


def draw_design(found: Design, path: str) -> None:
    """Draw the values of a design and what they reach into a file."""
    from circuitsim.plotting.bars import plot_design

    _save(plot_design(found), path)


def draw_drops(found: IrDrop, path: str) -> None:
    """Draw the voltage drops of a power grid over its plane into a file."""
    from circuitsim.plotting.ir_drop import plot_drops

    _save(plot_drops(found), path)


def draw_waveforms(result: TransientResult, table: Table, path: str) -> None:
    """Plot waveforms and the states of diodes over time into a file."""
    from circuitsim.plotting.transient import plot_waveforms

    _save(plot_waveforms(result, table), path)


def draw_bode(name: str, table: Table, path: str) -> None:
    """Draw responses over frequency into a file."""
    from circuitsim.plotting.bode import plot_bode

    _save(plot_bode(name, table), path)


def draw_curve(curve: Curve, path: str) -> None:
    """Draw a curve of current over voltage into a file."""
    from circuitsim.plotting.curve import plot_curve

    _save(plot_curve(curve), path)


def _save(figure: Figure, path: str) -> None:
    from circuitsim.plotting import rendered

    save(rendered(figure, os.path.splitext(path)[1][1:].lower()), path)
