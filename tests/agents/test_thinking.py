"""Test that thinking is separated from the answer (R49), and that truncated answers are reported (R52)."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cast_helpers as h
from materia_nb.agents import CommandAgent, FunctionAgent, Reply
from materia_nb.agents.interface import MAX_THINKING_BYTES, split_thinking
from materia_nb.cast import exports, open_cast, resume_cast
from materia_nb.cast.views.step_views import cast_page_html
from materia_nb.display.blocks import blocks_as_json
from materia_nb.widgets.inspector_tabs import step_blocks
from model_helpers import agent
from model_server import calls, says, serving

THOUGHT = '\nIs it done? {"satisfied": false} would be wrong.\n'
ANSWER = '{"satisfied": true, "context": "fine"}'
WHOLE_TEXT = f"<think>{THOUGHT}</think>\n\n{ANSWER}"
CHUNKINGS = {
    "one piece": [WHOLE_TEXT],
    "tags alone": ["<think>", THOUGHT, "</think>", "\n\n", ANSWER],
    "tags cut": ["\n<thi", f"nk>{THOUGHT[:9]}", f"{THOUGHT[9:]}</", "think>\n", ANSWER],
    "only the first tag alone": ["<think>", f"{THOUGHT}</thi", f"nk>\n\n{ANSWER}"],
    "every character": list(WHOLE_TEXT),
}


def judged_loadout(materia=None, **more):
    """Return a loadout with a judge whose verdict determines whether another round begins."""
    sockets = {
        "Judge": {
            "materia": "judge",
            "parse": "json",
            "edges": [{"when": "satisfied", "to": "end"}, {"when": "not_satisfied", "to": "Again"}],
        },
        "Again": {"materia": "again"},
    }
    texts = {"judge": {"tools": "none", "prompt": "Judge it"}, "again": {"tools": "none", "prompt": "Again"}}
    return {
        "loadouts": {"T": {"entry": "Judge", "sockets": sockets}},
        "materia": {name: {**one, **(materia or {})} for name, one in texts.items()},
        **more,
    }


@pytest.mark.parametrize("way", CHUNKINGS)
def test_verdict_inside_the_thinking_text_is_ignored(way, tmp_path):
    with serving(says(*CHUNKINGS[way])) as server:
        cast = h.start(tmp_path, judged_loadout(), agent(server))
        assert cast.run() == "complete"
    step = cast.steps.at(1)
    assert [one.socket for one in cast.steps] == ["Judge"]
    assert step.reading.satisfied is True
    assert step.output == ANSWER
    assert step.thinking == THOUGHT.strip()


def test_next_agent_receives_the_answer_without_the_thinking_text(tmp_path):
    with serving(says("<think>a secret plan</think>\n\nThe work."), says("done")) as server:
        cast = h.start(tmp_path, h.chain_config(2), agent(server))
        assert cast.run() == "complete"
        assert "secret plan" not in json.dumps(server.asked)
    assert [step.output for step in cast.steps] == ["The work.", "done"]
    assert cast.steps.at(1).thinking == "a secret plan"


def thinks(tmp_path, **config):
    with serving(says(*CHUNKINGS["every character"])) as server:
        cast = h.start(tmp_path, judged_loadout(**config), agent(server))
        assert cast.run() == "complete"
    return cast


def test_thinking_of_a_turn_is_preserved_by_open_resume_fork_and_replay(tmp_path):
    cast = thinks(tmp_path)
    cast.close()
    assert open_cast(cast.run_dir).steps.at(1).thinking == THOUGHT.strip()
    resumed = resume_cast(cast.run_dir)
    assert resumed.steps.at(1).thinking == THOUGHT.strip()
    assert resumed.fork().steps.at(1).thinking == THOUGHT.strip()
    replayed = h.start(
        tmp_path, judged_loadout(), exports.agent_from_recording(exports.recording_of(resumed.now), "recording")
    )
    replayed.run()
    assert replayed.steps.at(1).thinking == THOUGHT.strip()


def test_thinking_is_shown_by_why_but_not_stored_in_the_output_file(tmp_path):
    cast = thinks(tmp_path)
    why = cast.why(1)
    for shown in (repr(why), why._repr_mimebundle_()["text/html"], cast_page_html(cast.now)):
        assert "Is it done?" in shown
    assert "Is it done?" in json.dumps(blocks_as_json(step_blocks("why", cast.now, cast.steps.at(1))))
    assert "Is it done?" not in (cast.run_dir / "sockets/Judge/1.md").read_text()


def test_config_can_turn_off_storing_thinking(tmp_path):
    cast = thinks(tmp_path, keepThinking=False)
    assert cast.steps.at(1).thinking == ""
    assert "Is it done?" not in cast.run_dir.joinpath("events.jsonl").read_text()


def test_stored_thinking_is_redacted_and_truncated(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "sk-canary-0123456789")
    long = "ü sk-canary-0123456789 " * 20_000
    cast = h.start(tmp_path, h.one_config(), lambda turn: Reply("done", thinking=long))
    cast.run()
    kept = cast.steps.at(1).thinking
    assert "canary" not in kept
    assert len(kept.encode()) <= MAX_THINKING_BYTES
    assert kept.endswith("characters in total]")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_fields_of_a_provider_are_stored_separately_from_the_output(tmp_path, field):
    def answer(exchange):
        exchange.begin()
        exchange.event({field: "let me "})
        exchange.event({field: "see"})
        exchange.event({"content": ANSWER})
        exchange.end()

    with serving(answer) as server:
        cast = h.start(tmp_path, judged_loadout(), agent(server))
        assert cast.run() == "complete"
    assert (cast.steps.at(1).output, cast.steps.at(1).thinking) == (ANSWER, "let me see")


def test_thinking_is_removed_from_the_text_of_an_answer_with_tool_calls(tmp_path):
    (tmp_path / "a.txt").write_text("here")
    look = calls(("read", {"path": "a.txt"}), said="<think>which file?</think>I look.")
    with serving(look, says("<think>good</think>It says here.")) as server:
        cast = h.start(tmp_path, h.one_config(h.agent(tools="readOnly")), agent(server))
        assert cast.run() == "complete"
        assert "which file?" not in json.dumps(server.asked)
    turn = cast.steps.at(1).turns[0]
    assert (turn.text, turn.calls[0].said) == ("It says here.", "I look.")
    assert turn.thinking == "which file?\n\ngood"


def test_thinking_text_of_a_program_is_separated_from_its_answer(tmp_path):
    code = f"print({WHOLE_TEXT!r})"
    cast = h.start(tmp_path, judged_loadout(), CommandAgent([sys.executable, "-I", "-S", "-c", code]))
    assert cast.run() == "complete"
    assert (cast.steps.at(1).output, cast.steps.at(1).thinking) == (ANSWER, THOUGHT.strip())


@pytest.mark.parametrize(
    "text",
    [
        "no tags",
        "first words <think>then</think> more",
        "",
        "\n{}",
        '{"context": "a </think> in a text"}',
        "The tag\n```\n</think>\n```\nends it.",
        "Write `</think>` at the end.",
        "<thought>x</thought>",
    ],
)
def test_text_without_thinking_is_unchanged(text):
    assert split_thinking(text) == (text, "", True)


def test_thinking_tags_come_from_the_model_profile():
    tags = ("<|start|>", "<|end|>")
    assert split_thinking("\ufeff<|start|>a<|end|>b", tags) == ("b", "a", True)
    assert split_thinking("<think>a</think>b", tags) == ("b", "a", True)
    assert split_thinking("<think>a", tags) == ("", "a", False)


@pytest.mark.parametrize(
    "text, thinking, answer",
    [
        ("a draft\n</think>\n\nthe answer", "a draft", "the answer"),
        ("draft ``` fence </THINK> the answer", "draft ``` fence", "the answer"),
        ("<Thinking>a</THINKING>b", "a", "b"),
        (" <reasoning>a</reasoning>\nb", "a", "b"),
        ("<thinking>a </think> b</thinking>c", "a </think> b", "c"),
        ("a</reasoning>b</think>c", "a", "b</think>c"),
        ('draft {"satisfied": false}</think>{"satisfied": true}', 'draft {"satisfied": false}', '{"satisfied": true}'),
        ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>",
         "a<|end|><|start|>assistant", "b"),
        ("<|channel|>analysis a <|channel|>final b", "a", "b"),
    ],
)  # fmt: skip
def test_thinking_is_separated_from_the_answer(text, thinking, answer):
    assert split_thinking(text) == (answer, thinking, True)


@pytest.mark.parametrize("text", ["<reasoning>a", "<THINK>a</reasoning>", "<|channel|>analysis<|message|>a"])
def test_text_with_an_unclosed_thinking_tag_has_no_answer(text):
    split_response = split_thinking(text)
    assert (split_response.text, split_response.is_closed) == ("", False)


@given(st.lists(st.sampled_from(["a", "<think>", "</think>", "</Reasoning>", "`", "\n```\n", "{}", " "])).map("".join))
def test_answer_and_thinking_are_unmodified_parts_of_the_original_text(text):
    split_response = split_thinking(text)
    assert split_response.text in text
    assert split_response.thinking in text
    if not split_response.thinking and split_response.is_closed and "<" not in text:
        assert split_response.text == text


@pytest.mark.parametrize("unit", ["</think", "`", "```\n", "<think>", "~~~\n```\n", "</think>", "{", "`</think>`"])
def test_long_text_is_separated_quickly(unit):
    """A search that takes quadratic time would exceed the time limit of the test."""
    split_thinking(unit * (400_000 // len(unit)) + "</think>x")


def test_thinking_in_the_text_of_a_function_agent_is_separated(tmp_path):
    draft = 'The draft {"satisfied": false} is wrong.\n</think>\n\n{"satisfied": true}'
    cast = h.start(tmp_path, judged_loadout(), lambda _: draft)
    cast.run()
    step = cast.steps.at(1)
    assert (step.decision.satisfied, step.output) == (True, '{"satisfied": true}')
    assert step.thinking == 'The draft {"satisfied": false} is wrong.'


def test_function_without_a_model_can_return_any_text(tmp_path):
    text = "before </think> after"
    cast = h.start(tmp_path, h.chain_config(1), FunctionAgent(lambda _: text, thinking=False))
    cast.run()
    assert cast.steps.at(1).output == text


# -- answers that were cut (R52) ------------------------------------------------------


def test_repair_prompt_and_failure_mention_truncation_before_other_issues(tmp_path):
    half = says('{"satisfied": tr', finish="length")
    with serving(half, half) as server:
        cast = h.start(tmp_path, judged_loadout(), agent(server, settings={"max_tokens": 25}))
        assert cast.run() == "failed"
        asked = server.messages()[-1]["content"]
    first, *_ = cast.failure.refused[0]
    assert first.code == "answer_cut"
    assert "max_tokens 25" in first.message
    assert "max_tokens" in cast.failure.hint
    assert cast.failure.message.index("cut off by max_tokens 25") < cast.failure.message.index("JSON")
    assert asked.index("answer_cut") < asked.index("JSON")
    assert "write a shorter, complete answer" in asked
    cast.close()
    for again in (open_cast(cast.run_dir), resume_cast(cast.run_dir)):
        assert again.failure == cast.failure
        assert again.steps.at(1).turns == cast.steps.at(1).turns


def test_unclosed_thinking_counts_as_truncated(tmp_path):
    with serving(says("<think>and then {", '"satisfied": true}'), says(ANSWER)) as server:
        cast = h.start(tmp_path, judged_loadout(), agent(server))
        assert cast.run() == "complete"
    refused, taken = cast.steps.at(1).turns
    assert refused.reading.issues[0].code == "answer_cut"
    assert (refused.text, refused.thinking) == ("", 'and then {"satisfied": true}')
    assert taken.text == ANSWER


def test_empty_answer_after_thinking_is_refused(tmp_path):
    endless = says("<think>on and on", finish="length")
    with serving(endless) as server:
        cast = h.start(tmp_path, h.one_config(h.agent(multiTurn=True)), agent(server))
        assert cast.run() == "failed"
    assert cast.failure.kind == "answer_cut"
    assert "max_tokens" in cast.failure.hint
    with serving(endless, endless) as server:
        cast = h.start(tmp_path, h.one_config(), agent(server))
        assert cast.run() == "failed"
    assert cast.failure.refused[0][0].code == "answer_cut"


@pytest.mark.parametrize("document, text", [(judged_loadout(), ANSWER), (h.one_config(), "half a sent")])
def test_usable_truncated_answer_is_accepted_with_a_warning(tmp_path, document, text):
    with serving(says(text, finish="length")) as server:
        cast = h.start(tmp_path, document, agent(server))
        assert cast.run() == "complete"
    assert [warning.code for warning in cast.steps.at(1).reading.warnings] == ["answer_cut"]
    assert "cut off by its maximum number of tokens" in str(cast.why(1))
