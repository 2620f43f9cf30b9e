"""``python -m circuitsim`` is the command ``circuitsim``."""

import sys

from circuitsim.cli import main

sys.exit(main())
