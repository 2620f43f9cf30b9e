"""Build steps that setup.cfg cannot state.

Wheels hold the bundled decks, whose one copy is the folder ``netlists/``.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

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


setup(cmdclass={"build_py": BuildWithDecks})
