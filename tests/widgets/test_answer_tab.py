"""Test the content of the Answer tab at each stage of a cast, without a panel."""

from __future__ import annotations

import json
import re

import pytest

import cast_helpers as h
from materia_nb.agents.interface import NeedsApproval, ToolCall
from materia_nb.cast import open_cast
from materia_nb.display.blocks import Fold, blocks_as_text
from materia_nb.errors import MateriaError
from materia_nb.widgets.answering import answer_state, build_answer, check_text, parse_value
from materia_nb.widgets.failure_panel import failure_state, result_blocks


def shown(cast):
    """Return the non-empty content of the tab without its key, which depends on time."""
    state = answer_state(cast.now, busy=False)
    del state["key"]
    return {name: value for name, value in state.items() if value not in (None, [], {}, False)}


def test_answer_tab_shows_each_stage_of_a_cast(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), {**h.loop_agents(1), "Check": "person"})
    first = shown(cast)
    assert first.keys() == {"is", "enter"}
    assert first["enter"]["words"] == "Next: Plan, answered by a function."
    cast.step()
    assert shown(cast)["correct"] == {
        "key": "0 1 1",
        "text": cast.steps[-1].output,
        "words": "Edit the output of step 1",
    }
    cast.step(ask=False)
    [work] = answer_state(cast.now, busy=True)["top"]
    assert re.fullmatch(r"Build has been working on Part 1 since \d\d:\d\d:\d\d\.", blocks_as_text([work]).strip())
    cast.step()
    assert shown(cast)["enter"] == {"words": "Next: Check. You write the answer.", "button": "Show the prompt"}
    cast.run()
    waiting = shown(cast)
    assert waiting.keys() == {"is", "live", "form"}
    form = waiting["form"]
    assert form["words"] == "Your turn. Is the work done?"
    assert form["verdict"] == {"yes": "Tell", "no": "Build (1st of 3 times)"}
    assert form["previous"] == {"who": "Build", "text": cast.steps[-2].output, "cut": False}
    assert form["task"] == [["request", "the widget"], ["item", "Part 1: about Part 1"]]
    assert [form[name] for name in ("person", "text", "draft", "items")] == [True, False, False, False]
    busy = answer_state(cast.now, busy=True)
    assert not {"form", "enter", "correct", "asks"} & busy.keys()
    cast.reply(h.YES)
    cast.run()
    over = shown(cast)
    assert over.keys() == {"is", "top", "next", "correct"}
    assert [one["kind"] for one in over["next"]] == ["compare", "label", "keep_test", "page"]
    text = blocks_as_text(result_blocks(cast.now))
    assert "Complete: 1 of 1 item done, after 4 steps" in text
    assert "final output · Tell, step 4" in text
    assert "original text" not in text
    cast.close()
    opened = shown(open_cast(cast.run_dir))
    assert opened.keys() == {"is", "top"}, "nothing can be done with it"


def test_formatted_result_can_also_be_shown_as_raw_text(tmp_path):
    answer = '{"satisfied": true, "context": "All is well."}'
    cast = h.start(tmp_path, h.one_config(parse="json"), lambda: answer)
    cast.run()
    (fold,) = (result_block for result_block in result_blocks(cast.now) if isinstance(result_block, Fold))
    assert "original text" in blocks_as_text([fold])
    assert "All is well." in blocks_as_text(result_blocks(cast.now)[:3])
    cast.close()


def test_typed_answer_is_checked_before_it_is_sent(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), {**h.loop_agents(1), "Check": "person"})
    fine, nothing = {"issues": [], "advice": "", "fine": True}, {"issues": [], "advice": "", "fine": False}
    assert check_text(cast.now, "x", "correction") == nothing, "there is no step yet"
    assert check_text(cast.now, "x", "reply") == fine, "nothing waits"
    cast.run()
    assert check_text(cast.now, h.YES, "reply") == fine
    unclosed = check_text(cast.now, '{"satisfied": true', "reply")
    assert not unclosed["fine"]
    assert "closing quote or bracket is missing" in unclosed["advice"]
    prose = check_text(cast.now, "well", "reply")
    assert (prose["fine"], prose["advice"], prose["issues"][0][0]) == (False, "", "$")
    assert check_text(cast.now, "3", "value") == fine
    assert check_text(cast.now, "x", "value") == {**nothing, "advice": 'line 1: put x in double quotes: "x"'}
    assert check_text(cast.now, h.YES, "correction") == fine
    assert check_text(cast.now, "x", "by_hand") == fine, "nothing failed"
    cast.close()


def test_answer_is_built_from_buttons_reason_and_table(tmp_path):
    cast = h.start(tmp_path, h.one_config(), "person")
    items = [h.item("a")]
    assert json.loads(build_answer(cast.now, None, "")) == {"context": ""}
    assert json.loads(build_answer(cast.now, False, "why")) == {"satisfied": False, "context": "why"}
    assert json.loads(build_answer(cast.now, None, "", items)) == {"workItems": items}
    made = json.loads(build_answer(cast.now, True, "why", []))
    assert made == {"workItems": [], "satisfied": True, "context": "why"}
    cast.close()


def test_value_is_parsed_as_json_unless_it_is_text():
    assert parse_value("[1]", as_text=True) == "[1]"
    assert parse_value("[1]", as_text=False) == [1]
    with pytest.raises(MateriaError) as caught:
        parse_value("x", as_text=False)
    assert caught.value.kind == "not_json"
    assert "double quotes" in caught.value.hint


def test_calls_waiting_for_approval_are_shown_before_the_answer(tmp_path):
    call = ToolCall(id="1", tool="bash", args={"command": "make it"}, said="To see it.")

    class Asks:
        name = "asks"

        def answer(self, turn):
            return NeedsApproval((call,))

    cast = h.start(tmp_path, h.one_config(), Asks())
    cast.run()
    state = shown(cast)
    assert "form" not in state
    asks = state["asks"]
    assert (asks["is"], asks["words"], asks["said"]) == (
        "calls",
        "M is asking for approval to run",
        "To see it.",
    )
    assert "make it" in blocks_as_text(asks["blocks"])
    cast.close()


@pytest.mark.parametrize(
    "code, headline, kept",
    [
        ("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)", "exited with code 3", True),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "ended with signal SIGTERM", False),
    ],
)
def test_failed_process_is_shown_with_its_output(tmp_path, code, headline, kept):
    cast = h.start(tmp_path, h.one_config(h.python(code)), {})
    cast.run()
    state = failure_state(cast.now)
    told, more = blocks_as_text(state["blocks"]), blocks_as_text(state["more"])
    assert headline in told
    assert "step 1" in told
    lines = [line.strip() for line in f"{told}\n{more}".splitlines()]
    assert [one in lines for one in ("err", "out")] == [kept, kept]
    assert "command, and where its output is saved" in more
    assert (state["socket"], state["says"]) == ("Socket-1", "the output of the process")
    assert state["offers"]
    cast.close()
    assert failure_state(open_cast(cast.run_dir).now)["offers"] == []


def test_missing_program_is_shown_as_not_started(tmp_path):
    missing = {"type": "utility", "command": ["/no/such/program"]}
    cast = h.start(tmp_path, h.one_config(missing), {})
    cast.run()
    text = blocks_as_text(failure_state(cast.now)["blocks"])
    assert "could not be started" in text
    assert "stderr" not in text
    cast.close()
