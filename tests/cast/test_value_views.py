"""Test that the values returned by the public API display themselves."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, MappingView, Sequence

import pytest
from IPython.lib.pretty import pretty

import cast_helpers as h
from materia_nb import Workbench
from materia_nb.errors import MateriaError
from materia_nb.insight.why import Why


@pytest.fixture
def wb(tmp_path):
    bench = Workbench(tmp_path, bundled=False)
    bench.load(h.loop_config())
    yield bench
    bench.close()


def test_no_repr_shows_memory_addresses_or_internals(wb):
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
        cast.usage(),
        wb.breakpoints,
        wb.agents,
        wb.loadouts,
        wb.casts,
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


def test_why_display_lists_the_checked_edges(wb):
    cast = wb.cast("r", agents=h.loop_agents())
    cast.run(steps=3)
    bundle = cast.why(3)._repr_mimebundle_()
    assert "<table" in bundle["text/html"]
    assert bundle["text/plain"].startswith(str(cast.why(3)))
    assert "not_satisfied" in bundle["text/plain"]


def test_why_of_a_waiting_step_explains_the_previous_step(wb):
    agents = {**h.loop_agents(), "Check": lambda: {"satisfied": False, "context": "Four headings, not three."}}
    cast = wb.cast("r", agents=agents)
    cast.run(steps=3)
    cast.agents.set("Build", "person")
    cast.step()
    assert cast.now.waiting_at.socket == "Socket-2"
    assert cast.why().lines == (
        "The cast arrived here after step 3.",
        "Check was not satisfied: Four headings, not three.",
        "The derived advance did not move: it needs satisfied, and the output sets satisfied: false.",
        "So edge 2 (✗) leads back to Build.",
        "Part 1 has come back 1 of 3 times.",
        "The cast is waiting: Build has no output yet.",
    )
    assert cast.why(4).rows == ()


def test_check_report_is_shown_as_a_table_of_findings(wb):
    bundle = wb.check()._repr_mimebundle_()
    assert bundle["text/plain"].startswith("0 problems, 1 hint")
    assert "<table" in bundle["text/html"]
    assert "empty-list-ends" in bundle["text/html"]
    assert "what to do" in wb.loadouts.config.check()._repr_mimebundle_()["text/html"]


def test_step_is_shown_with_its_output_and_target(wb):
    cast = wb.cast("r", agents={**h.loop_agents(), "Socket-2": lambda _: "<b>"})
    cast.run(steps=2)
    bundle = cast.steps[-1]._repr_mimebundle_()
    assert bundle["text/plain"].startswith("Step 2: Build, visit 1, item Part 1\n  next: ")
    assert "output: <b>" in bundle["text/plain"]
    assert "<bdi>&lt;b&gt;</bdi></pre>" in bundle["text/html"]
    step = cast.steps[-1]
    thought = step._replace(turns=(step.turns[0]._replace(thinking="Hm."),))
    assert "Hm." in thought._repr_mimebundle_()["text/html"]
    assert repr(cast.steps[-1]).startswith("<step 2: Build, visit 1 → Check")
    assert list(cast.steps.at(1)._repr_mimebundle_(include=["text/plain"])) == ["text/plain"]


def test_step_is_shown_as_text_and_as_one_line_in_a_list(wb):
    cast = wb.cast("r", agents=h.loop_agents())
    cast.run(steps=2)
    step = cast.steps[-1]
    assert pretty(step) == step._repr_mimebundle_()["text/plain"]
    assert pretty([step]) == f"[{step!r}]"
    assert "taken" in cast.now.why()._repr_mimebundle_()["text/plain"]


def test_workbench_agents_and_labels_are_shown_as_tables(wb):
    cast = wb.cast("r", agents=h.loop_agents())
    cast.run(steps=2)
    assert cast.labels._repr_mimebundle_()["text/plain"] == "no labels"
    cast.labels.add(name="first")
    cast.labels.add(2, tag="rain")
    for one, cells in (
        (wb, ("workbench of ", "<td", "T")),
        (wb.loadouts, ("<td", "T")),
        (wb.casts, ("<td", cast.id)),
        (cast.agents, ("Plan", "answered by", "person")),
        (cast.labels, ("the cast", "named first", "Step 2: Build", "tagged rain")),
    ):
        bundle = one._repr_mimebundle_()
        assert "<table" in bundle["text/html"]
        for cell in cells:
            assert cell in bundle["text/html"], (cell, bundle)
    assert wb._repr_mimebundle_()["text/plain"].startswith(repr(wb))
    assert "cannot be shown" not in str(wb._repr_mimebundle_())
    assert wb.agents._repr_mimebundle_()["text/plain"].startswith("materia or socket")
    assert len(repr(cast.now.compared_cast)) < 100


LEFT_OUT = {"attempt", "simulate", "explore", "odds", "runner", "tool"}
"""Members that are slow, need a network, or are not intended for users."""
COMMANDS = {
    *("close", "step", "run", "retry", "skip", "abort", "stop", "accept", "show"),
    *("forget", "fork", "back", "arun", "astream"),
}
"""Methods that have side effects."""
DATA = (Mapping, MappingView, Sequence, Iterator, Why)
"""Types whose text may be long, because they are data or explanations for people."""


def samples(root, name, depth=2):
    """Yield the values of public properties and of public methods without required arguments."""
    for member in dir(type(root)):
        if member.startswith("_") or member in COMMANDS | LEFT_OUT:
            continue
        if isinstance(inspect.getattr_static(type(root), member), staticmethod | classmethod):
            continue
        try:
            value = getattr(root, member)
            if inspect.ismethod(value):
                needed = inspect.signature(value).parameters.values()
                if any(one.default is one.empty and one.kind not in (2, 4) for one in needed):
                    continue
                value = value()
        except (MateriaError, NotImplementedError, AttributeError, TypeError):
            continue
        yield f"{name}.{member}", value
        if depth and type(value).__module__.startswith("materia_nb.cast"):
            yield from samples(value, f"{name}.{member}", depth - 1)


def test_every_public_value_has_a_view(wb):
    cast = wb.cast("r", agents=h.loop_agents())
    cast.run(steps=3)
    found = dict((*samples(wb, "wb", 0), *samples(cast, "cast", 1)))
    assert len(found) > 80, len(found)
    inside = [
        name
        for name, one in found.items()
        if re.search(r" at 0x[0-9a-f]+", repr(one)) and not isinstance(one, Iterator)
    ]
    assert not inside
    raw = {
        name: len(repr(one))
        for name, one in found.items()
        if not isinstance(one, DATA) and not hasattr(one, "_repr_mimebundle_") and not hasattr(one, "_repr_html_")
    }
    assert not {name: size for name, size in raw.items() if size > 200}
