"""What a solver hands back: potentials, and how it got them. Whether they are right is the certificate's business."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Solution(NamedTuple):
    """Potentials of a program.

    Attributes
    ----------
    x : (n + 1,) float array
        Super-node potentials, V; x[n] = 0.
    solver : str
        Name of the method.
    info : dict
        Counts of its work (rounds, sweeps …) and, where it stopped short, ``"stopped"`` with the reason.
    """

    x: np.ndarray
    solver: str
    info: dict[str, object]
