"""Circuits with controlled sources: equations, complementarity problem of the diodes, verdict, certificate.

For given states of the diodes such a circuit is linear and unsymmetric; it has no energy function, may have several
operating points, or none. The convex engine is not involved, except for circuits whose control graph has no loop.
"""
