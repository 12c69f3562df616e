"""Test that the documentation site is complete and loads nothing from other hosts."""

from __future__ import annotations

import json
import os
import re
import subprocess
from functools import cache
from html.parser import HTMLParser
from importlib import import_module
from importlib.util import find_spec
from inspect import isclass, isfunction
from itertools import chain
from pathlib import Path
from shutil import which
from urllib.parse import unquote, urlsplit

import pytest

import make_site

ROOT = make_site.ROOT
OF_CONTRIBUTORS = {ROOT / name for name in ("CONTRIBUTING.md", "docs/architecture.md", "docs/decisions.md")}
PACKAGES = ["agents", "agents.tools", "handoff", "loadout", "widgets"]
LOADED_ATTRIBUTES = {
    "audio": ["src"],
    "embed": ["src"],
    "iframe": ["src"],
    "image": ["href", "xlink:href"],
    "img": ["src", "srcset"],
    "input": ["src"],
    "link": ["href"],
    "object": ["data"],
    "script": ["src"],
    "source": ["src", "srcset"],
    "use": ["href", "xlink:href"],
    "video": ["src", "poster"],
}
"""Attributes whose URLs a browser loads without a click, by tag."""
IN_STYLES = re.compile(r"""(?:url\(\s*|@import\s+)["']?([^"')\s;]+)""")

pytestmark = pytest.mark.slow


class Page(HTMLParser):
    """The resources, links and anchors of an HTML page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self._in_style = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._in_style = tag == "style"
        self.loads += [given[name] for name in LOADED_ATTRIBUTES.get(tag, []) if name in given]
        self.loads += IN_STYLES.findall(given.get("style", ""))
        self.links += [given["href"]] if tag == "a" and "href" in given else []
        self.anchors |= {given[name] for name in ("id", "name") if name in given}

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.loads += IN_STYLES.findall(data)


def is_elsewhere(target: str) -> bool:
    parts = urlsplit(target)
    return parts.scheme not in {"", "data"} or bool(parts.netloc)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    missing = [name for name in ("furo", "myst_parser", "sphinx") if find_spec(name) is None]
    if missing and not os.environ.get("CI"):
        pytest.skip(f"{' and '.join(missing)} not installed: make docs installs them")
    folder = tmp_path_factory.mktemp("made") / "site"
    assert make_site.main(folder) == 0, "what Sphinx says is above"
    return folder


@cache
def pages_of(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


@pytest.mark.timeout(240)
def test_site_has_every_page_and_notebook(site):
    sources = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("notebooks/*.ipynb")]
    wanted = {site / path.relative_to(ROOT).with_suffix(".html") for path in sources if path not in OF_CONTRIBUTORS}
    assert len(wanted) > 10
    assert wanted - set(pages_of(site)) == set()
    assert not any((site / path.relative_to(ROOT)).with_suffix(".html").exists() for path in OF_CONTRIBUTORS)
    assert {"levels/index.html", "README.html"} <= set(pages_of(site)[site / "index.html"].links)
    assert "levels/index.html" in {path.relative_to(site).as_posix() for path in pages_of(site)}


def test_table_of_contents_is_grouped_by_task_and_lists_every_guide(site):
    front = (site / "README.html").read_text()
    captions = re.split(r'<span class="caption-text">(\w+)</span>', front)[1:]
    contents = dict(zip(captions[::2], captions[1::2], strict=True))
    assert list(contents) == ["Learn", "Design", "Debug", "Run", "Reference", "Project"]
    placed = [
        re.findall(r'<li class="toctree-l1[^>]*><a [^>]*href="([^"#]+)"', content) for content in contents.values()
    ]
    assert min(map(len, placed)) > 1
    sources = {*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")} - OF_CONTRIBUTORS - {ROOT / "README.md"}
    pages = {path.relative_to(ROOT).with_suffix(".html").as_posix() for path in sources}
    assert {*pages, "config/README.html", "docs/api/index.html"} == set(chain(*placed))
    assert len(list(chain(*placed))) == len(set(chain(*placed)))


def test_every_page_has_search_and_a_dark_theme(site):
    for path in [site / "README.html", site / "docs/commands.html", *site.glob("notebooks/01-*.html")]:
        body = path.read_text()
        assert 'role="search"' in body
        assert 'class="theme-toggle"' in body
    assert "cursor" in (site / "searchindex.js").read_text()
    front = (site / "README.html").read_text()
    light, dark = (re.findall(rf'<img [^>]*class="only-{side}"[^>]*src="([^"]+)"', front) for side in ("light", "dark"))
    assert light
    assert dark == [one.replace(".png", "-dark.png") for one in light]
    assert "prefers-color-scheme: dark" in next(site.glob("notebooks/01-*.html")).read_text() + "".join(
        path.read_text() for path in (site / "_static").rglob("*.css")
    )


def test_every_public_name_is_in_the_reference(site):
    anchors = {anchor for page in (site / "docs/api").glob("*.html") for anchor in pages_of(site)[page].anchors}
    wanted = {f"materia_nb.{name}" for name in ("Workbench", "Cast", "MateriaError", "load_ipython_extension")}
    wanted |= {"materia_nb.Workbench.cast", "materia_nb.cast.formatting.StepList.ask"}
    for package in PACKAGES:
        module = import_module(f"materia_nb.{package}")
        public = {name: getattr(module, name) for name in module.__all__}
        # Constants are excluded, because they have no docstrings.
        wanted |= {f"{module.__name__}.{n}" for n, it in public.items() if isclass(it) or isfunction(it)}
    assert wanted - anchors == set()


def test_notebooks_are_shown_with_outputs_and_can_be_downloaded(site):
    [body] = [path.read_text() for path in site.glob("notebooks/00-*.html")]
    assert "A cast in four lines" in body
    assert 'src="data:image/svg+xml;base64,' in body
    [kept] = site.glob("notebooks/00-*.ipynb")
    assert json.loads(kept.read_text()) == json.loads((ROOT / "notebooks" / kept.name).read_text())
    assert "notebooks/00-quickstart.html" in pages_of(site)[site / "README.html"].links


SEARCHES = {
    "docs/how-do-i": [
        *(
            "without a model",
            "no API key",
            "why did it loop",
            "prompt sent to the model",
            "retry an item",
            "which retry verb",
        ),
        *(
            "edit an output",
            "change the state",
            "change the prompt",
            "skip an item",
            "breakpoint",
            "another model",
        ),
        *(
            "Claude Code",
            "human in the loop",
            "approval",
            "bash",
            "map for each",
            "token budget",
            "what will it cost",
        ),
        *(
            "chance of success",
            "50 variants",
            "compare two runs",
            "tag a run",
            "resume after a crash",
            "delete a run",
        ),
        *("export HTML", "slide", "secret", "GitHub Actions", "async", "convert LangGraph"),
    ],
    "docs/command-line-and-ci": ["terminal"],
}
"""Maps each page to the searches of new users that the page answers."""


@pytest.mark.skipif(which("node") is None, reason="the search of the site is JavaScript")
def test_search_ranks_the_answering_page_first(site):
    asked = [(query, page) for page, queries in SEARCHES.items() for query in queries]
    assert len(asked) > 30
    script = Path(__file__).with_name("site_search.cjs")
    queries = json.dumps([query for query, _ in asked])
    result = subprocess.run(
        ["node", script, site], input=queries, capture_output=True, text=True, check=True, timeout=60
    )
    first = [found[0][0] if found else None for found in json.loads(result.stdout)]
    assert dict(zip(asked, first, strict=True)) == {one: one[1] for one in asked}


def test_site_loads_nothing_from_other_hosts(site):
    loads = {str(path.relative_to(site)): page.loads for path, page in pages_of(site).items()}
    loads |= {str(path.relative_to(site)): IN_STYLES.findall(path.read_text()) for path in site.rglob("*.css")}
    assert sum(map(len, loads.values())) > len(loads), "styles and scripts are loaded by every page"
    assert {name: far for name, all_ in loads.items() if (far := [one for one in all_ if is_elsewhere(one)])} == {}


def test_site_scripts_do_not_name_other_hosts(site):
    """The HTML does not show which files a script loads, so the scripts must not contain addresses of other hosts."""
    named = {}
    for path in site.rglob("*.js"):
        code = re.sub(r"/\*.*?\*/|(?<![:\"'])//[^\n]*", "", path.read_text(), flags=re.DOTALL)
        if path.name != "searchindex.js":  # it contains the words of the pages
            # URLs that begin with this prefix are names of XML languages, not addresses.
            named[path.name] = re.findall(r"https?://(?!www\.w3\.org/)[^\"'\s]+", code)
    assert len(named) >= 3
    assert {name: found for name, found in named.items() if found} == {}


def test_every_link_and_picture_on_the_site_resolves(site):
    pages, wrong = pages_of(site), []
    for path, page in pages.items():
        for target in [*page.links, *page.loads]:
            parts = urlsplit(target)
            if is_elsewhere(target) or parts.scheme == "data":
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            lost = unquote(parts.fragment) not in pages[there].anchors if parts.fragment and there in pages else False
            if lost or not there.exists():
                wrong.append(f"{path.relative_to(site)}: {target}")
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/css">',
        '<img src="http://example.org/x.png">',
        "<style>@import 'https://fonts.example/x.css';</style>",
        '<p style="background: url(https://example.org/x.png)">',
    ],
)
def test_loads_from_other_hosts_are_detected(text):
    assert [is_elsewhere(load) for load in Page(text).loads] == [True]
    assert not Page('<a href="https://example.org">x</a>').loads
