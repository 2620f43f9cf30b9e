"""Limits on work and memory. None is on length: a long deck is legal, one that explodes is not."""

TEXT = 1 << 29
"""Characters of deck text in all, a file counted each time it is included."""

INCLUDES = 100_000
"""Files included in all."""

INCLUDE_DEPTH = 64
"""Files that include each other, one inside the other."""

CALL_DEPTH = 200
"""Sub-circuit calls one inside the other."""

EXPANSION = 5_000_000
"""Elements, nodes and calls that sub-circuits expand to."""

EXPANSION_CHARACTERS = 400_000_000
"""Characters of the names that sub-circuits expand to."""

EXPRESSION_DEPTH = 100
"""Parentheses, function arguments and conditions one inside the other."""

FUNCTION_DEPTH = 40
"""Functions that call each other, one inside the other."""

OPERATIONS = 1_000_000
"""Steps of one expression, the functions it calls included."""

ALL_OPERATIONS = 30_000_000
"""Steps of all expressions of one elaboration."""

RAMPS = 10_000
"""Breakpoints of one piecewise-linear expression: three elements each."""

CONDITIONS = 200
"""Comparisons of voltages and currents in one expression of conditions."""

VARIANTS = 64
"""Outcomes of the conditions of one sub-circuit, for each of which it is read."""

PROBLEMS = 10_000
"""Problems after which reading stops."""

SWEEP_POINTS = 1_000_000
"""Points of one sweep."""

PATH = 4096
"""Characters of an included file's path (resolving one takes the square of its length)."""
