"""Model families of ``circuitsim train``: one module each."""
