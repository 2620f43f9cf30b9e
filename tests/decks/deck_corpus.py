"""The corpus of decks: ``DIALECT/NAME.cir`` beside ``NAME.json``, which holds the answer and where it comes from.

Keys of the answer:

``source``      ``"by hand"``, or the program and version that gave the numbers (``"ngspice 39"``)
``v(a)`` …      a number: of the operating point; a list: of the rows of the deck's own sweep, in its order
``tolerance``   relative to the largest expected value of that name; 1e-9 if it is not given
``says``        texts that warnings or notes must hold; a deck without the key may say nothing
``error``       for decks that are refused: a text of the message, and ``place``: [line, column]
``options``     further words of the command line (``["--no-title"]``)
"""

import json
import math
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
DIALECTS = ("ngspice", "ltspice", "xyce", "pspice")
ABOUT = frozenset(("source", "tolerance", "says", "error", "place", "options"))


def decks() -> list[Path]:
    """All decks that have an answer beside them."""
    return sorted(path for dialect in DIALECTS for path in (FOLDER / dialect).glob("*.cir"))


def answer(deck: Path) -> dict[str, Any]:
    """What stands beside a deck."""
    return json.loads(deck.with_suffix(".json").read_text(encoding="utf-8"))


def quantities(expected: dict[str, Any]) -> dict[str, list[float]]:
    """The expected quantities by name, one value a row."""
    found = {name: value for name, value in expected.items() if name not in ABOUT}
    return {name: value if isinstance(value, list) else [value] for name, value in found.items()}


def differences(expected: dict[str, Any], columns: dict[str, list[float]]) -> list[str]:
    """What of ``columns`` is not as expected, in words."""
    tolerance, wrong = expected.get("tolerance", 1e-9), []
    for name, values in quantities(expected).items():
        rows = columns[name]
        scale = max(abs(v) for v in values)
        if len(rows) != len(values):
            wrong.append(f"{name}: {len(rows)} rows, {len(values)} expected")
        elif not all(math.isclose(a, b, rel_tol=0.0, abs_tol=tolerance * scale) for a, b in zip(rows, values)):
            wrong.append(f"{name}: {rows}, expected {values}")
    return wrong
