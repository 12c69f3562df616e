"""Provide hostile texts and a graph that contains them, and check that generated HTML is harmless."""

from __future__ import annotations

import re
from base64 import b64decode
from dataclasses import replace

from display_graphs import graph, socket
from materia_nb.display.graph_parts import CastOverlay
from materia_nb.loadout.graph import Advance, DerivedValue, ExitRoute, Graph, Iterator, Loop

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    '"]];\nclick n1 call alert(1)',
    "</svg><script>alert(1)</script>",
    "]]><!--</title></desc>",
    "' onload='alert(1)' x='",
    '" onmouseover="alert(1)',
    "red;background:url(javascript:alert(1))}</style>",
    "&lt;b&gt; &#60; #lt; #60;",
    "%%{init: {'theme':'x'}}%%",
    "end",
    "subgraph x; end; style n1 fill:#f00",
    "1. list - `md` **b** $$x^2$$",
    "\x00\x01\x1b[31mred\x7f\x9b0m\r\nnext\x0b\x0c",
    "\ud800 lone \udfff",
    "\u202egnp.exe \u2066\u2069 \u200f",
    "עברית ثم العربية",
    "👩‍👩‍👧‍👦🇩🇪🏳️‍🌈é́́",
    "漢字かな交じり文",
    "\ufffe\uffff\ufeff",
    "x" * 1_000_000,
    "\u0301" * 5000,
    " \n\t ",
    "",
]


def hostile_graph(texts: list[str]) -> Graph:
    """Return a graph with two sockets and a loop whose text fields contain the specified texts."""

    def text(number: int) -> str:
        return texts[number % len(texts)]

    a, b, loop = "a" + text(0), "b" + text(1), "l" + text(2)
    first = socket(a, text(3), ("satisfied", b), ("always", "end"), generator=True, multi_turn=True)
    second = socket(b, text(4), ("not_satisfied", b, 2), ("always", a), kind="utility")
    first = replace(first, advance=Advance(text(5), text(6), "satisfied", derived=True))
    second = replace(second, iterator=Iterator(text(7), text(8), text(9), None))
    route = ExitRoute(text(10), loop, b, "not_satisfied", a)
    region = Loop(loop, (b,), a, text(11), Iterator(text(12), text(13), text(14), loop), (route,))
    made = graph("n" + text(15), [first, second], [region])
    return replace(made, derived=(DerivedValue(text(16), text(17)),))


def hostile_marks(made: Graph) -> CastOverlay:
    """Return marks for every part of a hostile graph."""
    a, b = made.sockets
    (loop,) = made.loops.values()
    return CastOverlay(
        current=a,
        waiting=True,
        failed=b,
        visits={a: 3, b: 1_000_000},
        traversals={f"{a}->{b}": 2},
        last_route=(b, loop.routes[0].edge_id),
        progress={loop.id: (1, 9)},
        breakpoints=frozenset({a, b}),
        budgets={(b, 0): (1, 2)},
        answers={a: b, b: a},
        pins={b: a},
        outputs={a: b, b: a},
    )


TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)")
OURS = {
    "section", "div", "b", "bdi", "table", "caption", "thead", "tbody", "tr", "th", "td", "pre", "details",
    "summary", "span", "i", "a", "svg", "img", "title", "path", "polygon", "rect", "text",
}  # fmt: skip


IMAGE = re.compile(r'(?:src="|url\()data:image/svg\+xml;base64,([A-Za-z0-9+/=]*)[")]')


def pictures_in(html):
    """Return the SVG of each image in an output, starting with the dark theme."""
    return [b64decode(data).decode() for data in IMAGE.findall(html)]


def sanitize_html(html):
    """Return the HTML of an output without style sheets and SVG, as an untrusted notebook displays it."""
    html = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    return re.sub(r"</?(?:svg|g|path|rect|circle|line|polyline|polygon|text|tspan|title|desc|defs)\b[^>]*>", "", html)


def assert_harmless(html):
    """Assert that HTML contains only known elements, no event handlers, only local links, and no styles except colours."""
    for svg in pictures_in(html):
        assert_harmless(svg)
    html = re.sub(
        r"<style>@media screen\{[^<{]*\{content:url\(data:image/svg\+xml;base64,[A-Za-z0-9+/=]*\)\}\}</style>",
        "",
        html,
    )
    assert all(link.startswith("data:image/svg+xml;base64,") for link in re.findall(r'src="([^"]*)"', html))
    html = re.sub(r"<style>@media screen\{[^<{]*\{(?:--mnb-[0-9a-f]{6}:#[0-9a-f]{6};)*\}\}</style>", "", html)
    assert {name for _, name in TAG.findall(html)} <= OURS
    attributes = re.findall(r'<[a-z]+((?:\s+[a-z-]+(?:="[^"]*")?)*)', html)
    assert not any(re.search(r"\son\w+=", text) for text in attributes)
    assert all(link.startswith("./") for link in re.findall(r'href="([^"]*)"', html))
