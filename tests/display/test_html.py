"""Test HTML fragments, the page of a cast, and MIME bundles."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import display_graphs as graphs
from display_hostile import HOSTILE, pictures_in, sanitize_html
from materia_nb.display import blocks
from materia_nb.display.blocks import (
    Action,
    AnchorLink,
    Badge,
    Bar,
    Block,
    Code,
    Displayable,
    FactTable,
    Fold,
    Heading,
    JsonTree,
    JsonView,
    Line,
    LineDiff,
    Picture,
    Table,
    Text,
    View,
    WordDiff,
    blocks_as_html,
    blocks_as_json,
    blocks_as_text,
    mime_bundle,
    without_surrogates,
)
from materia_nb.display.escape import (
    Html,
    esc,
    html_join,
    html_json,
    html_page,
    html_panel,
    html_pre,
    html_table,
    html_text,
    status_badge,
)
from materia_nb.display.graph_parts import CastOverlay
from materia_nb.display.sections import TimeAxis
from materia_nb.display.svg import DARK, GraphPicture, graph_block
from materia_nb.handoff.base import Pointer
from materia_nb.widgets import frontend

VOID = {"meta", "img", "br"}
FRAGMENT_TAGS = {
    "bdi", "pre", "table", "caption", "thead", "tbody", "tr", "th", "td", "details", "summary", "div", "span",
    "section", "i", "a", "b", "svg", "ins", "del",
}  # fmt: skip
PAGE_TAGS = FRAGMENT_TAGS | {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "dl", "dt", "dd", "p", "img", "article",
    "ol", "li", "a",
}  # fmt: skip


class Reader(HTMLParser):
    """An HTML parser that collects tags, attribute names and text, and checks that tags are closed in order."""

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
def test_hostile_text_is_shown_as_text_in_every_builder(text):
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
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(JSON_VALUES)
@settings(max_examples=60)
def test_any_json_value_can_be_shown_as_a_tree(value):
    check(html_json(value, 3))


def test_json_tree_is_truncated_and_reports_what_is_omitted():
    html = html_json({"long": "x" * 1_000_000, "many": list(range(5000))})
    assert "1,000,000 characters" in html
    assert "4,800 more" in html
    assert len(html) < 60_000
    deep: object = 1
    for _ in range(500):
        deep = [deep]
    check(html_json(deep))


def test_json_tree_is_expanded_to_the_requested_depth():
    assert html_json([[1]], 0).count("<details open>") == 0
    assert html_json([[1]], 1).count("<details open>") == 1
    assert html_json([[1]], 2).count("<details open>") == 2


def test_only_html_objects_are_trusted_as_markup():
    safe = status_badge("ok")
    assert html_text(safe) is safe
    joined = safe + "<script>"
    assert not isinstance(joined, Html)
    assert "<script>" not in html_text(joined)


def test_status_has_a_symbol_and_a_colour():
    assert "✖" in status_badge("failed: timeout")
    assert "✓" in status_badge("complete")
    assert "●" in status_badge("anything else")


def test_theme_variables_have_fallbacks():
    html = html_table(["a"], [["b"]]) + html_panel("t", "b") + html_json({"a": 1}) + html_pre("x")
    for use in html.split("var(")[1:]:
        assert "," in use.split(")")[0]


def every_block(text):
    """Return one block of each kind with hostile text in every field."""
    cells = (text, 3, Pointer(text), Pointer(text, text), Badge(text), Bar(text, 0.5), AnchorLink(text, "step-1"))
    return [
        Heading(text, tone="bad"),
        Line(text, "bad"),
        Code(text, title=text),
        LineDiff([("+", text)]),
        JsonTree({text: text}, text),
        WordDiff("was", text),
        Fold(text, [Line(text)], anchor="step-1"),
        Picture(f"<svg><title>{esc(text)}</title></svg>", text),
        Action(text, "Show it", "shows it", "select", {}),
        FactTable([(text, text)]),
        Table([text] * len(cells), [cells]),
        View(text, [Line(text)]),
        Text(text),
        JsonView(text, text),
        TimeAxis(text, [(text[:60], [(0, 0.5, "work", text[:60], text, 1)])], [(0, text[:60])], [text]),
    ]


def test_front_end_draws_every_kind_of_block():
    examples = every_block("x")
    kinds = {kind for kind in vars(blocks).values() if isinstance(kind, type) and issubclass(kind, Block)}
    assert {type(kind) for kind in examples} == (kinds | {TimeAxis}) - {Block, Displayable}
    drawn = set(
        re.findall(
            r'case "(\w+)":',
            Path(frontend.__file__).with_name("front").joinpath("blocks.js").read_text("utf-8"),
        )
    )
    assert {kind["is"] for kind in blocks_as_json(examples)} == drawn
    json.dumps(blocks_as_json(examples))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_as_text_in_every_block_and_on_a_page(text):
    examples, tags = every_block(text), PAGE_TAGS | {"g", "path", "rect", "text"}
    check(blocks_as_html(examples), tags)
    check(html_page(text, blocks_as_html(examples)), tags)
    assert "\x1b" not in blocks_as_text(examples) + json.dumps(blocks_as_json(examples), ensure_ascii=False)


@pytest.mark.parametrize("number", range(14))
def test_text_html_and_panel_show_the_same_text(number):
    block = every_block("Plain words")[number]
    of_text, of_html = words(block.as_text()), words(" ".join(Reader(block.as_html()).words))
    of_json = words(" ".join(strings(block.as_json())))
    assert "Plain" in of_text
    assert of_text <= of_html
    assert of_text <= of_json


def test_bar_shows_an_interval_with_its_mean():
    table = Table(("", "rate"), [["new", Bar("<60%> of 5", 0.9, 0.2, (0.59, 0.61))]])
    html = table.as_html()
    assert "#3b82c455 20.0% 90.0%,transparent 90.0%" in html
    assert "#3b82c488 59.0% 61.0%,transparent 61.0%" in html
    assert "&lt;60%&gt; of 5" in html
    assert table.as_json()["rows"][0][1]["bar"] == [0.2, 0.9, 0.59, 0.61]


def test_panel_json_contains_the_symbol_of_a_status_and_the_fraction_of_a_bar():
    block_json = Table(("status", "took"), [[Badge("failed: timeout"), Bar("2 s", 2.5)]]).as_json()
    assert block_json["rows"] == [
        [{"text": "failed: timeout", "sign": "✖", "colour": "#d5404d"}, {"text": "2 s", "bar": [0.0, 1.0, 0.0, 0.0]}]
    ]


def words(text):
    return set(re.findall(r"\w+", text))


def strings(value):
    if isinstance(value, dict):
        return [text for name, child in value.items() if name != "svg" for text in strings(child)]
    return [text for child in value for text in strings(child)] if isinstance(value, list) else [str(value)]


def test_page_loads_no_resources_and_links_only_to_local_files_and_its_steps():
    files = [
        ("journal", Pointer("events.jsonl", "events.jsonl")),
        ("script", Pointer("x", "javascript:alert(1)")),
    ]
    page = html_page(
        "Cast <1>", blocks_as_html([Table(("what", "file"), files), Table(("",), [[AnchorLink("2", "step-2")]])])
    )
    reader = check(page, PAGE_TAGS)
    assert reader.hrefs == ["./events.jsonl", "./javascript%3Aalert%281%29", "#step-2"]
    assert "<title>Cast &lt;1&gt;</title>" in page


def test_plain_text_shortens_collapsed_parts_and_shows_open_parts_in_full():
    inside = [Line("x" * 100) for _ in range(9)]
    assert blocks_as_text([Fold("more", inside)]).splitlines()[-1] == "  … [908 characters in total]"
    assert len(blocks_as_text([Fold("more", inside)]).splitlines()) == 5
    assert len(blocks_as_text([Fold("more", inside, opened=True)]).splitlines()) == 10
    assert blocks_as_text([Fold("more", inside, brief_chars=0)]) == "more"


def test_html_table_omits_empty_columns():
    assert Reader(Table(("a", "b"), [("1", ""), ("2", "")]).as_html()).words == ["a", "1", "2"]


class Broken(Displayable):
    def __init__(self, error):
        self.error = error

    def _blocks(self):
        raise self.error


class Unprintable(Exception):
    def __str__(self):
        raise ValueError("no")


@pytest.mark.parametrize("error", [ValueError("bad"), Unprintable(), RecursionError()])
def test_failing_display_falls_back_to_plain_text(error):
    bundle = Broken(error)._repr_mimebundle_()
    assert bundle.keys() == {"text/plain"}
    assert "Broken" in bundle["text/plain"]


def test_graph_follows_the_theme_of_its_page_and_is_light_by_default():
    bundle = GraphPicture(graphs.hello())._repr_mimebundle_()
    dark, light = pictures_in(bundle["text/html"])
    assert 'fill="#1c1f24"' in light
    assert 'fill="#1c1f24"' not in dark
    assert '[data-jp-theme-light="false"]' in bundle["text/html"]
    assert light == bundle["image/svg+xml"]


def test_html_sanitizer_does_not_change_pictures():
    """A sanitizer keeps the text of elements that it removes, so a picture must not contain text elements."""
    bundle = GraphPicture(graphs.hello())._repr_mimebundle_()
    rest = sanitize_html(bundle["text/html"])
    assert re.sub(r"<[^>]*>", "", rest).strip() == ""
    assert rest.count("<img ") == 1
    assert 'alt="' in rest


def test_mime_bundle_respects_include_and_exclude():
    picture = GraphPicture(graphs.hello())
    assert picture._repr_mimebundle_().keys() - {"image/png"} == {"text/plain", "text/html", "image/svg+xml"}
    assert picture._repr_mimebundle_(include={"text/plain"}).keys() == {"text/plain"}
    assert picture._repr_mimebundle_(exclude=["text/html", "image/svg+xml", "image/png"]).keys() == {"text/plain"}


def test_graph_picture_shows_the_marks_of_a_cast():
    picture = GraphPicture(graphs.hello(), CastOverlay(current="Socket-2"))
    bundle = picture._repr_mimebundle_()
    assert "▶ current" in bundle["text/plain"]
    assert "▶ current" in bundle["image/svg+xml"]
    assert picture.mermaid.startswith("flowchart")
    assert "hello-world" in repr(picture)


def test_mime_bundle_contains_no_lone_surrogates():
    bundle = mime_bundle("a\ud800", html="<b>\ud900</b>")
    json.dumps(bundle, ensure_ascii=False).encode()
    assert bundle["text/plain"] == "a\ufffd"
    assert without_surrogates({"\udfff": ["\ud800"]}) == {"\ufffd": ["\ufffd"]}
    assert mime_bundle("x") == {"text/plain": "x"}


def test_picture_fits_its_cell_and_keeps_its_aspect_ratio():
    wide = '<svg xmlns="http://www.w3.org/2000/svg" width="1696" height="200" viewBox="0 0 1696 200"></svg>'
    assert ' width="848" height="100" viewBox="0 0 1696 200"' in Picture(wide).as_html()
    assert ' width="848" height="100"' in GraphLike(wide)._repr_mimebundle_()["image/svg+xml"]
    small = wide.replace("1696", "600")
    assert Picture(small).as_html() == small


class GraphLike(Displayable):
    def __init__(self, svg):
        self.svg = svg

    def _blocks(self):
        return [Picture(self.svg, "a graph")]


def test_panel_json_contains_a_picture_for_dark_pages():
    panel_json = graph_block(graphs.rework(), CastOverlay(current="Socket-2")).as_json()
    colours = {*re.findall(r'"(#[0-9a-f]{6})"', panel_json["dark"])}
    assert colours <= set(DARK.values())
    assert re.sub("#[0-9a-f]{6}", "", panel_json["dark"]) == re.sub("#[0-9a-f]{6}", "", panel_json["svg"])
