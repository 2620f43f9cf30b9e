"""The documentation site is built without warnings, and its reference has every public name."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from helpers import site_settings

ROOT = Path(__file__).parents[1]


def check_gallery(site: ModuleType, built: Path) -> None:
    """The build drew twenty figures or more, each by its command."""
    page = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")
    wanted = re.findall(r"\(gallery/([\w-]+\.png)\)", page)
    assert len(wanted) >= 20 and len(site.gallery_commands()) == len(wanted)
    made = {name: (built / "_images" / name).read_bytes() for name in wanted}
    assert all(content.startswith(b"\x89PNG") and len(content) > 8_000 for content in made.values())


def test_every_page_is_in_readme_or_the_index() -> None:
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = {line.strip() for line in index.splitlines()}
    for page in (ROOT / "docs").glob("*.md"):
        assert page.stem in listed or f"docs/{page.name}" in readme or page.stem == "index", page.name


def test_the_site_has_every_public_name_and_figure(tmp_path: Path) -> None:
    for package in ("sphinx", "numpydoc", "myst_nb", "ipykernel"):
        pytest.importorskip(package, reason=f"{package} is not installed (extra docs)")
    pytest.importorskip("sklearn", reason="the reference has estimators")
    needed = ",".join(own for own in site_settings().extensions if own != "sphinx.ext.viewcode")
    settings = f"-D nb_execution_mode=off -D extensions={needed}".split()
    sphinx = "import gc, sys; from sphinx.cmd.build import main; gc.disable(); sys.exit(main(sys.argv[1:]))"
    build = [sys.executable, "-c", sphinx, "-W", "-q", "--keep-going", *settings, "docs", str(tmp_path / "site")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    site = site_settings()
    check_gallery(site, tmp_path / "site")
    assert not (ROOT / "docs/gallery").exists() and not (ROOT / "docs/reference").exists()
    for module in site.PUBLIC:
        text = (tmp_path / f"site/reference/{module}.html").read_text(encoding="utf-8")
        for name in site.public_names(module):
            own = f'id="{module}.{name}"' in text
            elsewhere = f'<span class="pre">{name}</span>' in text and ": see <" in text
            assert own or elsewhere, f"{module}.{name}"
    assert (tmp_path / "site/search.html").is_file() and (tmp_path / "site/searchindex.js").stat().st_size > 100_000


@pytest.mark.parametrize("path", sorted((ROOT / "docs/notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_run_and_show_pictures(path: Path) -> None:
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    shown = ""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert not cell["outputs"], "outputs are not committed"
            done = shell.run_cell("".join(cell["source"]))
            done.raise_error()
            shown += str(shell.display_formatter.format(done.result))
    assert "<svg" in shown
