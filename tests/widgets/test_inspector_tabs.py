"""Test the inspector without a panel: its tabs for each selection, and their content."""

from __future__ import annotations

import pytest

import cast_helpers as h
from materia_nb.cast import open_cast
from materia_nb.widgets.inspector_tabs import Element, inspector_state, possible_breakpoints

OF_SOCKET = ["answer", "prompt", "why", "state", "about"]
OF_STEP = ["output", "prompt", "why", "state"]


@pytest.fixture(scope="module")
def cast(tmp_path_factory):
    """Return a cast with one item that waits for the check of a person."""
    made = h.start(tmp_path_factory.mktemp("inspected"), h.loop_config(), {**h.loop_agents(1), "Check": "person"})
    made.run()
    yield made
    made.close()


def looked(cast, tab="", selected=None, past=None, *, busy=False, only=""):
    """Return the content of the inspector, with only the name of each tab."""
    pick = None if selected is None else Element(*selected)
    state = inspector_state(cast.now, pick, past, tab, busy=busy, only=only)
    return {**state, "tabs": [name for name, _, _ in state["tabs"]]}


def test_inspector_shows_all_tabs_for_a_past_step_but_only_the_state_for_the_start(cast):
    view = looked(cast, past=cast.at(2))
    assert (view["tabs"], view["tab"]) == (OF_STEP, "output")
    assert view["title"] == {
        "kind": "step",
        "name": "Build",
        "chips": ["step 2 · visit 1 · Part 1"],
        "id": None,
        "step": 2,
    }
    assert "correct" not in view["content"], "only the latest step is corrected"
    start = looked(cast, "why", past=cast.at(0))
    assert (start["tabs"], start["tab"], start["title"]["name"]) == (["state"], "state", "the start")
    assert start["title"]["chips"] == ["looking back"]
    assert (start["content"]["edit"], start["content"]["steps"], start["content"]["at"]) == (False, 3, 0)
    assert start["content"]["blocks"] == []


def test_open_tab_is_kept_if_the_new_selection_has_the_tab(cast):
    assert looked(cast, "why", past=cast.at(2))["tab"] == "why"
    assert looked(cast, "about", past=cast.at(2))["tab"] == "output"
    assert looked(cast, "answer", past=cast.at(2))["tab"] == "output"
    assert looked(cast, "output")["tab"] == "answer"
    assert looked(cast, "state")["tab"] == "state"
    assert looked(cast, only="why")["tabs"] == ["why"]


def test_inspector_shows_the_waiting_socket_by_default(cast):
    view = looked(cast)
    assert view["tabs"] == OF_SOCKET
    title = view["title"]
    assert (title["kind"], title["name"], title["id"], title["present"]) == (
        "agent",
        "Check",
        "Socket-3",
        True,
    )
    assert title["chips"][-1] == "visit 1 · Part 1"
    assert (title["pinned"], title["answered"]) == (False, False)
    assert view["content"]["is"] == "answer"
    prompt = looked(cast, "prompt")["content"]
    assert prompt["words"].startswith("Prompt. Changes apply to this turn only.")
    assert prompt["edit"]
    assert not looked(cast, "prompt", busy=True)["content"]["edit"]
    state = looked(cast, "state")["content"]
    assert (state["edit"], state["steps"], state["at"]) == (True, 3, 3)
    assert not looked(cast, "state", busy=True)["content"]["edit"]
    assert looked(cast, selected=("socket", "Socket-3")) == view


def test_socket_that_is_not_current_shows_its_steps_and_the_current_socket(cast):
    view = looked(cast, selected=("socket", "Socket-2"))
    assert view["tabs"] == OF_SOCKET
    assert (view["title"]["chips"][-1], view["title"]["present"]) == ("1 visit", False)
    assert view["title"]["answered"]
    action = view["content"]["blocks"][0]
    assert (action["text"], action["words"]) == ("The cast is at Check.", "Show it")
    for socket in ("Socket-2", "Socket-4"):
        asked = looked(cast, "prompt", ("socket", socket))["content"]
        assert asked["words"] == "Preview of the prompt if the socket were entered now."
        assert not asked["edit"]
    asked = looked(cast, "prompt", past=cast.at(2))["content"]
    assert (asked["words"].startswith("The prompt of step 2."), asked["edit"]) == (True, False)
    assert looked(cast, selected=("socket", "Socket-1"))["title"]["kind"] == "generator"
    assert looked(cast, selected=("socket", "Socket-4"))["title"]["chips"][-1:] != ["1 visit"]


def test_inspector_of_an_edge_loop_or_item_has_only_the_about_tab(cast):
    way = looked(cast, "state", ("edge", "edge:1:Socket-3"))
    assert (way["tabs"], way["tab"]) == (["about"], "about")
    assert (way["title"]["name"], way["title"]["chips"]) == ("Check → Build", ["not_satisfied · 2nd edge"])
    out = looked(cast, "", ("exit", "loop-exit:L:e"))["title"]
    assert (out["name"], out["chips"]) == ("Check → Tell", ["exit · satisfied"])
    assert looked(cast, "", ("loop", "L"))["title"]["name"] == "loop L"
    item = looked(cast, "", ("item", "1"))
    assert item["title"] == {"kind": "item", "name": "Part 1", "chips": ["work item"], "id": None}
    assert "Part 1" in str(item["content"]["blocks"])
    assert "Build" in str(item["content"]["blocks"])
    for number in ("0", "2"):
        assert "Part" not in str(looked(cast, "", ("item", number))["content"]["blocks"])


def test_breakpoint_controls_are_offered_for_each_kind_of_element(cast):
    def kinds(*element):
        return [possible_breakpoint.kind for possible_breakpoint in possible_breakpoints(cast.now, Element(*element))]

    assert kinds("socket", "Socket-2") == [
        *("before", "after", "refused", "not_satisfied", "empty_answer", "same_again")
    ]
    assert len(kinds("edge", "edge:1:Socket-3")) == 2
    assert len(kinds("exit", "loop-exit:L:e")) == 1
    assert kinds("loop", "L") == kinds("item", "1") == []
    assert len(looked(cast, "", ("edge", "edge:1:Socket-3"))["title"]["stops"]) == 1, "the plainest"


def test_utility_has_no_prompt_and_pins_are_shown(tmp_path):
    config = h.config(
        {"Socket-1": h.at("U", ("always", "Socket-2")), "Socket-2": h.at("M")},
        {"U": h.python("print('{}')"), "M": h.agent()},
    )
    cast = h.start(tmp_path, config, lambda: "done")
    no_prompt = "A utility has no prompt: its process receives the state and its parameters."
    assert no_prompt in str(looked(cast, "prompt")["content"]["blocks"])
    ready = looked(cast)["title"]
    assert (ready["kind"], ready["chips"][:2]) == ("utility", ["Socket-1", "a process"])
    cast.step()
    assert "A utility has no prompt" in str(looked(cast, "prompt", past=cast.at(1))["content"]["blocks"])
    entered = looked(cast, "prompt")["content"]
    assert "If you change a layer" in entered["words"]
    assert entered["edit"]
    cast.pins.add("Socket-2", "pinned")
    assert looked(cast)["title"]["pinned"]
    cast.step()
    assert (looked(cast)["title"]["kind"], looked(cast)["title"]["name"]) == ("cast", "the end")
    cast.run()
    over = looked(cast)
    assert over["title"]["name"] == "the cast"
    assert over["tabs"] == ["answer", "why", "state"]
    cast.close()
    opened = open_cast(cast.run_dir)
    assert not looked(opened, "state")["content"]["edit"]
    assert opened.now.status == "complete"
