"""Test that text typed in a notebook reaches its verb unchanged."""

from __future__ import annotations

import contextlib

import pytest

import materia_nb
from magics_helpers import ASK, cell, line, run, text
from materia_nb.errors import MateriaError

PROSE = {
    "an open bracket": "Write a guide (short, don't ramble",
    "an apostrophe": "don't do it",
    "an open quote": 'he said "well',
    "an open brace": "{satisfied: false",
    "uneven bullets": "  - one\n      - two\n - three",
    "backticks": "```python\nprint('hi'\n```",
    "a backslash at the end": "C:\\temp\\",
    "a triple quote": '"""',
    "a semicolon at the end": "do this;",
}
EACH = pytest.mark.parametrize("prose", PROSE.values(), ids=list(PROSE))
UTILITY = """
entry: Socket-1
sockets: {Socket-1: {materia: Teller}}
materia: {Teller: {tools: none, prompt: "Tell"}}
"""


@pytest.fixture
def asked(shell):
    cell(shell, "define loadout Ask", ASK)
    cell(shell, "define loadout Tell", UTILITY)
    line(shell, "cast one")
    line(shell, "step")
    return shell


@EACH
def test_request_in_a_cell_may_be_any_text(asked, prose):
    assert run(asked, f"%%materia cast\n{prose}").now.request == prose.strip()


@EACH
def test_answer_in_a_cell_may_be_any_text(asked, prose):
    assert "complete" in text(run(asked, f"%%materia reply\n{prose}"))


@EACH
def test_any_text_in_a_cell_is_passed_to_refine_and_quest_add(asked, prose):
    for verb in ("refine", "answer"):
        with pytest.raises(MateriaError):
            run(asked, f"%%materia {verb}\n{prose}")
    run(asked, f"%%materia quest add\n{prose}")
    assert asked.user_ns["wb"].quests.quests[-1].request == prose.strip()


@EACH
def test_edited_prompt_or_output_in_a_cell_may_be_any_text(asked, prose):
    run(asked, f"%%materia edit prompt task\n{prose}")
    assert prose.strip() in asked.user_ns["wb"].current.now.prompt.text
    run(asked, "%%materia reply\nfirst")
    run(asked, f"%%materia edit output\n{prose}")
    assert asked.user_ns["wb"].current.steps[-1].output.strip() == prose.strip()


@pytest.mark.parametrize("verb", ["loadout X", "items", "utility X", "agent Teller"])
@EACH
def test_invalid_cell_raises_a_materia_error(asked, verb, prose):
    with contextlib.suppress(MateriaError):
        run(asked, f"%%materia {verb}\n{prose}")


def test_semicolon_hides_the_value_of_a_line_magic(asked):
    assert run(asked, "%materia status;") is None
    assert run(asked, "%materia status") is not None


@pytest.mark.parametrize("request_", ["is it done?", "why 'this' (and that)?", "really??", "x ; y?"])
def test_request_may_end_with_a_question_mark(asked, request_):
    assert run(asked, f"%materia cast {request_}").now.request == request_
    assert run(asked, f"if True:\n    made = %materia cast {request_}\nmade").now.request == request_


def test_question_mark_after_a_verb_still_shows_help(asked, capsys):
    run(asked, "%materia?")
    assert "load a loadout" in capsys.readouterr().out
    assert "Start a cast" in text(run(asked, "%materia cast?"))


def test_question_mark_inside_text_is_not_removed(asked):
    run(asked, 's = """\n%materia cast is it?\n"""')
    assert asked.user_ns["s"] == "\n%materia cast is it?\n"
    with pytest.raises(MateriaError, match="no verb"):
        run(asked, "%materia is it done?")


def test_unloading_removes_the_question_mark_handling(shell):
    before = len(shell.input_transformer_manager.token_transformers)
    materia_nb.load_ipython_extension(shell)
    assert len(shell.input_transformer_manager.token_transformers) == before
    materia_nb.unload_ipython_extension(shell)
    assert len(shell.input_transformer_manager.token_transformers) == before - 1


def test_prompts_can_be_shown_before_a_cast(shell):
    full = line(shell, "explore prompts Plan-Build-Eval --items 2 --request moss")
    request = line(shell, "explore prompts Plan-Build-Eval --items 2 --request moss --context request")
    assert (len(full.prompts), full.end) == (8, "complete")
    assert request.characters < full.characters
    assert "moss" in full[1].text
    assert 'Plan-Build-Eval: castContext "request", 8 prompts' in text(request)
    with pytest.raises(MateriaError, match="is not a castContext"):
        line(shell, "explore prompts Plan-Build-Eval --context everything")


def test_cast_can_be_estimated_before_it_begins(shell):
    output = line(shell, "estimate Plan-Build-Eval --items 2 --satisfied 1 --answer 100 --model openai:gpt-4o")
    assert (output.items, output.total.turns, output.shortest, output.unpriced) == (2, (8, 8, 8), (), ())
    assert output.total.output == (800, 800, 800)
    assert "a cast over lists of 2 takes about 8 turns" in text(output)
    assert "its cost is unknown" in text(line(shell, "estimate Plan-Build-Eval --items 2"))
