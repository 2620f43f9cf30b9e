"""Newton's method for circuits with smooth devices, compiled into one kernel."""
