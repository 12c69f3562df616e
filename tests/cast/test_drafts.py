"""Test that drafts of multi-turn sockets remain drafts until a person accepts them, and that no draft is lost."""

from __future__ import annotations

import pytest

import cast_helpers as h
from materia_nb.agents.interface import AgentError
from materia_nb.cast import open_cast, resume_cast
from materia_nb.cast.views.step_views import HandoffView
from materia_nb.cast.views.tables import budget_view
from materia_nb.widgets.cast_slices import StepRows

DONE = '{"satisfied": true, "context": "done"}'


def drafting(tmp_path, *replies):
    """Return a cast with a multi-turn socket and a second socket, and the list of turns that its agent receives."""
    left, turns = list(replies), []

    def agent(turn):
        turns.append(turn)
        reply = left.pop(0)
        if isinstance(reply, BaseException):
            raise reply
        return reply

    document = h.config(
        {"Socket-1": h.at("Draft", ("satisfied", "Socket-2"), parse="json"), "Socket-2": h.at("Tell")},
        {"Draft": h.agent("Draft it", multiTurn=True), "Tell": h.agent("Tell")},
    )
    return h.start(tmp_path, document, {"Draft": agent, "Tell": lambda: "told"}), turns


def test_draft_that_contains_a_valid_handoff_remains_a_draft(tmp_path):
    cast, turns = drafting(tmp_path, DONE, DONE)
    assert cast.run() == "person"
    assert (cast.now.waiting_at.mode, cast.now.waiting_at.drafts, cast.now.next_socket) == (
        "draft",
        1,
        "Socket-1",
    )
    assert dict(cast.state) == {}
    assert turns[0].required_fields is None, "nothing may hold a draft to a schema"
    cast.accept()
    assert "satisfied" in turns[1].required_fields
    assert cast.run() == "complete"


@pytest.mark.parametrize("go_on", ["run", "step"])
def test_another_run_does_not_continue_past_a_draft(tmp_path, go_on):
    """Another run must neither accept the draft nor ask the agent again, which would cost money."""
    cast, turns = drafting(tmp_path, "first", DONE)
    cast.run()
    before = h.types_of(cast)
    getattr(cast, go_on)()
    assert (len(turns), cast.now.waiting_at.drafts, cast.now.waiting_at.mode) == (1, 1, "draft")
    assert h.types_of(cast) == before
    cast.close()
    resumed = resume_cast(cast.run_dir, cast.agents)
    assert resumed.run() == "person"
    assert len(turns) == 1
    resumed.accept()
    assert resumed.run() == "complete"
    assert [turn.kind for turn in turns] == ["work", "finalize"]


def test_person_can_write_drafts(tmp_path):
    cast, turns = drafting(tmp_path, "first", DONE)
    cast.run()
    cast.reply(DONE)
    assert (cast.now.waiting_at.mode, cast.now.waiting_at.drafts) == ("draft", 2)
    cast.accept()
    assert [message.text for message in turns[-1].conversation if message.role == "assistant"] == [
        "first",
        DONE,
    ]


def test_every_draft_is_stored_and_shown(tmp_path):
    cast, _ = drafting(tmp_path, "first", "<b>second</b>", DONE)
    cast.run()
    cast.refine("make it <i>bold</i>")
    cast.accept()
    step = cast.steps[0]
    assert [(cast.run_dir / turn.artifact).read_text() for turn in step.turns] == [
        "first",
        "<b>second</b>",
        DONE,
    ]
    assert [turn.artifact.rpartition("/")[2] for turn in step.turns] == [
        "1.refinement-1.md",
        "1.refinement-2.md",
        "1.md",
    ]
    shown = HandoffView(cast.now, step)
    text, html = repr(shown), shown._repr_mimebundle_()["text/html"]
    assert "turn 1: draft\n    first" in text
    assert "message: make it <i>bold</i>" in text
    assert "<b>second" not in html
    assert "&lt;b&gt;second" in html
    assert "2 drafts" in StepRows().between(cast.now, 1, 1)[0][-1]


@pytest.mark.parametrize("go_on", [{"limit": True}, {"turn": True}])
def test_failed_refinement_continues_with_the_drafts(tmp_path, go_on):
    cast, turns = drafting(tmp_path, "first", AgentError("gone"), "second", DONE)
    cast.run()
    cast.refine("shorter")
    assert cast.status == "failed"
    cast.retry(**go_on)
    assert turns[2].prompt == "shorter"
    assert turns[2].conversation == turns[1].conversation
    assert cast.now.waiting_at.drafts == 2
    cast.accept()
    assert cast.run() == "complete"
    h.assert_same(open_cast(cast.run_dir), cast)


def test_draft_of_an_aborted_cast_waits_again_after_a_retry(tmp_path):
    cast, turns = drafting(tmp_path, "first", DONE)
    cast.run()
    cast.abort()
    cast.retry(limit=True)
    assert (cast.now.waiting_at.drafts, len(turns)) == (1, 1)
    assert cast.now.conversation[-1].text == "first"
    h.assert_same(open_cast(cast.run_dir), cast)
    cast.accept()
    assert cast.run() == "complete"


def test_budget_shows_usage_and_limit_of_its_cast(tmp_path):
    document = h.chain_config(2) | {"budget": {"maxTokens": 100}}
    one, other = (
        h.start(tmp_path, document, {"M": {"M": [{"text": "x", "usage": {"input": 20, "output": 5}}] * 2}})
        for _ in "ab"
    )
    one.step()
    one.edit.budget(50)
    assert budget_view(one.now).rows == [("tokens", "25", "50", "50%")]
    assert budget_view(other.now).rows == [("tokens", "0", "100", "0%")]
    assert document["budget"] == {"maxTokens": 100}
