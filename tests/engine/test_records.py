"""Store the shortened prompts and states of casts with long texts."""

from __future__ import annotations

import json

from builders import Folded, retry_loop
from materia_nb.engine import decide
from materia_nb.engine.conversation import shorten_middle, shorten_with_note, state_json
from records import check_record, format_value

CONTEXTS = (
    "full",
    "request",
    "none",
    {"state": ["a", "plan.name"], "items": "titles"},
    {"items": "none", "handoffs": 300},
    {"state": False, "previous": False},
    {"handoffs": False, "request": False},
    {"previous": False, "handoffs": 40},
)
LONG = "\n".join(f"line {n} of what was found" for n in range(300))


def told(context, form, most, count):
    """Yield a description of each prompt part in a cast with long texts: its length, its ends, and what was cut."""
    document = retry_loop(9, castContext=context, limits={"promptCharacters": most, "maxEdgeTraversals": 90})
    for socket in document["loadouts"]["T"]["sockets"].values():
        socket["promptForm"] = form
    cast = Folded(document, "do it well")
    titles = [{"title": f"item {n}", "context": f"{LONG[: 40 * n]} of {n}"} for n in range(count)]
    plan = {"workItems": titles, "context": f"planned {LONG[:900]}"}
    given = [plan, LONG, {"satisfied": False, "context": LONG}, LONG[:3000], {"satisfied": False, "context": "again"}, "made",
             {"satisfied": True, "context": "good"}, "made", {"satisfied": False, "context": LONG[:700]}, "made",
             {"satisfied": True}, "once more"]  # fmt: skip
    cast.do(decide.enter).do(decide.answer, decide.Answer(json.dumps(plan)))
    cast.do(
        decide.edit_state,
        {**cast.state.data, "a": [1, {"b": LONG}], "plan": {"name": "x"}, "odd": ["y" * 90] * 30},
        {},
    )
    for answer in given[1:]:
        if cast.state.status == "ready":
            cast.do(decide.enter)
        prompt = cast.session.prompt
        for part in prompt.parts:
            yield f"{part.name}: {len(part.text)} {part.note} | {part.text[:150]} … {part.text[-60:]} {format_value(part.values)}"
        cast.do(decide.answer, decide.Answer(answer if isinstance(answer, str) else json.dumps(answer)))


def test_prompts_with_long_text_match_the_snapshot():
    def lines():
        for context in CONTEXTS:
            for form, most in (("md", 60_000), ("plain", 9_000), ("md", 4_000)):
                yield from told(context, form, most, 14)
            yield from told(context, "md", 60_000, 2)

    check_record("prompts", lines())


def test_displayed_states_and_messages_match_the_snapshot_and_their_limits():
    states = (
        {"a": 1, "b": ["x", None, True], "c": {"d": {"e": "f" * 90}}, "g": {}},
        {"text": "w" * 2_500, "more": ["v" * 150] * 4},
        {"rows": [{"n": n, "why": ["é\n"] * n} for n in range(9)]},
        {"last": 5, "deep": [[[[[1, 2], 3], 4], "x" * 200], 6]},
    )

    for data in states:
        for most in (*range(20, 700, 17), 900, 2_000, 2_200, 12_000):
            text = state_json(data, most)
            assert len(text) <= most
    assert json.loads(state_json(states[0], 12_000)) == states[0]
    for most in (*range(120, 330, 30), 7_999, 8_000, 8_001):
        for text in (shorten_middle(LONG, most), shorten_with_note(LONG, most)[0]):
            assert len(text) <= most
            assert text == LONG or "characters omitted" in text
            assert (text[:10], text[-10:]) == (LONG[:10], LONG[-10:])
    assert shorten_with_note(LONG, 119) == ("", "no room")
