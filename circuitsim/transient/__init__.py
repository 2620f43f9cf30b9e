"""Waveforms of circuits with capacitors, inductors and ideal diodes: exact between events, events located as roots.

Between two events (a diode changes its state, a source has a corner) the circuit is a linear system of the source
waveforms' states, the capacitors' voltages and the inductors' currents, and its waveforms are matrix exponentials.
"""

from circuitsim.transient.functionals import EventTime, EventValue, Integral, Value
from circuitsim.transient.gradients import WaveformGradient, waveform_gradient
from circuitsim.transient.implicit_result import ImplicitResult
from circuitsim.transient.measure import Measurement, measure
from circuitsim.transient.measure_gradients import measure_gradient
from circuitsim.transient.problem import Switch
from circuitsim.transient.result import Event, TransientResult
from circuitsim.transient.run import Method, transient
from circuitsim.transient.settling import Settling, SettlingResult, StepCircuit, settling_energy
from circuitsim.transient.steady import PeriodicResult, Shooting, steady_state_periodic
from circuitsim.transient.waveforms import (
    Exponential,
    FrequencyModulation,
    PiecewiseLinear,
    Pulse,
    Sine,
    Waveform,
)

__all__ = [
    "Event", "EventTime", "EventValue", "Exponential", "FrequencyModulation", "ImplicitResult", "Integral",
    "Measurement", "Method", "PeriodicResult", "PiecewiseLinear", "Pulse", "Settling", "SettlingResult", "Shooting",
    "Sine", "StepCircuit", "Switch", "TransientResult", "Value", "Waveform", "WaveformGradient", "measure",
    "measure_gradient", "settling_energy", "steady_state_periodic", "transient", "waveform_gradient",
]  # fmt: skip
