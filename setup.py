"""Build steps that setup.cfg cannot state.

Wheels hold the bundled decks, whose one copy is the folder ``netlists/``, and the manual page of ``circuitsim man``.
"""

import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

from distutils.command.install_data import install_data  # isort: skip  (setuptools brings distutils)

SOURCE = Path(__file__).parent / "netlists"
SUFFIXES = (".cir", ".csv", ".inc")


class BuildWithDecks(build_py):
    """Copy ``netlists/`` to ``circuitsim/examples/netlists/`` of the build."""

    def run(self) -> None:
        """The ordinary build, then the copies."""
        super().run()
        if self.editable_mode:
            return  # the package lies beside netlists/
        for source, target in self._copies():
            target.parent.mkdir(parents=True, exist_ok=True)
            self.copy_file(str(source), str(target))

    def _copies(self) -> list[tuple[Path, Path]]:
        target = Path(self.build_lib) / "circuitsim" / "examples" / "netlists"
        found = sorted(path for path in SOURCE.rglob("*") if path.suffix in SUFFIXES)
        return [(path, target / path.relative_to(SOURCE)) for path in found]

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """All files of the build, the decks among them."""
        return super().get_outputs(include_bytecode) + [str(target) for _, target in self._copies()]


class InstallWithManual(install_data):
    """Write the manual page, and install it."""

    def run(self) -> None:
        """The page from the parsers of this very source, then the ordinary installation."""
        page = Path(self.get_finalized_command("build").build_base).resolve() / "circuitsim.1"
        page.parent.mkdir(parents=True, exist_ok=True)
        words = [sys.executable, "-m", "circuitsim", "man", "--output", str(page)]
        subprocess.run(words, cwd=Path(__file__).parent, check=True)
        self.data_files = [("share/man/man1", [str(page)])]
        super().run()


setup(
    cmdclass={"build_py": BuildWithDecks, "install_data": InstallWithManual},
    data_files=[("share/man/man1", [])],
)
