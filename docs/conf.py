"""The documentation site: python -m sphinx -W --keep-going -b html docs docs/_build (extra ``docs``).

Pages are the Markdown files of this folder and the notebooks in `notebooks`. The reference is made here from
``__all__`` of the public packages.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import os
import re
import shutil
from pathlib import Path
from typing import Any

from circuitsim._version import __version__

project = "circuitsim"
copyright = "the authors of circuitsim"
version = release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "numpydoc"]
exclude_patterns = ["_build", "images", "gallery"]
FOLDERS = "reference", "gallery"
html_theme, html_title = "furo", "circuitsim"
myst_heading_anchors = 4
# Notebooks are executed whenever the site is built; a cell that fails is an error.
nb_execution_mode, nb_execution_raise_on_error, nb_execution_timeout = "force", True, 300
nb_output_stderr = "remove"
myst_enable_extensions = ["dollarmath"]
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_typehints = "none"
default_role = "literal"
# Links to files of the repository outside this folder stay as they are written.
suppress_warnings = ["myst.xref_missing", "myst.header"]

PUBLIC = (
    "circuitsim",
    "circuitsim.netlist",
    "circuitsim.circuit",
    "circuitsim.elements",
    "circuitsim.roles",
    "circuitsim.families",
    "circuitsim.models",
    "circuitsim.controlled",
    "circuitsim.analysis",
    "circuitsim.time_domain",
    "circuitsim.fitting",
    "circuitsim.small_signal",
    "circuitsim.effective",
    "circuitsim.tolerance",
    "circuitsim.formats",
    "circuitsim.plotting",
    "circuitsim.report",
    "circuitsim.examples",
    "circuitsim.trained",
    "circuitsim.blocks",
    "circuitsim.learning",
    "circuitsim.training",
    "circuitsim.layered",
    "circuitsim.hopfield",
    "circuitsim.boltzmann",
    "circuitsim.ffebm",
    "circuitsim.datasets",
    "circuitsim.errors",
    "circuitsim.certificate",
    "circuitsim.units",
    *(f"circuitsim.{name}" for name in ("torch", "jax") if importlib.util.find_spec(name)),  # where they are installed
)


MADE = "set_fit_request, set_partial_fit_request, set_predict_request, set_score_request, set_transform_request"
"""Methods that scikit-learn adds to its estimators."""


def public_names(module: str) -> list[str]:
    """The names a package states in ``__all__``, or those a module defines without an underscore."""
    found = importlib.import_module(module)
    if hasattr(found, "__all__"):
        return [name for name in found.__all__ if not name.startswith("_")]
    return [
        name
        for name, value in vars(found).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module
    ]


def write_reference(folder: Path) -> None:
    """One page a package, one entry a public name."""
    folder.mkdir(exist_ok=True)
    for page in folder.iterdir():  # those of packages that are no more
        page.unlink()
    seen: dict[int, str] = {}
    about = "Every command, and every public name by package."
    lines = ["# Reference", "", about, "", "```{toctree}", ":maxdepth: 1", ""]
    for module in PUBLIC:
        (folder / f"{module}.rst").write_text(_page(module, seen), encoding="utf-8")
    text = "\n".join([*lines, "commands", *PUBLIC, "```", ""])
    (folder / "index.md").write_text(text, encoding="utf-8")


def _page(module: str, seen: dict[int, str]) -> str:
    found = importlib.import_module(module)
    first = (found.__doc__ or "").strip().split("\n")[0]
    parts = [module, "=" * len(module), "", first, "", f".. currentmodule:: {module}", ""]
    for name in public_names(module):
        value = getattr(found, name)
        first_place = seen.setdefault(id(value), f"{module}.{name}")
        if first_place != f"{module}.{name}" and callable(value):
            parts += [f"``{name}``: see :py:obj:`{first_place}`", ""]
        elif isinstance(value, type):
            parts += [f".. autoclass:: {module}.{name}", "   :members:", f"   :exclude-members: {MADE}", ""]
        elif callable(value):
            parts += [f".. autofunction:: {module}.{name}", ""]
        else:
            parts += [f".. autodata:: {module}.{name}", "   :no-value:", ""]
    return "\n".join(parts)


def write_commands(folder: Path) -> None:
    """A page with the help of every command, as a terminal of 100 columns shows it."""
    from circuitsim.cli import COMMANDS, below, build_parser

    os.environ["COLUMNS"] = "100"
    parts = ["# Commands", "", "The help of every command.", ""]
    program = build_parser(None)
    commands = [own for name in COMMANDS for own in below(build_parser(name)) if own.prog.split()[1] == name]
    for parser in (program, *commands):
        parts += [f"## {parser.prog}", "", "```text", parser.format_help().rstrip(), "```", ""]
    (folder / "commands.md").write_text("\n".join(parts), encoding="utf-8")


def gallery_commands() -> list[list[str]]:
    """The command of each figure of the gallery, as words."""
    text = (Path(__file__).parent / "gallery.md").read_text(encoding="utf-8")
    return [line.split()[1:] for line in text.split("\n") if line.startswith("    circuitsim ")]


def draw_gallery(folder: Path) -> None:
    """Run the commands of the gallery in a folder, which gets their pictures.

    Raises
    ------
    RuntimeError
        A command fails.
    """
    from circuitsim.cli import main

    folder.mkdir(exist_ok=True)
    decks = f"{Path(__file__).parents[1] / 'netlists'}/"
    with contextlib.chdir(folder):
        for words in gallery_commands():
            with contextlib.redirect_stdout(io.StringIO()):
                code = main(["-q", *(word.replace("netlists/", decks) for word in words)])
            if code:
                raise RuntimeError(f"circuitsim {' '.join(words)}: exit code {code}")


_MARKS = re.compile(r"(``.*?``|`[^`]*`)|([*|])|(?<=\w)(_)(?!\w)")


def escape_marks(app: object, what: str, name: str, of: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text with literals: products ``a * b`` and absolute values ``|v|`` are no markup."""
    for k, line in enumerate(lines):
        if not line.lstrip().startswith(("* ", ">>>", "...", "..")):
            lines[k] = _MARKS.sub(lambda found: found[1] or f"\\{found[2] or found[3]}", line)


def keep_templates() -> None:
    """Have templates of docstrings compiled once: numpydoc makes an environment of its own for each docstring."""
    from jinja2.bccache import Bucket, BytecodeCache
    from jinja2.sandbox import SandboxedEnvironment
    from numpydoc import docscrape_sphinx

    kept: dict[str, bytes] = {}

    class Compiled(BytecodeCache):
        """In memory."""

        def load_bytecode(self, bucket: Bucket) -> None:
            """Take what was compiled before."""
            if bucket.key in kept:
                bucket.bytecode_from_string(kept[bucket.key])

        def dump_bytecode(self, bucket: Bucket) -> None:
            """Keep what was compiled."""
            kept[bucket.key] = bucket.bytecode_to_string()

    docscrape_sphinx.SandboxedEnvironment = functools.partial(SandboxedEnvironment, bytecode_cache=Compiled())


def remove_made(app: object, error: object) -> None:
    """Remove the folders that the build made beside the pages."""
    for name in FOLDERS:
        shutil.rmtree(Path(__file__).parent / name, ignore_errors=True)


def setup(app: Any) -> None:
    """Write the reference before the pages are read, and remove it when the site is built."""
    keep_templates()
    app.connect("build-finished", remove_made)
    app.connect("autodoc-process-docstring", escape_marks, priority=100)
    reference, gallery = (Path(__file__).parent / name for name in FOLDERS)
    write_reference(reference)
    write_commands(reference)
    draw_gallery(gallery)
