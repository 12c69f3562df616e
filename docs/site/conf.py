"""How Sphinx makes the site of README.md, docs/, notebooks/ and the docstrings: ``make docs``.

The source folder is the repository itself, so that a link that works on GitHub works in the site, too. Nothing in
the pages is loaded from elsewhere: tests/release/test_site.py looks.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import nbformat
from docutils import nodes
from nbconvert import HTMLExporter
from sphinx import addnodes

import materia_nb.loadout
import materia_nb.widgets

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT: Final = Path(__file__).resolve().parent.parent.parent

# A third of the build would be garbage collection, mostly of page trees that are still in use. The process ends soon.
gc.disable()

project = "Materia NB"
author = "Materia NB contributors"
version = release = materia_nb.__version__
project_copyright = author

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
CONTRIBUTOR_PAGES: Final = ("CONTRIBUTING.md", "docs/architecture.md", "docs/decisions.md")
"""Pages for those who change the code. They stay in the repository: the site is for users."""

root_doc = "README"
include_patterns = ["*.md", "docs/**", "config/README.md"]
# Without these, which hold no page, whole environments would be searched for pages.
exclude_patterns = [
    ".*",
    "benchmarks",
    "binder",
    "build",
    "dist",
    "materia_nb",
    "notebooks",
    "scripts",
    "tests",
    *CONTRIBUTOR_PAGES,
]
templates_path = ["templates"]

# What a docstring refers to must be there. Types are not looked up: most of them belong to other libraries, whose
# pages would have to be asked over a network.
nitpicky = True
nitpick_ignore_regex = [("py:(class|obj)", ".*")]

myst_heading_anchors = 4  # the anchors that GitHub makes
myst_enable_extensions = ["alert"]  # notes and warnings as on GitHub
autodoc_default_options = {"members": True, "inherited-members": "BaseModel,Exception,tuple"}
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
napoleon_use_ivar = True  # "Attributes:" explains the fields of a dataclass, which then have no entry of their own

html_theme = "furo"
html_title = f"Materia NB {version}"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1d5f8a", "color-brand-content": "#1d5f8a"},
    "dark_css_variables": {"color-brand-primary": "#7fb8dd", "color-brand-content": "#7fb8dd"},
    "top_of_page_buttons": [],  # no page is edited from here
}
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_additional_pages = {"index": "front.html"}
html_context = {"lite": (ROOT / "build" / "lite").is_dir()}
html_copy_source = False
html_search_scorer = str(Path(__file__).with_name("scorer.js"))

BY_TASK: Final = {
    "Learn": ["index", "concepts", "lessons", "gallery", "glossary", "teaching"],
    "Design": ["designing", "before-you-run", "parallel", "combine-and-import", "loadouts"],
    "Debug": ["debugging", "panel", "change-and-recover", "compare-and-test", "find-runs"],
    "Run": [
        "agents-and-models",
        "tools-and-approval",
        "command-line-and-ci",
        "in-a-program",
        "experiments",
        "where-it-runs",
    ],
    "Reference": [
        "how-do-i",
        "commands",
        "python-api",
        "problems-and-hints",
        "loadout-format",
        "handoff-protocols",
        "rules",
    ],
}
"""The guides by what a reader wants to do, those first that are read first. Those that are not there are skipped,
and others of docs/ follow under Reference."""

CONTENTS: Final = """

```{{toctree}}
:hidden:
:titlesonly:
:caption: {caption}

{pages}
```
"""


def setup(app: Sphinx) -> None:
    """Connect what the pages do not say themselves, since GitHub shows them too."""
    for package in (materia_nb, materia_nb.loadout, materia_nb.widgets):
        for name in package.__all__:  # autodoc sees only names that are there: those that load on first use are not
            setattr(package, name, getattr(package, name))
    app.connect("source-read", unlink_contributor_pages)
    app.connect("source-read", add_contents)
    app.connect("doctree-read", link_notebooks, priority=100)  # before downloads are collected
    app.connect("doctree-read", add_dark_pictures, priority=100)  # before images are collected
    app.connect("html-collect-pages", notebook_pages)


def unlink_contributor_pages(app: Sphinx, page: str, source: list[str]) -> None:
    """Leave only the text of links to pages that the site does not contain."""
    names = "|".join(re.escape(Path(name).name) for name in CONTRIBUTOR_PAGES)
    source[0] = re.sub(rf"\[([^\]]+)\]\((?:\.\./|docs/)?(?:{names})(?:#[^)]*)?\)", r"\1", source[0])


def add_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the table of contents below the README."""
    if page != root_doc:
        return
    there = {path.stem for path in (ROOT / "docs").glob("*.md")}
    there -= {Path(name).stem for name in CONTRIBUTOR_PAGES}
    placed = {task: [name for name in names if name in there] for task, names in BY_TASK.items()}
    placed["Reference"] += sorted(there.difference(*placed.values()))
    parts = {task: [f"docs/{name}" for name in names] for task, names in placed.items()}
    parts["Design"].append("config/README")
    parts["Reference"].append("docs/api/index")
    parts["Project"] = ["CHANGELOG", "CODE_OF_CONDUCT", "SECURITY"]
    for caption, pages in parts.items():
        source[0] += CONTENTS.format(caption=caption, pages="\n".join(f"/{one}" for one in pages))


def link_notebooks(app: Sphinx, page: nodes.document) -> None:
    """Let a link to a notebook lead to its page; without this it would be a download."""
    here = (ROOT / app.env.docname).parent
    for link in list(page.findall(addnodes.download_reference)):
        target = here / link["reftarget"]
        if target.suffix == ".ipynb":
            uri = os.path.relpath(target.with_suffix(".html"), here)
            link.replace_self(nodes.reference("", "", *link.children, refuri=uri, internal=True))


def add_dark_pictures(app: Sphinx, page: nodes.document) -> None:
    """Show a picture that has a dark side, NAME-dark.png beside NAME.png, by the side that the reader chose."""
    here = (ROOT / app.env.docname).parent
    for image in list(page.findall(nodes.image)):
        path = Path(image["uri"])
        dark = path.with_stem(f"{path.stem}-dark")
        if not path.stem.endswith("-dark") and (here / dark).is_file():
            other = image.deepcopy()
            other["uri"], other["classes"] = dark.as_posix(), [*image["classes"], "only-dark"]
            image["classes"].append("only-light")
            image.parent.insert(image.parent.index(image) + 1, other)


def notebook_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Make a page of each notebook as it is stored, and put the notebook itself beside it."""
    exporter = HTMLExporter(template_name="basic")  # the body alone: the full page loads scripts from elsewhere
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        page = path.relative_to(ROOT).with_suffix("")
        kept = Path(app.outdir, page).with_suffix(".ipynb")
        kept.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, kept)
        body, _ = exporter.from_notebook_node(nbformat.read(path, as_version=4))
        link = f'<p><a href="{kept.name}" download>Download this notebook</a>{run_here(app, kept)}</p>'
        yield page.as_posix(), {"title": path.stem, "body": link + body}, "page.html"


def run_here(app: Sphinx, notebook: Path) -> str:
    """Link a notebook's page to where the notebook runs in the browser, if that site was built (``make lite``)."""
    if not Path(app.outdir).parent.joinpath("lite", "files", notebook.name).is_file():
        return ""
    lab = os.path.relpath(Path(app.outdir, "lite", "lab", "index.html"), notebook.parent)
    return f' · <a href="{lab}?path={quote(notebook.name)}">Run it here, without a server</a>'
