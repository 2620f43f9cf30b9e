"""Store the answers of an installed circuitsim: ``python tests/contract/freeze.py [--family NAME …] [--jobs N]``.

Run once, at 2634b2ce. Later changes are amendments (`check.py --amend`); freezing anew would hide them.
"""

from __future__ import annotations

from check import LISTS, arguments, computed
from store import write_family, write_json


def main() -> None:
    """Freeze the families asked for."""
    options = arguments(__doc__ or "")
    for family in options.family:
        found = computed(family, options)
        if family in LISTS:
            write_json(family, found)
        else:
            write_family(family, [answer for answer, _ in found.values()], [crc for _, crc in found.values()])


if __name__ == "__main__":
    main()
