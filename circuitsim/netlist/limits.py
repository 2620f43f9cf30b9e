"""Limits on work and memory. Length is unlimited: a long deck is legal, an exploding one is not."""

TEXT = 1 << 29
"""Total characters of deck text, each included file counted every time."""

INCLUDES = 100_000
"""Total number of included files."""

INCLUDE_DEPTH = 64
"""Nesting depth of included files."""

CALL_DEPTH = 200
"""Nesting depth of sub-circuit calls."""

EXPANSION = 5_000_000
"""Number of elements, nodes and calls after expansion of sub-circuits."""

EXPANSION_CHARACTERS = 400_000_000
"""Total characters of the names after expansion."""

EXPRESSION_DEPTH = 100
"""Nesting depth of parentheses, function arguments and conditions."""

FUNCTION_DEPTH = 40
"""Nesting depth of function calls."""

OPERATIONS = 1_000_000
"""Steps of one expression, including the functions it calls."""

ALL_OPERATIONS = 30_000_000
"""Steps of all expressions of one elaboration."""

RAMPS = 10_000
"""Number of breakpoints of one piecewise-linear expression, each of three elements."""

CONDITIONS = 200
"""Number of comparisons of voltages and currents in the conditions of one expression."""

VARIANTS = 64
"""Number of variants of one sub-circuit, one per outcome of its conditions."""

PROBLEMS = 10_000
"""Number of problems after which reading stops."""

SWEEP_POINTS = 1_000_000
"""Number of points of one sweep."""

PATH = 4096
"""Characters of an included file's path, whose resolution takes quadratic time."""
