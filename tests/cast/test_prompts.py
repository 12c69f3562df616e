"""Test previews of prompts before a cast: all prompts of a scripted cast, or the prompt of one socket."""

from __future__ import annotations

import pytest
from pydantic_ai.models.test import TestModel

from materia_nb import Workbench
from materia_nb.agents import ModelAgent
from materia_nb.errors import MateriaError

ITEMS = [{"title": f"Title-{n}", "context": "what is to be done " * 20} for n in range(10)]


@pytest.fixture
def bench(tmp_path):
    wb = Workbench(tmp_path)
    wb.use("Plan-Build-Eval")
    return wb


def left(bench):
    return [path.name for path in bench.project.iterdir()]


def test_prompt_list_contains_every_prompt_with_its_size(bench):
    prompt_list = bench.prompts(request="a guide to moss", items=ITEMS[:2])
    assert prompt_list.end == "complete"
    assert [(prompt.socket, prompt.item) for prompt in prompt_list.prompts][:3] == [
        ("Socket-1", None),
        ("Socket-2", "Title-0"),
        ("Socket-3", "Title-0"),
    ]
    assert prompt_list.characters == sum(len(one.prompt.text) for one in prompt_list.prompts)
    assert "Title-0" in prompt_list[2].text
    assert "a guide to moss" in prompt_list[1].text
    first, second = prompt_list.of("Socket-2")
    assert first.shared_prefix == 0
    assert first.prompt.text[: second.shared_prefix] == second.prompt.text[: second.shared_prefix]
    assert first.prompt.text[second.shared_prefix] != second.prompt.text[second.shared_prefix]
    assert "Tokens are estimated" in repr(prompt_list)
    assert f"{prompt_list.characters:,} characters" in prompt_list._repr_mimebundle_()["text/html"]
    assert left(bench) == []


def test_prompt_list_includes_visits_for_rework_on_request(bench):
    plain = bench.prompts(items=ITEMS[:2])
    assert {one.turn for one in plain.prompts} == {""}
    prompt_list = bench.prompts(items=ITEMS[:2], rework=True)
    assert prompt_list.end == "complete"
    visits = [
        (prompt.socket, prompt.item, prompt.turn) for prompt in prompt_list.prompts if prompt.prompt.describes_task
    ]
    assert visits[1:5] == [
        ("Socket-2", "Title-0", ""),
        ("Socket-3", "Title-0", ""),
        ("Socket-2", "Title-0", "Why it came back"),
        ("Socket-3", "Title-0", ""),
    ]
    assert sum(turn == "Why it came back" for *_, turn in visits) == 1
    assert "Why it came back" in repr(prompt_list)


def test_prompts_of_bundled_loadouts_grow_linearly_with_their_lists(bench):
    for name in bench.loadouts:
        ten = bench.prompts(name, items=ITEMS)
        forty = bench.prompts(name, items=[dict(one) for one in ITEMS * 4])
        assert (ten.end, forty.end) == ("complete", "complete"), name
        assert forty.characters <= 5 * ten.characters, name


def test_prompts_can_be_shown_for_another_cast_context(bench):
    full, less = bench.prompts(items=3, context="full"), bench.prompts(items=3, context={"items": "none"})
    assert [prompt.step for prompt in full.prompts] == [one.step for one in less.prompts]
    assert less.characters < full.characters
    assert 'castContext {"items":"none"}' in repr(less)


@pytest.mark.parametrize("context", ["much", {"colour": True}, {"items": "some"}, 3])
def test_invalid_cast_context_is_refused(bench, context):
    with pytest.raises(MateriaError, match="is not a castContext"):
        bench.prompts(context=context)


def test_step_without_an_agent_has_no_prompt(bench):
    with pytest.raises(MateriaError, match="No agent is called in step 99"):
        bench.prompts()[99]


def test_prompt_form_of_a_socket_takes_precedence_over_the_model_profile(tmp_path):
    bench = Workbench(tmp_path)
    config = {
        "entry": "Ask",
        "sockets": {
            "Ask": {"materia": "Say", "edges": [{"when": "always", "to": "Own"}]},
            "Own": {"materia": "Say", "promptForm": "md"},
        },
        "materia": {"Say": {"tools": "none", "prompt": "Say it."}},
    }
    bench.loadouts.define("Two", config)
    small = TestModel(custom_output_text="It is wet.", profile={"prompt_form": "plain"})
    cast = bench.cast("rain", loadout="Two", agents={"*": small})
    assert cast.run() == "complete"
    plain, own = (step.prompt.text for step in cast.steps)
    assert plain.startswith("Request:\nrain\n")
    assert own.startswith("Text between fences")
    cast.close()
    resumed = bench.resume(cast.id)
    assert [step.prompt.text for step in resumed.steps] == [plain, own], "whoever answers then"
    by_name = bench.cast("rain", loadout="Two", agents={"*": ModelAgent(small, prompt_form="md")})
    assert by_name.step().prompt.text.startswith("## Request")
    bench.agent("*", small)
    assert bench.prompts("Two", "rain")[1].text == plain
    with pytest.raises(MateriaError, match="is not a prompt form"):
        ModelAgent(small, prompt_form="html")
