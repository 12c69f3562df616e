"""Test that ``blame`` finds the step, the answer and the rule that set a value in the state."""

from __future__ import annotations

import pytest

from cast_helpers import agent, at, config, items, python, start
from magics_helpers import line, run, text
from materia_nb.errors import MateriaError


def told(cast, path):
    return [(change.step, change.rule, change.source) for change in cast.blame(path)]


def test_blame_names_an_assignment_with_its_source(cast):
    cast.run()
    assert told(cast, "state.workItems.0.title") == [(1, "R11", "$.workItems[0].title")]
    assert told(cast, "workItems") == [(1, "R11", "$.workItems")]


def test_latest_change_is_listed_first(cast):
    cast.run()
    changes = cast.blame("context")
    assert [change.step for change in changes] == sorted((change.step for change in changes), reverse=True)
    assert {(change.socket, change.rule, change.source) for change in changes} == {("Socket-3", "R10", "$.context")}
    assert changes[0].after == cast.state["context"]
    assert changes[1].after == changes[0].before


def test_blame_attributes_an_edit_to_the_person(cast):
    cast.run(steps=1)
    cast.edit.items(items("by hand"))
    assert told(cast, "workItems.0.title") == [(1, "edit", None), (1, "R11", "$.workItems[0].title")]
    assert "a person" in repr(cast.blame("workItems.0.title"))


def test_blame_reports_an_edit_that_was_made_while_a_person_was_asked(bench):
    bench.agent("Build", "person")
    cast = bench.cast("x")
    cast.run()
    cast.edit.set("note", "here")
    cast.reply("built")
    assert told(cast, "note") == [(2, "edit", None)]


def test_blame_names_the_path_of_a_utility_patch(tmp_path):
    script = """print('{"state": {"plan": {"title": "rain", "pages": [1, 2]}}}')"""
    cast = start(tmp_path, config({"Socket-1": at("U", parse="json")}, {"U": python(script, parse="json")}))
    cast.run()
    assert told(cast, "plan.pages.1") == [(1, "R10", "$.state.plan.pages[1]")]


def test_blame_names_the_assignment_that_overrides_a_patch(tmp_path):
    document = config({"Socket-1": at("M", parse="json", assign={"plan.title": "$.context"})}, {"M": agent("p")})
    cast = start(tmp_path, document, lambda: {"context": "rain"})
    cast.run()
    assert told(cast, "plan.title") == [(1, "R11", "$.context")]
    assert told(cast, "plan") == [(1, "R11", None)]


def test_blame_marks_corrected_answers(cast):
    cast.run(steps=1)
    cast.edit.output({"workItems": items("corrected")})
    changes = cast.blame("workItems.0.title")
    assert (changes[0].step, changes[0].corrected, changes[0].after) == (1, True, "corrected")


def test_blame_names_the_iterator_as_the_source_of_the_current_item(cast):
    cast.run(steps=2)
    assert told(cast, "item.title")[0] == (2, "R12", None)


def test_blame_of_an_unset_path_is_reported(cast):
    cast.run()
    assert len(cast.blame("nothing.at.all")) == 0
    assert repr(cast.blame("nothing")) == "nothing was never set"
    with pytest.raises(MateriaError, match="path is empty"):
        cast.blame(".")


def test_blame_verb_shows_the_source_of_a_value(shell, bench):
    shell.user_ns["wb"] = bench
    line(shell, "cast x")
    run(shell, "%materia run")
    assert "$.workItems[0].title (R11)" in text(run(shell, "%materia blame workItems.0.title"))
