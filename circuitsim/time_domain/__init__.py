"""Transient analysis of circuits with capacitors, inductors and ideal diodes: exact between events, located as roots.

Between two events (a change of a diode's state, a corner of a source) the circuit is a linear system in the states of
the source waveforms, the capacitor voltages and the inductor currents, so its waveforms are matrix exponentials.
"""

from circuitsim.analysis.switching import Switch
from circuitsim.circuit.waveforms import (
    Exponential,
    FrequencyModulation,
    PiecewiseLinear,
    Pulse,
    Sine,
    Waveform,
)
from circuitsim.measurements import Measurement
from circuitsim.time_domain.fourier import FourierSeries, fourier
from circuitsim.time_domain.functionals import EventTime, EventValue, Integral, Value
from circuitsim.time_domain.gradients import WaveformGradient, measure_gradient, waveform_gradient
from circuitsim.time_domain.implicit_result import ImplicitResult
from circuitsim.time_domain.result import Event, TransientResult
from circuitsim.time_domain.run import Method, transient
from circuitsim.time_domain.settling import Settling, SettlingResult, StepCircuit, settling_energy
from circuitsim.time_domain.signals import measure
from circuitsim.time_domain.steady import ImplicitPeriodicResult, PeriodicResult, Shooting, steady_state
from circuitsim.time_domain.stepped import TransientSweep, transient_sweep

__all__ = [
    "Event",
    "EventTime",
    "EventValue",
    "Exponential",
    "FourierSeries",
    "FrequencyModulation",
    "ImplicitPeriodicResult",
    "ImplicitResult",
    "Integral",
    "Measurement",
    "Method",
    "PeriodicResult",
    "PiecewiseLinear",
    "Pulse",
    "Settling",
    "SettlingResult",
    "Shooting",
    "Sine",
    "StepCircuit",
    "Switch",
    "TransientResult",
    "TransientSweep",
    "Value",
    "Waveform",
    "WaveformGradient",
    "fourier",
    "measure",
    "measure_gradient",
    "settling_energy",
    "steady_state",
    "transient",
    "transient_sweep",
    "waveform_gradient",
]
