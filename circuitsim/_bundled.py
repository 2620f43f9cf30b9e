"""Where the bundled decks are: a wheel has them inside the package, a checkout in the folder ``netlists/``."""

from __future__ import annotations

import os

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def netlists() -> str:
    """The folder of the bundled decks; ``setup.py`` copies it into wheels."""
    installed = os.path.join(_PACKAGE, "examples", "netlists")
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(_PACKAGE), "netlists")


def parts() -> str:
    """The folder of the bundled sub-circuits, which every deck may include by name."""
    return os.path.join(netlists(), "parts")
