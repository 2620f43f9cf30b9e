"""What an installation holds: every package that circuitsim needs, its size on disk, and what it costs at import.

    python benchmarks/startup/packages.py [--old PYTHON]

``--old`` names the interpreter of another environment, whose circuitsim is put beside this one. Import times are
medians of the processor time of processes that import one package, less that of an empty process.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
REPEATS = 11

LIST = """
import json, re
from importlib.metadata import PackageNotFoundError, distribution
found, todo = {}, ["circuitsim-exact", "circuitsim"]
while todo:
    name = todo.pop().lower().replace("_", "-")
    if name in found:
        continue
    try:
        own = distribution(name)
    except PackageNotFoundError:
        continue
    files = own.files or []
    found[name] = [own.version, sum(file.locate().stat().st_size for file in files if file.locate().is_file())]
    todo += [re.match(r"[\\w.-]+", line)[0] for line in own.requires or [] if "extra ==" not in line]
print(json.dumps(found))
"""

MODULES = {"array-api-compat": "array_api_compat"}
"""Import names that differ from the distribution's."""

COMMANDS = {
    "import circuitsim": ["-c", "import circuitsim"],
    "circuitsim --help": ["-m", "circuitsim", "--help"],
    "circuitsim solve": ["-m", "circuitsim", "solve", str(ROOT / "netlists/rectifier-bridge.cir")],
}


def main() -> int:
    """Print both tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", metavar="PYTHON", help="interpreter of an environment with another version")
    options = parser.parse_args()
    pythons = [sys.executable, *([options.old] if options.old else [])]
    installed = [json.loads(run(python, ["-c", LIST]).stdout) for python in pythons]
    print(f"Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f}, processor time, medians of {REPEATS}\n")
    heads = ["now", "before"][: len(pythons)]
    print("| package | " + " | ".join(f"MB {head}" for head in heads) + " | import, ms |")
    print("|---|" + "---|" * (len(heads) + 1))
    empty = seconds(sys.executable, ["-c", "pass"])
    names = sorted({name for one in installed for name in one}, key=lambda n: -installed[0].get(n, [0, 0])[1])
    for name in names:
        sizes = [f"{one[name][1] / 1e6:.1f}" if name in one else "–" for one in installed]
        module = MODULES.get(name, name.replace("-", "_"))
        known = name in installed[0] and not name.startswith("circuitsim")
        took = imported(module, empty) if known else None
        print(f"| {name} | " + " | ".join(sizes) + f" | {'' if took is None else f'{1e3 * took:.0f}'} |")
    totals = [f"{sum(size for _, size in one.values()) / 1e6:.0f}" for one in installed]
    print("| all | " + " | ".join(totals) + " | |\n")
    print("| command | " + " | ".join(f"ms {head}" for head in heads) + " |\n|---|" + "---|" * len(heads))
    for name, words in COMMANDS.items():
        print(f"| {name} | " + " | ".join(f"{1e3 * seconds(python, words):.0f}" for python in pythons) + " |")
    return 0


def run(python: str, words: list[str]) -> subprocess.CompletedProcess[str]:
    """A process in an empty folder, without this checkout on its path."""
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([python, *words], capture_output=True, text=True, check=False, cwd=folder, env=own)


def seconds(python: str, words: list[str]) -> float:
    """The median processor time of a process that succeeds."""
    taken = []
    for _ in range(REPEATS):
        start = children()
        done = run(python, words)
        taken.append(children() - start)
        if done.returncode:
            raise SystemExit(f"{python} {' '.join(words)}: {done.stderr.strip()[-500:]}")
    return statistics.median(taken)


def children() -> float:
    """Processor time of all processes that have ended, s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def imported(module: str, empty: float) -> float | None:
    """What the import of a module takes; None where a distribution has no module of its name."""
    if run(sys.executable, ["-c", f"import {module}"]).returncode:
        return None
    return seconds(sys.executable, ["-c", f"import {module}"]) - empty


if __name__ == "__main__":
    raise SystemExit(main())
