"""Build the site of the documentation into build/site: ``python scripts/make_site.py``.

The site begins with the levels. It includes the notebooks that run in the browser if ``make lite`` has built them. Every
warning, such as a broken link or an unknown name in a docstring, is an error.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from materia_nb.lessons.questions import write_levels

ROOT: Final = Path(__file__).resolve().parent.parent
SITE: Final = ROOT / "build" / "site"
LITE: Final = "lite"
"""The folder with the result of ``make lite``, and the folder of its copy in the site."""


def main(site: Path = SITE) -> int:
    """Build the site from scratch, and return the exit code."""
    shutil.rmtree(site, ignore_errors=True)
    done = subprocess.run([sys.executable, "-m", "sphinx", *arguments(site)], cwd=ROOT, check=False)
    write_levels(site / "levels")
    if (lite := site.parent / LITE).is_dir():
        shutil.copytree(lite, site / LITE)
    if done.returncode == 0:
        print(f"The site: {site / 'index.html'}")
    return done.returncode


def arguments(site: Path) -> list[str]:
    """Return the arguments for Sphinx. They disable its cache, because cached pages hide their warnings."""
    strict = ["--quiet", "--fail-on-warning", "--keep-going", "--fresh-env"]
    sphinx_options = ["--conf-dir", "docs/site", "--doctree-dir", f"{site}-cache"]
    return [*strict, "--builder", "html", *sphinx_options, ".", str(site)]


if __name__ == "__main__":
    sys.exit(main())
