"""Studies of ``circuitsim reproduce``: one module each."""
