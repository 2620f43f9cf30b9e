"""The solver engine: active sets of diodes over accurate linear solves in branch currents and node voltages."""
