"""Build the site of the documentation into build/site: ``python scripts/make_site.py``.

Where ``make lite`` has built the site that runs the notebooks, it becomes a part of this one, and their pages link to it.
Every warning counts as an error: a link that leads nowhere, a name in a docstring that is not there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SITE: Final = ROOT / "build" / "site"
LITE: Final = "lite"
"""The folder beside the site that ``make lite`` fills, and its copy in the site."""


def main(site: Path = SITE) -> int:
    """Build it anew, so that no page of an earlier build stays; the exit code."""
    shutil.rmtree(site, ignore_errors=True)
    done = subprocess.run([sys.executable, "-m", "sphinx", *arguments(site)], cwd=ROOT, check=False)
    if (lite := site.parent / LITE).is_dir():
        shutil.copytree(lite, site / LITE)
    if done.returncode == 0:
        print(f"The site: {site / 'index.html'}")
    return done.returncode


def arguments(site: Path) -> list[str]:
    """What Sphinx is told. Its cache stays out of the site, and is not used again: it costs errors their say."""
    strict = ["--quiet", "--fail-on-warning", "--keep-going", "--fresh-env"]
    sphinx_options = ["--conf-dir", "docs/site", "--doctree-dir", f"{site}-cache"]
    return [*strict, "--builder", "html", *sphinx_options, ".", str(site)]


if __name__ == "__main__":
    sys.exit(main())
