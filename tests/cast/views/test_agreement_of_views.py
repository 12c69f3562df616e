"""Test that a view has the same content in a terminal, in a notebook, on the exported page and in the panel."""

from __future__ import annotations

import re
from html import unescape

import pytest

import cast_helpers as h
from materia_nb import Workbench
from materia_nb.agents.interface import Reply, Usage
from materia_nb.cast.formatting import record_view, why_blocks
from materia_nb.cast.views.loadout_views import ExploreView, report_view
from materia_nb.cast.views.status import status_view, steps_view
from materia_nb.cast.views.step_views import (
    HandoffView,
    cast_page_html,
    handoff_blocks,
    prompt_view,
    step_view,
)
from materia_nb.cast.views.tables import budget_view, items_view
from materia_nb.display.blocks import blocks_as_html, blocks_as_json
from materia_nb.widgets.inspector_tabs import inspector_state


@pytest.fixture(scope="module")
def wb(tmp_path_factory):
    bench = Workbench(tmp_path_factory.mktemp("said"), bundled=False)
    bench.load(h.loop_config())
    yield bench
    bench.close()


@pytest.fixture(scope="module")
def cast(wb):
    """Return a cast with a model that reports its usage and whose second step had one refused answer."""
    answers = iter(["no object", '{"satisfied": true, "context": "fine"}'])
    facts = {"model": "m-1", "attempt": {"number": 1, "of": 3, "agent": "first"}}
    check = lambda turn: Reply(next(answers), Usage(11, 7), meta=facts)  # noqa: E731
    found = wb.cast("r", agents={**h.loop_agents(), "Check": check})
    found.run(steps=3)
    return found


def views(wb, cast):
    step, now = cast.steps[-1], cast.now
    explored = ExploreView(cast.graph, (0, 2))
    return [
        HandoffView(now, step),
        step_view(now),
        status_view(now),
        prompt_view(step, step.prompt),
        record_view(step),
        steps_view(now),
        items_view(now, ["moved"]),
        budget_view(now),
        cast.usage(),
        wb.compare(cast, cast),
        wb.compare(cast.steps[0], cast.steps[-1]),
        report_view("T", wb.check()),
        explored,
        explored.odds(0.5, 2),
        wb,
        wb.loadouts,
    ]


def words(text):
    return set(re.findall(r"\w+", text))


def words_of_json(value):
    """Return the words that the panel displays, without block kinds, tones and open states."""
    if isinstance(value, dict):
        said = [one for name, one in value.items() if name not in ("is", "svg", "dark", "tone", "kind")]
        return set().union(*map(words_of_json, said))
    if isinstance(value, list):
        return set().union(*map(words_of_json, value))
    return words(value) if isinstance(value, str) else set()


@pytest.mark.parametrize("place", range(16))
def test_html_and_json_of_a_view_contain_the_same_text(wb, cast, place):
    view = views(wb, cast)[place]
    html = words(unescape(re.sub("<s(vg|tyle).*?</s(vg|tyle)>|<[^>]*>", " ", view.as_html(), flags=re.DOTALL)))
    drawn = words_of_json(view.as_json())
    assert len(html) > 3
    told = words(re.sub(r"\[[\d,]+ characters in total\]", "", view.as_text()))
    assert told <= html, "a terminal is told the beginning of what is folded"
    assert drawn == html


def test_terminal_html_panel_and_page_contain_the_same_facts(cast):
    step = cast.steps[-1]
    said = "attempt 1 of 3, by first; 11 tokens in, 7 out", "answered by m-1", "required value"
    panel = inspector_state(cast.now, None, cast.at(step.number), "output", busy=False)
    page = cast_page_html(cast.now)
    for one in said:
        assert one in repr(HandoffView(cast.now, step)), one
        assert one in blocks_as_html(handoff_blocks(cast.now, step)), one
        assert one in page, one
        assert one in str(blocks_as_json(panel)), one


def test_all_views_show_the_same_reasons(cast):
    why = cast.why()
    assert blocks_as_html(why_blocks(why)) in why._repr_mimebundle_()["text/html"]
    assert blocks_as_html(why_blocks(why)) in step_view(cast.now).as_html()
    assert blocks_as_html(why_blocks(why)) in cast_page_html(cast.now)
