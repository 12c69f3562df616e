"""Test the prompt context of a cast (R50): the parts that agents receive and the parts that views show."""

from __future__ import annotations

import pytest

import cast_helpers as h
from display_hostile import HOSTILE
from materia_nb.agents import Reply, Turn, Usage
from materia_nb.cast import open_cast
from materia_nb.cast.views.status import status_view
from materia_nb.cast.views.step_views import HandoffView, cast_page_html, prompt_view, step_view
from materia_nb.display.escape import html_fold
from materia_nb.errors import MateriaError

AUTO_PLAN = {
    "tools": "readOnly",
    "prompt": "Return compact JSON with ordered workItems. Each item has title and context strings.",
    "generator": True,
}
LONG = "It was long. " * 900


def auto_plan(tmp_path, agents=None):
    document = h.config({"Socket-1": h.at("Auto-Plan", parse="json")}, {"Auto-Plan": AUTO_PLAN})
    return h.start(tmp_path, document, agents, request="a guide to moss")


def html(view):
    return view._repr_mimebundle_()["text/html"]


def test_auto_plan_prompt_contains_the_request_once(tmp_path):
    cast = auto_plan(tmp_path)
    cast.run()
    view = prompt_view(cast.steps[-1], cast.now.prompt)
    assert repr(view).count("a guide to moss") == html(view).count("a guide to moss") == 1
    assert "Request [request] · 23 characters, about 6 tokens\n    ```\n    a guide to moss" in repr(view)
    assert "Your task [task] ·" in repr(view)
    assert "State [state] · left out: nothing beyond the other parts" in repr(view)
    assert "What to return [return] ·" in repr(view)


def test_prompt_view_collapses_the_parts_before_the_task(tmp_path):
    cast = auto_plan(tmp_path)
    cast.run()
    folded = str(html_fold("Request [request] · 23 characters, about 6 tokens", "")).partition("</summary>")[0]
    shown = [status_view(cast.now), step_view(cast.now), HandoffView(cast.now, cast.steps[-1])]
    assert all(folded in html(view) for view in shown)
    assert folded not in html(prompt_view(cast.steps[-1], cast.now.prompt))
    assert folded in cast_page_html(cast.now)


def test_function_agent_receives_the_request_once(tmp_path):
    asked = []
    cast = auto_plan(tmp_path, lambda turn: asked.append(turn.prompt) or {"workItems": []})
    assert cast.run() == "complete"
    assert [prompt.count("a guide to moss") for prompt in asked] == [1]


def chain(tmp_path, first):
    document = h.config(
        {"Socket-1": h.at("A", ("always", "Socket-2")), "Socket-2": h.at("B")},
        {"A": h.agent("Begin."), "B": h.agent("Go on.")},
    )
    cast = h.start(tmp_path, document, {"Socket-1": first, "Socket-2": lambda: "done"})
    cast.run()
    return cast


def test_long_output_is_shortened_in_the_prompt_and_stored_completely(tmp_path):
    cast = chain(tmp_path, lambda: LONG)
    told = next(part for part in cast.steps.at(2).prompt.parts if part.name == "previous")
    assert "characters omitted" in told.text
    assert told.note == f"{len(LONG.strip()) - 7_500:,} of {len(LONG.strip()):,} characters omitted"
    assert (cast.run_dir / "sockets/Socket-1/1.md").read_text().strip() == LONG.strip()


def test_person_can_edit_a_prompt_part_for_one_turn(tmp_path):
    cast = auto_plan(tmp_path)
    cast.run()
    cast.edit.prompt("request", "It is about moss.")
    assert cast.now.prompt.text.startswith("## Request\nIt is about moss.\n\n## Your task\nReturn compact JSON")
    assert open_cast(cast.run_dir).now.prompt == cast.now.prompt


def test_prompt_after_an_edit_contains_no_removed_values(tmp_path):
    plan = {"workItems": [h.item("OLD-ONE"), h.item("OLD-TWO")]}
    cast = h.start(tmp_path, h.loop_config(), {"Plan": lambda: plan}, request="R")
    cast.step()
    cast.edit.items([h.item("NEW-ONE")])
    cast.step()
    prompt = cast.steps[-1].prompt.text
    assert "OLD-" not in prompt
    assert "NEW-ONE" in prompt
    assert "a person changed the work items" in prompt
    cast.close()


def test_prompt_parts_and_handoffs_are_computed_only_when_used():
    made = []
    turn = Turn(
        socket_id="S",
        materia_id="M",
        materia_label="M",
        visit=1,
        kind="work",
        prompt=lambda: made.append("prompt") or "the prompt",
        parts=lambda: made.append("parts") or (),
        handoffs=lambda: made.append("handoffs") or (),
    )
    heard = turn.reporting_to(print)
    assert made == []
    assert [heard.prompt, heard.prompt, heard.report] == ["the prompt", "the prompt", print]
    assert [turn.parts, turn.handoffs] == [(), ()]
    assert made == ["prompt", "parts", "handoffs"]


def test_function_agent_sees_item_state_output_handoffs_and_parts(tmp_path):
    seen = []

    def see(turn, item, state, last, handoffs, parts, prompt):
        seen.append(turn)
        assert prompt == turn.prompt
        assert "\n\n".join(f"## {part.heading}\n{part.text}" for part in parts if part.text) in prompt
        return {"satisfied": len(seen) > 1, "context": f"no {len(seen)}"}

    answers = {
        "Plan": lambda: {"workItems": [h.item("Outline")], "context": "one item"},
        "Build": lambda item: f"wrote {item['title']}",
        "Check": see,
        "Tell": lambda last: f"last was {last}",
    }
    cast = h.start(tmp_path, h.loop_config(), answers, request="R")
    cast.run()
    first, second = seen[:2]
    assert first.item == cast.state["workItems"][0]
    assert (first.last, first.state["workItems"]) == ("wrote Outline", [first.item])
    for change in (lambda: first.item.update(title="x"), lambda: first.state["workItems"].append(1)):
        with pytest.raises(MateriaError, match="cannot be changed in place"):
            change()
    assert [(handoff.socket, handoff.key, handoff.satisfied, handoff.text) for handoff in second.handoffs] == [
        ("Socket-1", None, None, "one item"),
        ("Socket-3", first.item_key, False, "no 1"),
    ]
    assert cast.steps[-1].output == "last was {'satisfied': True, 'context': 'no 2'}"
    cast.close()


@pytest.mark.parametrize("text", HOSTILE[:8])
def test_request_state_and_output_are_quoted_as_text(tmp_path, text):
    document = h.config(
        {"Socket-1": h.at("A", ("always", "Socket-2"), assign={"kept": "$"}), "Socket-2": h.at("B")},
        {"A": h.agent("Begin."), "B": h.agent("Go on.")},
    )
    cast = h.start(tmp_path, document, {"Socket-1": lambda: f"out {text}"}, request=f"ask {text}")
    cast.run()
    step = cast.steps[-1]
    views = [
        prompt_view(step, cast.now.prompt),
        status_view(cast.now),
        step_view(cast.now),
        HandoffView(cast.now, step),
    ]
    for shown in [*map(html, views), cast_page_html(cast.now)]:
        assert not any(sign in shown for sign in ("<img src=x", "<script", "onload='", 'onmouseover="'))
    assert f"## Request\n```\nask {text}" in cast.now.prompt.text
    assert f"out {text}".strip() in cast.now.prompt.text


def test_counted_tokens_are_shown_next_to_the_estimate(tmp_path):
    def counted(turn):
        return Reply("no JSON" if turn.kind == "work" else h.YES, Usage(1234, 56))

    def uncounted(turn):
        return Reply(h.YES)

    document = h.one_config(parse="json")
    for agent, words in ((counted, "turn 1: 1,234 in, 56 out; turn 2: 1,234 in, 56 out"), (uncounted, "")):
        cast = h.start(tmp_path / agent.__name__, document, {"*": agent})
        cast.run()
        output = repr(prompt_view(cast.steps[-1], cast.steps[-1].prompt))
        assert words in output
        assert ("Tokens of the last request" in output) == bool(words)
        assert "about " in output


def test_prompt_view_shows_changes_since_the_previous_visit(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(1, refuse=(1,)))
    cast.run()
    first, again = (step for step in cast.steps if step.socket == "Socket-2")
    output = repr(prompt_view(again, again.prompt, cast.steps))
    line = next(one for one in output.splitlines() if "Compared with its previous visit, step 2: " in one)
    assert "Why it came back +" in line
    assert "Request" not in line
    assert line.endswith("the other layers are identical.")
    assert "Against" not in repr(prompt_view(first, first.prompt, cast.steps))
