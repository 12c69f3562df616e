"""Test the prompt sizes of bundled loadouts during complete casts (R50)."""

from __future__ import annotations

import json

from materia_nb import Workbench


def told(tmp_path, name, count, context=450):
    """Return the prompts of a cast with ``count`` items, by socket."""
    workbench, prompts = Workbench(tmp_path / f"{name}-{count}"), []

    def answer(turn):
        prompts.append((turn.socket_id, turn.prompt))
        wants = turn.required_fields or {}
        if not wants:
            return f"{turn.socket_id} wrote something for {turn.item_key}: " + "x" * 80
        value = {"context": f"HANDOFF {turn.socket_id} {turn.item_key}. " + "It was looked at and is there. " * 5}
        if "workItems" in wants:
            value["workItems"] = [
                {
                    "title": f"Item {n} of the plan",
                    "context": (f"Do number {n}. " + f"detail {n} word " * 60)[:context],
                }
                for n in range(count)
            ]
        if "satisfied" in wants:
            value["satisfied"] = True
        return json.dumps(value)

    workbench.use(name)
    cast = workbench.cast("Make a short guide to breakfast", agents={"*": answer})
    assert cast.run() == "complete"
    return prompts


def test_prompts_of_full_auto_stay_within_their_size_limits_for_ten_and_forty_items(tmp_path):
    ten = sum(len(prompt) for _, prompt in told(tmp_path, "Full-Auto", 10))
    forty = sum(len(prompt) for _, prompt in told(tmp_path, "Full-Auto", 40))
    assert ten < 112_000
    assert forty <= 5 * ten


def test_last_prompt_for_a_list_of_twelve_items_contains_the_twelfth_item(tmp_path):
    socket, last = told(tmp_path, "Plan-Build-Eval", 12)[-1]
    assert socket == "Socket-5"
    assert "HANDOFF Socket-4 WI-12." in last
