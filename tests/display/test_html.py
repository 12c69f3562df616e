"""HTML fragments, the page of a cast, and MIME bundles."""

import json
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import display_graphs as graphs
from display_hostile import HOSTILE
from materia_nb.display import GraphPicture, Html, Marks, Shown, bundle
from materia_nb.display.escape import (
    html_join,
    html_json,
    html_panel,
    html_pre,
    html_table,
    html_text,
    status_badge,
)
from materia_nb.display.page import CastPage, PageStep, cast_page

VOID = {"meta", "img", "br"}
FRAGMENT_TAGS = {
    "bdi", "pre", "table", "caption", "thead", "tbody", "tr", "th", "td", "details", "summary", "div", "span",
    "section", "i",
}  # fmt: skip
PAGE_TAGS = FRAGMENT_TAGS | {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "dl", "dt", "dd", "p", "img", "article",
    "ol", "li", "a",
}  # fmt: skip


class Reader(HTMLParser):
    """Collects tags, attribute names and text, and checks that tags are closed in order."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.names, self.words, self.hrefs = [], set(), set(), [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}
        self.hrefs += [value for name, value in attrs if name in ("href", "src")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def check(html, tags=FRAGMENT_TAGS):
    html.encode()
    reader = Reader(html)
    assert reader.tags <= tags
    assert not [name for name in reader.names if name.startswith("on")]
    assert all(href.startswith(("#step-", "./", "data:image/svg+xml;base64,")) for href in reader.hrefs)
    return reader


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text_in_every_builder(text):
    value = {text: [text, {"k": text}], "n": None}
    for html in (
        html_text(text),
        html_pre(text),
        html_table([text, "b"], [[text, html_text(text)]], caption=text),
        html_json(value, 2, name=text),
        html_panel(text, text),
        status_badge(text),
        html_join([text, html_text(text)]),
    ):
        check(html)
        assert len(html) < 60_000


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(JSON_VALUES)
@settings(max_examples=60)
def test_any_json_becomes_a_tree(value):
    check(html_json(value, 3))


def test_a_json_tree_is_bounded_and_says_what_it_cut():
    html = html_json({"long": "x" * 1_000_000, "many": list(range(5000))})
    assert "1,000,000 characters" in html
    assert "4,800 more" in html
    assert len(html) < 60_000
    deep: object = 1
    for _ in range(500):
        deep = [deep]
    check(html_json(deep))


def test_open_depth():
    assert html_json([[1]], 0).count("<details open>") == 0
    assert html_json([[1]], 1).count("<details open>") == 1
    assert html_json([[1]], 2).count("<details open>") == 2


def test_markup_is_only_trusted_while_it_is_markup():
    safe = status_badge("ok")
    assert html_text(safe) is safe
    joined = safe + "<script>"
    assert not isinstance(joined, Html)
    assert "<script>" not in html_text(joined)


def test_a_status_has_a_sign_beside_its_colour():
    assert "✖" in status_badge("failed: timeout")
    assert "✓" in status_badge("complete")
    assert "●" in status_badge("anything else")


def test_theme_variables_have_fallbacks():
    html = html_table(["a"], [["b"]]) + html_panel("t", "b") + html_json({"a": 1}) + html_pre("x")
    for use in html.split("var(")[1:]:
        assert "," in use.split(")")[0]


def step(text="ok", **more):
    fields = {
        "number": 1,
        "socket": text,
        "visit": 1,
        "materia": text,
        "item_key": text,
        "item_label": text,
        "output": text,
        "parsed": {text: text},
        "decision_lines": (text,),
        "prompt": [(text, text)],
        "artifact": text,
    }
    return PageStep(**(fields | more))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text_on_the_page(text):
    page = CastPage(
        cast_id=text,
        loadout=text,
        request=text,
        status=text,
        failure=text,
        svg=text,
        graph_text=text,
        steps=[step(text, outcome=text)],
        state={text: text},
        artifacts=[(text, text)],
        facts=[(text[:1000], text)],
    )
    check(cast_page(page), PAGE_TAGS)


def test_the_page_shows_the_cast_and_loads_nothing():
    page = CastPage(
        "2026", "flow", "ship it", "failed",
        failure="utility_exit: no",
        svg="<svg/>",
        steps=[step("Socket-1"), step("Socket-2", number=2, outcome="failed: timeout")],
        state={"a": 1},
        artifacts=[("journal", "events.jsonl"), ("outside", "../../etc/passwd"), ("script", "javascript:alert(1)")],
    )  # fmt: skip
    reader = check(cast_page(page), PAGE_TAGS)
    assert "./events.jsonl" in reader.hrefs
    assert "./javascript%3Aalert%281%29" in reader.hrefs  # a file of that name, not a script
    assert not any("etc/passwd" in href for href in reader.hrefs)
    assert {"ship it", "utility_exit: no", "../../etc/passwd"} <= set(reader.words)
    assert "<details open><summary>2. Socket-2" in cast_page(page)


def test_a_long_cast_shows_its_last_steps_and_says_so():
    page = CastPage("2026", "flow", "r", "complete", steps=[step("s", number=n) for n in range(1, 31)])
    html = cast_page(page, most_steps=10)
    assert "20 earlier steps are not shown" in html
    assert 'id="step-20"' not in html
    assert 'id="step-21"' in html


class Broken(Shown):
    def __init__(self, error):
        self.error = error

    def _show(self):
        raise self.error


class Unprintable(Exception):
    def __str__(self):
        raise ValueError("no")


@pytest.mark.parametrize("error", [ValueError("bad"), Unprintable(), RecursionError()])
def test_a_display_never_raises(error):
    shown = Broken(error)._repr_mimebundle_()
    assert shown.keys() == {"text/plain"}
    assert "Broken" in shown["text/plain"]


def test_include_and_exclude_are_honoured():
    picture = GraphPicture(graphs.hello())
    assert picture._repr_mimebundle_().keys() - {"image/png"} == {"text/plain", "image/svg+xml"}
    assert picture._repr_mimebundle_(include={"text/plain"}).keys() == {"text/plain"}
    assert picture._repr_mimebundle_(exclude=["image/svg+xml", "image/png"]).keys() == {"text/plain"}


def test_a_picture_shows_its_marks():
    picture = GraphPicture(graphs.hello(), Marks(current="Socket-2"))
    shown = picture._repr_mimebundle_()
    assert "▶ current" in shown["text/plain"]
    assert "▶ current" in shown["image/svg+xml"]
    assert picture.mermaid.startswith("flowchart")
    assert "hello-world" in repr(picture)


def test_a_bundle_can_be_sent():
    made = bundle("a\ud800", json={"\udfff": ["\ud800"]}, html="<b>\ud900</b>", mermaid="x")
    json.dumps(made, ensure_ascii=False).encode()
    assert made["application/json"] == {"\ufffd": ["\ufffd"]}
    assert bundle("x") == {"text/plain": "x"}
