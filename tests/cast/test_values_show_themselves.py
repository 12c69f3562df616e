"""What the public calls of a cast and a workbench return shows itself."""

from __future__ import annotations

import pytest

import cast_helpers as h
from materia_nb import Workbench


@pytest.fixture
def wb(tmp_path):
    bench = Workbench(tmp_path, bundled=False)
    bench.load(h.loop_config())
    yield bench
    bench.close()


def test_no_value_shows_where_it_is_in_memory_or_its_insides(wb):
    cast = wb.cast("r", agents=h.loop_agents())
    cast.run(steps=3)
    members = (
        "edit",
        "approvals",
        "breakpoints",
        "pins",
        "export",
        "labels",
        "agents",
        "now",
        "steps",
        "route",
    )
    shown = [getattr(cast, name) for name in members]
    shown += [
        wb,
        cast,
        cast.why(1),
        cast.at(1),
        cast.steps.at(2),
        cast.spent(),
        wb.breakpoints,
        wb.agents,
        wb.casts(),
        wb.quests,
        cast.now.approvals,
        cast.at(1).approvals,
    ]
    for one in (*shown, wb.check()):
        assert "object at 0x" not in repr(one), type(one)
    for one in (
        wb,
        cast.steps.at(2),
        cast.labels,
        cast.edit,
        cast.export,
        cast.approvals,
        cast.why(1),
    ):
        assert len(repr(one)) <= 200, type(one)
    assert repr(cast.why(1)) == str(cast.why(1))
    assert cast.now.answered_by("Socket-1") == "a function"
    cast.agents.set("Socket-2", h.item)
    assert cast.now.answered_by("Socket-2") == "the function item"


def test_why_shows_itself_as_a_panel_with_the_edges_that_were_looked_at(wb):
    cast = wb.cast("r", agents=h.loop_agents())
    cast.run(steps=3)
    shown = cast.why(3)._repr_mimebundle_()
    assert "<table" in shown["text/html"]
    assert shown["text/plain"].startswith(str(cast.why(3)))
    assert "not_satisfied" in shown["text/plain"]


def test_a_report_shows_itself_as_a_table_of_what_was_found(wb):
    shown = wb.check()._repr_mimebundle_()
    assert shown["text/plain"].startswith("0 problems, 1 hint")
    assert "<table" in shown["text/html"]
    assert "empty-list-ends" in shown["text/html"]
    assert "what to do" in wb.config.check()._repr_mimebundle_()["text/html"]


def test_a_step_shows_itself_as_a_panel_with_what_came_and_where_it_went(wb):
    cast = wb.cast("r", agents={**h.loop_agents(), "Socket-2": lambda _: "<b>"})
    cast.run(steps=2)
    shown = cast.steps[-1]._repr_mimebundle_()
    assert shown["text/plain"].startswith("Step 2: Socket-2, visit 1, item WI-1 (Part 1)\n  next: ")
    assert "output: <b>" in shown["text/plain"]
    assert "<bdi>&lt;b&gt;</bdi></pre>" in shown["text/html"]
    step = cast.steps[-1]
    thought = step._replace(turns=(step.turns[0]._replace(thinking="Hm."),))
    assert "Hm." in thought._repr_mimebundle_()["text/html"]
    assert repr(cast.steps[-1]).startswith("<step 2: Socket-2, visit 1")
    assert list(cast.steps.at(1)._repr_mimebundle_(include=["text/plain"])) == ["text/plain"]


def test_a_workbench_its_agents_and_the_labels_of_a_cast_show_themselves_as_tables(wb):
    cast = wb.cast("r", agents=h.loop_agents())
    cast.run(steps=2)
    assert cast.labels._repr_mimebundle_()["text/plain"] == "no labels"
    cast.labels.add(name="first")
    cast.labels.add(2, tag="rain")
    for one, cells in (
        (wb, ("workbench of ", "<td", "T")),
        (cast.agents, ("Plan", "answered by", "person")),
        (cast.labels, ("the cast", "named first", "Step 2: Socket-2", "tagged rain")),
    ):
        shown = one._repr_mimebundle_()
        assert "<table" in shown["text/html"]
        for cell in cells:
            assert cell in shown["text/html"], (cell, shown)
    assert wb._repr_mimebundle_()["text/plain"].startswith(repr(wb))
    assert "cannot be shown" not in str(wb._repr_mimebundle_())
    assert wb.agents._repr_mimebundle_()["text/plain"].startswith("materia or socket")
    assert len(repr(cast.now.side)) < 100
