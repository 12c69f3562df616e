"""R32: what an agent is told of the cast beside its own prompt, and how much of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import YES, Play, agent, asks, at, config, edge, items, loop, say
from materia_nb.engine.prompt_layers import OUTPUT_CHARS, STATE_CHARS, STRING_CHARS, shortened, state_json
from materia_nb.loadout import check_config

PLAN = (
    "Auto-Plan",
    "Return compact JSON with ordered workItems. Each item has title and context strings.",
)


def cast_text(play):
    return next((layer.text for layer in play.prompt.layers if layer.name == "cast"), "")


def state_of(play):
    """The state that the layer shows, read back."""
    text = cast_text(play).partition("The state so far, as JSON:\n")[2]
    return json.JSONDecoder().raw_decode(text)[0] if text else {}


def chain(prompt="p", **top):
    """A utility, then an agent with ``prompt``."""
    return config({"Rows": at("U", edge("Ask")), "Ask": at("Q")}, materia={"Q": agent(prompt)}, **top)


def test_the_auto_plan_of_the_specification_is_told_the_request_once():
    name, prompt = PLAN
    sockets = {"Socket-1": asks(materia=name)}
    play = Play(
        config(sockets, materia={name: agent(prompt, tools="readOnly", generator=True)}), request="A guide"
    )
    assert play.prompt.text.count("A guide") == 1
    assert play.prompt.instruction == prompt
    assert play.prompt.text.startswith("The request:\nA guide\n\nYour place: Socket-1, Auto-Plan, in")


def test_a_generator_after_a_generator_is_told_the_items_it_turns_into_others():
    sockets = {"Plan": asks(edge("Split"), materia="G"), "Split": asks(materia="G")}
    play = Play(config(sockets), items("wide", "narrow"))
    assert [item["title"] for item in state_of(play)["workItems"]] == ["wide", "narrow"]
    assert "The output of Plan, completed just before:" in cast_text(play)


def test_the_item_is_named_and_not_shown_twice():
    sockets = {"Plan": asks(edge("Do"), materia="G"), "Do": at("P", edge("Do"))}
    play = Play(config(sockets, {"L": loop("Do", consumes={"as": "task"})}), items("a"))
    assert "The item is WI-1." in cast_text(play)
    assert list(state_of(play)) == ["workItems"]


@pytest.mark.parametrize("prompt", ["{{stateJson}}", "{{state}}"])
def test_a_state_that_the_prompt_shows_whole_is_left_out(prompt):
    play = Play(chain(prompt), say(state={"x": 1}))
    assert "The state so far" not in cast_text(play)


@pytest.mark.parametrize("prompt", ["{{state.plan.name}}", "{{ plan.name }}"])
def test_a_path_that_the_prompt_shows_is_left_out(prompt):
    play = Play(chain(prompt), say(state={"plan": {"name": "N", "why": "W"}}))
    assert state_of(play) == {"plan": {"why": "W"}}


@pytest.mark.parametrize("prompt", ["{{lastOutput}}", "{{lastJson}}"])
def test_an_output_that_the_prompt_shows_is_left_out(prompt):
    play = Play(chain(prompt), say(state={"x": 1}))
    assert "The output of" not in cast_text(play)
    assert state_of(play) == {"x": 1}


def test_a_request_that_the_prompt_shows_is_left_out():
    play = Play(chain("Do {{request}}."), say(), request="R32")
    assert "The request" not in cast_text(play)
    assert play.prompt.text.count("R32") == 1


@pytest.mark.parametrize(
    "top, layer, socket, wanted",
    [
        ({}, {}, {}, "full"),
        ({"castContext": "none"}, {}, {}, "none"),
        ({"castContext": "none"}, {"castContext": "request"}, {}, "request"),
        ({"castContext": "none"}, {"castContext": "request"}, {"castContext": "full"}, "full"),
    ],
)
def test_the_nearest_word_on_what_is_told_wins(top, layer, socket, wanted):
    document = chain(**top)
    document["loadouts"]["T"] |= layer
    document["loadouts"]["T"]["sockets"]["Ask"] |= socket
    text = cast_text(Play(document, say(state={"x": 1}), request="R"))
    assert ("The request:\nR" in text, '"x": 1' in text) == (wanted != "none", wanted == "full")


def test_with_the_request_alone_there_is_no_layer_once_the_prompt_tells_it():
    play = Play(chain("{{request}}", castContext="request"), say(), request="R")
    assert [layer.name for layer in play.prompt.layers] == ["materia"]


def test_later_turns_of_a_conversation_do_not_repeat_it_and_a_new_one_has_it():
    document = config({"Ask": asks(edge("Ask", "not_satisfied"))}, limits={"repairAttempts": 1})
    play = Play(document, "no json", request="R")
    assert "cast" not in [layer.name for layer in play.prompt.layers]
    play.go("no json again")
    assert "The request:\nR" in play.revive().prompt.text, "whoever answers now has seen nothing"
    play.go("still none")
    assert "The request:\nR" in play.recast().prompt.text


def test_only_the_rendered_materia_prompt_is_the_instruction():
    assert Play(chain("Do {{request}}."), say(), request="it").prompt.instruction == "Do it."


def test_values_are_text_that_nothing_expands():
    play = Play(chain(), say(state={"a": "{{request}}"}), request="</script>{{stateJson}}")
    assert "The request:\n</script>{{stateJson}}\n" in cast_text(play)
    assert state_of(play) == {"a": "{{request}}"}


# -- bounds ----------------------------------------------------------------------------------


def test_a_long_string_says_that_it_was_cut_how_long_it_was_and_where_all_of_it_is():
    play = Play(chain(), say(state={"long": "x" * 5_000, "short": "y"}))
    told = state_of(play)["long"]
    assert len(told) == STRING_CHARS
    assert told.endswith("… (cut: 5000 characters; whole in events.jsonl)")


def test_a_long_output_is_cut_within_its_bound():
    play = Play(chain(), say(noise="x" * 9_000))
    output = cast_text(play).partition("completed just before:\n")[2]
    assert len(output) == OUTPUT_CHARS
    assert output.endswith("(cut: 9013 characters)")


def test_work_items_are_what_is_cut_last():
    told = {"notes": [f"note {n} " + "n" * 90 for n in range(200)], "workItems": ["w" * 99] * 180}
    shown = json.loads(state_json(told))
    assert shown["workItems"] == told["workItems"]
    assert shown["notes"][-1].endswith("of 200 entries are left out; whole in events.jsonl")


def test_too_many_work_items_leave_room_for_the_rest():
    shown = json.loads(state_json({"workItems": [{"title": str(n)} for n in range(9_999)], "vcs": "git"}))
    assert shown["vcs"] == "git"
    assert len(shown["workItems"]) > 400
    assert "of 9999 entries are left out" in shown["workItems"][-1]


class Counted(list):
    """A list that counts how many of its members were looked at."""

    seen = 0

    def __iter__(self):
        for member in super().__iter__():
            self.seen += 1
            yield member


def test_what_a_layer_costs_does_not_grow_with_the_state():
    many = Counted({"title": str(n)} for n in range(50_000))
    state_json({"workItems": many})
    assert many.seen < 10_000


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=30)
    | st.integers(1_900, 9_000).map("\n".__mul__)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(max_size=9), inner, max_size=40),
    max_leaves=60,
)
STATES = st.dictionaries(
    st.sampled_from(["workItems", "context", "a", "b", "", "…"]), VALUES, min_size=1, max_size=6
)


def strings(value):
    if isinstance(value, str):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(child)


@settings(max_examples=60)
@given(STATES, st.integers(600, STATE_CHARS))
def test_the_state_is_json_within_its_bounds_and_whole_where_it_fits(data, most):
    text = state_json(data, most)
    assert len(text) <= most
    shown = json.loads(text)
    assert all(len(one) <= STRING_CHARS for one in strings(shown))
    whole = json.dumps(data, indent=2, ensure_ascii=False)
    if len(whole) <= most and all(len(one) <= STRING_CHARS for one in strings(data)):
        assert text == whole
    assert text == state_json(dict(data), most)


@given(st.text(max_size=300), st.integers(80, 200), st.none() | st.just("sockets/A/1.md"))
def test_a_cut_text_keeps_to_its_bound(text, most, artifact):
    cut = shortened(text, most, artifact)
    assert len(cut) <= most
    assert cut == text or str(len(text)) in cut


TOLD = st.sets(
    st.sampled_from(["{{request}}", "{{stateJson}}", "{{state.note}}", "{{lastOutput}}", "{{lastJson}}"])
)


@given(TOLD)
def test_nothing_that_the_prompt_tells_is_told_again(variables):
    play = Play(chain("p " + " ".join(sorted(variables))), say(state={"note": "NOTE"}), request="REQUEST")
    told = cast_text(play)
    assert ("REQUEST" in told) == ("{{request}}" not in variables)
    assert ("The state so far" in told) == (not variables & {"{{stateJson}}", "{{state.note}}"})
    assert ("The output of" in told) == (not variables & {"{{lastOutput}}", "{{lastJson}}"})
    assert play.prompt.text == play.prompt.text


# -- what is wrong with it, and what is odd ------------------------------------------------------


def problems(document):
    return [(one.code, one.source) for one in check_config(document).problems]


def hints(document):
    return [(one.code, one.source) for one in check_config(document).hints if "castContext" in one.source]


def test_a_word_that_is_none_of_the_three_is_a_problem_wherever_it_stands():
    document = chain(castContext="all")
    document["loadouts"]["T"]["castContext"] = True
    document["loadouts"]["T"]["sockets"]["Ask"]["castContext"] = ["full"]
    assert sorted(problems(document)) == [
        ("invalid-config", "castContext"),
        ("invalid-config", "castContext"),
        ("invalid-socket", "Ask.castContext"),
    ]


def test_none_is_a_hint_where_the_prompt_asks_for_nothing_either():
    assert hints(chain("Build it.", castContext="none")) == [("told-nothing", "Ask.castContext")]
    assert hints(chain("Build {{request}}.", castContext="none")) == []
    assert hints(chain("Build it.", castContext="request")) == []


def test_on_a_utility_it_has_no_effect():
    document = chain()
    document["loadouts"]["T"]["sockets"]["Rows"]["castContext"] = "none"
    assert hints(document) == [("no-effect", "Rows.castContext")]


def test_satisfied_work_is_told_to_the_next_socket():
    sockets = {"A": asks(edge("B", "satisfied")), "B": at("P")}
    assert f"The output of A, completed just before:\n{YES}" in cast_text(Play(config(sockets), YES))
