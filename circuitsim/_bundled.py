"""Location of the bundled decks: inside the package in a wheel, ``netlists/`` in a checkout."""

from __future__ import annotations

import os

_PACKAGE = os.path.dirname(os.path.abspath(__file__))


def netlists() -> str:
    """The folder of the bundled decks; ``setup.py`` copies it into wheels."""
    installed = os.path.join(_PACKAGE, "examples", "netlists")
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(_PACKAGE), "netlists")


def parts() -> str:
    """The folder of the bundled sub-circuits, which any deck can include by name."""
    return os.path.join(netlists(), "parts")
