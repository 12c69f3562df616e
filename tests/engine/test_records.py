"""All that casts of many loadouts do and say, through every command: events, prompts, decisions, remarks, refusals."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import protocol_helpers as ph
from builders import Folded, agent, asks, at, config, edge, exit_route, items, loop, retry_loop, say
from materia_nb.agents.interface import ToolCall
from materia_nb.engine import decide
from materia_nb.engine.bounded import bounded, middle, state_json
from materia_nb.engine.entering import preview, turn_facts
from materia_nb.engine.events import EVENTS, from_json, to_json
from materia_nb.engine.item_edits import ListEdit
from materia_nb.engine.labels import WHOLE_CAST, Label
from materia_nb.engine.remarks import remarks_of
from materia_nb.engine.routing import edges_used, limits_of, nearly_used_up, used_up
from materia_nb.engine.session import every_step, pending
from materia_nb.engine.state import Failure, Pin, Usage
from materia_nb.errors import MateriaError
from materia_nb.loadout import LoadoutError
from materia_nb.loadout.graph import Budget
from records import ROOT, as_line, check_record, written
from stream_helpers import plan_of, streams_config

PROMPTS = (
    "Do it.",
    "Do it for {{request}}.",
    "What was said:\n{{lastOutput}}\nGo on.",
    "Judge {{lastJson.context}}.",
    "{{item.title}}\n{{item.context}}",
    "{{itemJson}} {{cursor.workItemIndex}}",
    "{{stateJson}}",
    "Look at {{state.a}} and {{state.workItems}}.",
    "{{state.context}}",
)


def protocols():
    """A planner, a loop and a judge, who all speak one of the two larger protocols."""
    for name in ph.OTHERS:
        made = retry_loop(2, handoff=None)
        for socket in made["loadouts"]["T"]["sockets"].values():
            socket["handoff"] = name
        del made["handoff"]
        yield made


def nested(most=2):
    """A list of lists: rows, and in each the parts of the row, with a way back for both."""
    sockets = {
        "Plan": at("UG", edge("Row"), assign={"rows": "$.rows"}),
        "Row": at("P", edge("Part"), parse="text"),
        "Part": asks(
            edge("Part", "satisfied"), edge("Part", "not_satisfied", most), foreach={"items": "state.row.parts", "as": "part"},
            advance={"when": "satisfied"},
        ),
        "Check": asks(edge("Row", "satisfied"), edge("Row", "not_satisfied", most)),
        "Tell": at("P"),
    }  # fmt: skip
    exits = [exit_route("Part", "always", "Check"), exit_route("Check", "satisfied", "Tell")]
    iterator = {"items": "state.rows", "as": "row"}
    whole = {"sockets": ["Row", "Part", "Check"], "iterator": iterator, "exits": exits}
    sockets["Check"]["advance"] = {"when": "satisfied"}
    return config(sockets, {"Rows": whole})


def reports():
    """Utilities that report failures, events and scopes, and sockets that assign this and that."""
    sockets = {
        "Plan": asks(edge("Job"), materia="G", assign={"workItems": "$.workItems", "all": "$"}),
        "Job": at("U", edge("Text", "satisfied"), edge("Job", "not_satisfied", 2), edge("Tell", "failed")),
        "Text": asks(edge("Job"), assign={"said": "$.text", "from": "lastJson.context", "x.y": "state.a", "t": "item.title"}),
        "Tell": at("T", edge("Ask")),
        "Ask": at("P", edge("Plan", "not_satisfied"), parse="json", handoff="envelope"),
    }  # fmt: skip
    exits = [exit_route("Text", "satisfied", "Tell"), exit_route("Text", "not_satisfied", "Job")]
    return config(
        sockets, {"L": loop("Job", "Text", exits=exits)}, limits={"maxEdgeTraversals": 3, "repairAttempts": 2}
    )


def turns():
    """Agents that work first and hand over later, drafts, and what comes after a failure."""
    sockets = {
        "Plan": asks(edge("Build"), materia="G", finalize=True),
        "Build": at("M", edge("Eval"), edge("Tell", "failed"), parse="json"),
        "Eval": asks(edge("Build", "not_satisfied", 2), edge("Build", "satisfied"), edge("Tell", "failed")),
        "Tell": at("M", castContext="request"),
    }
    exits = [exit_route("Eval", "satisfied", "Tell"), exit_route("Eval", "always", "end")]
    return config(sockets, {"L": loop("Build", "Eval", exits=exits)}, budget={"maxTokens": 60})


def documents():
    """The loadouts: one in four of those of the vectors, and some of our own, with prompts that tell this and that."""
    rng = random.Random(11)
    vectors = (
        json.loads(line)["config"] for line in (ROOT / "tests/vectors/cast.jsonl").open(encoding="utf-8")
    )
    own = [
        *protocols(),
        nested(),
        turns(),
        reports(),
        retry_loop(2),
        retry_loop(),
        streams_config(),
        streams_config(1),
    ]
    for document in [*own, *own, *own, *list(vectors)[::4]]:
        for one in document["materia"].values():
            if "prompt" in one and rng.random() < 0.5:
                one["prompt"] = rng.choice(PROMPTS)
        yield document


ODD = ("", "no", "{", "[]", '{"satisfied": 1}', '{"odd": 1}', "said in prose")
STATUSES = ("COMPLETE", "COMPLETE", "IN_PROGRESS", "NEEDS_INPUT", "APPROVAL_REQUEST", "BLOCKED")


def reply(rng, here):
    """What a socket might say."""
    if rng.random() < 0.08:
        return rng.choice(ODD)
    if here.socket.handoff in ph.OTHERS and rng.random() < 0.9:
        return formal(rng.choice(STATUSES), here.socket.handoff)
    if here.wanted.parse == "text":
        return rng.choice(["told", "told\nin\ntwo lines", "w" * 700])
    value = verdict(rng, here)
    if here.socket.is_utility:
        job = {"ok": rng.random() < 0.6, "error": rng.choice(["no room", ""]), "message": "see the log"}
        value["state"] = {"a": rng.choice([1, [], {"b": 2}]), "job": job}
        value["rows"] = [{"parts": [1, 2]}, {"parts": []}, {"parts": [3]}]
    if rng.random() < 0.15:
        value["event"] = [{"type": "seen", "severity": "info", "message": "a\nb", "payload": [1]}]
    if rng.random() < 0.1:
        value["scopeTransition"] = rng.choice(SCOPES)
    if "said" in dict(here.socket.assign):
        value["text"] = "as prose"
    return json.dumps(value)


SCOPES = ({"kind": "base"}, {"kind": "replace", "scope": {"id": "side", "cwd": "x"}})


def formal(status, protocol):
    """What an agent says that speaks one of the two larger protocols."""
    if protocol != "agent-contract":
        return json.dumps(ph.envelope(status="VERIFIED" if status == "COMPLETE" else status))
    more = {"approval_request": ph.ASK} if status == "APPROVAL_REQUEST" else {}
    more |= {"agent_status__plan_status": status, "agent_status__next_action": "go on"}
    return ph.block(ph.contract(**more))


def verdict(rng, here):
    """Whether it is satisfied and why, with items where they are wanted."""
    value = {}
    if here.wanted.why_satisfied or rng.random() < 0.5:
        value["satisfied"] = rng.random() < 0.6
    if rng.random() < 0.5:
        value["context"] = rng.choice(["why", "x y " * 240, " ", "as said\n\nbefore"])
    if here.wanted.work_items or rng.random() < 0.05:
        count = rng.choice([0, 1, 2, 3])
        value["workItems"] = [{"title": f"t{n}", "context": f"do {n}"} for n in range(count)]
        if here.socket.materia.parallel and count:
            value |= json.loads(
                plan_of({"ui": range(0, count, 2), **({"api": range(1, count, 2)} if count > 1 else {})})
            )
    return value


LANES = ("ui", "api", "nowhere")
CALLS = (
    ToolCall(id="1", tool="bash", args={"command": "make"}),
    ToolCall(id="2", tool="write", args={"path": "a"}),
)


def rows_edited(rng, data):
    """The rows in another order, some gone and perhaps a new one, with what became of each."""
    rows = data.get("rows") if isinstance(data.get("rows"), list | tuple) else []
    origins = [*rng.sample(range(len(rows)), rng.randint(0, len(rows))), *rng.choice([[], [None]])]
    made = [{"parts": [7]} if one is None else json.loads(json.dumps(rows[one])) for one in origins]
    again = tuple(one for one in origins if one is not None and rng.random() < 0.2)
    return {**data, "rows": made}, {"rows": ListEdit(tuple(origins), again, rng.random() < 0.4)}


def commands(rng, cast):
    """Names of commands, each with what it is given here; those that go on are the likeliest."""
    state, session = cast.state, cast.session
    data = dict(state.data)
    listed = data.get("workItems") if isinstance(data.get("workItems"), list) else []
    listed = json.loads(json.dumps(listed))
    mixed = (
        rng.sample(listed, rng.randint(0, len(listed)))
        + [{"title": "new", "context": "c"}][: rng.randint(0, 1)]
    )
    label = Label(
        rng.choice(["", "best"]),
        rng.choice([(), ("a", "b")]),
        rng.choice(["", "see\nthere"]),
        rng.choice(["", "good"]),
        "Ana",
    )
    return {
        "fail": (Failure(rng.choice(["agent_error", "timeout", "budget"]), "it broke", state.at and state.at.socket), 5),
        "abort": (rng.choice(["", "enough"]),),
        "recast": (), "revive": (), "resend": (), "by_hand": (), "finalize": (), "ask_anew": (), "undo": (),
        "skip": (rng.choice(["", "later"]),),
        "skip_item": (rng.choice(["", "later"]),),
        "refine": ("shorter",),
        "called": (CALLS[0],),
        "noted": ("trying again",),
        "spent": (Usage(3, 1, 0.2),),
        "ask": (list(CALLS), 3),
        "decide_calls": (rng.choice(["once", "always", "denied"]), rng.choice(["", "no"]), None),
        "allow": (frozenset({"bash"}),),
        "answer_hold": (rng.choice(["the second one", " "]),),
        "decide_hold": (rng.choice([True, False]), rng.choice([None, "Tell", "end", "Nowhere"])),
        "edit_items": (mixed, rng.choice([None, [listed.index(one) if one in listed else None for one in mixed]])),
        "edit_items again": (listed, None, rng.sample(range(len(listed)), min(1, len(listed))), rng.random() < 0.5),
        "edit_lists": ({**data, "rows": rng.sample([{"parts": [1, 2]}, {"parts": [3]}, {"parts": []}], 2)}, {}),
        "edit_rows": rows_edited(rng, data),
        "redefine": ("P", {"type": "agent", "tools": "none", "prompt": "Other {{item.title}}"}, None),
        "remember": (1, {"text": "keep it"}),
        "in lane": (rng.choice(LANES), rng.choice([decide.recast, decide.resend, decide.by_hand, decide.finalize])),
        "fail in lane": (rng.choice(LANES), decide.fail, Failure("agent_error", "it broke", "Socket-3"), 2),
        "by_hand_in_lane": (rng.choice(LANES),),
        "edit_state": ({**data, rng.choice(["a", "b", "context"]): rng.choice([[1], "x", {"c": None}])}, {}),
        "edit_prompt": (rng.choice(["task", "place", "request", "nothing"]), "other words"),
        "recommit": (rng.choice(["corrected", say(satisfied=False), items("z"), "{"]),),
        "back_to": (rng.randint(0, max(0, len(session.steps) - 1)),),
        "set_budget": (rng.choice([Budget(max_tokens=90), Budget(), Budget(max_turns=3), Budget(max_tokens=-1)]),),
        "pin": (rng.choice(["Tell", "Build"]), Pin("text", "pinned")),
        "unpin": ("Tell",),
        "label": (rng.choice([WHOLE_CAST, (0, 1)]), label),
        "unlabel": ("Ben",),
    }  # fmt: skip


LIKELY = (
    "edit_items",
    "edit_items",
    "edit_items again",
    "edit_rows",
    "edit_rows",
    "edit_state",
    "revive",
    "revive",
    "undo",
)


def edit_again(rules, session, items, origins, again, abandon, ts):
    return decide.edit_items(rules, session, items, origins, ts, again=again, abandon=abandon)


COMMANDS = {
    "edit_items again": edit_again,
    "edit_lists": decide.edit_state,
    "edit_rows": decide.edit_state,
    "in lane": decide.in_lane,
    "fail in lane": decide.in_lane,
}


def go_on(rng, cast):
    """Do what is due, in a lane too."""
    due = rng.choice(pending(cast.rules, cast.session) or [None])
    if due is None:
        back = (decide.back_to, rng.randint(0, max(0, len(cast.session.steps) - 1)))
        return rng.choice(
            [back, back, (decide.recast,), (decide.revive,), (decide.resend,), (decide.by_hand,)]
        )
    where = (due.lane,) if due.lane else ()
    if due.what == "enter":
        return (decide.in_lane, due.lane, decide.enter) if where else (decide.enter,)
    if due.what == "person" and cast.state.at is not None and cast.state.at.mode == "draft":
        return (decide.finalize,)
    socket = cast.rules.sockets[due.visit.socket]
    given = decide.Answer(
        reply(rng, socket), rng.choice([None, Usage(3, 2, 0.1)]), worked=rng.choice([None, 7])
    )
    return (decide.in_lane, due.lane, decide.answer, given) if where else (decide.answer, given)


_LEFT_OUT = {"ts", "text", "output", "materia", "materiaLabel", "itemLabelShort", "usage"}
"""What stands in most events and says nothing of what happened."""


def shown(event):
    data = {key: value for key, value in to_json(event).items() if key not in _LEFT_OUT}
    return f"{event.type} {as_line(data)}"


def carried_out(rng, cast, share):
    """Carry out a command; its name, and what it says if it is refused."""
    given = commands(rng, cast)
    name = rng.choice([*given, *LIKELY])
    chosen = (COMMANDS.get(name) or getattr(decide, name), *given[name])
    if rng.random() < share:
        name, chosen = "go on", go_on(rng, cast)
    try:
        cast.do(*chosen)
    except MateriaError as error:
        return name, error
    return name, None


def played(document, seed, count=36):
    """Yield what a cast says on its way."""
    cast = Folded(document)
    rng = random.Random(f"{seed} {as_line(document)}")
    before = None
    for _ in range(count):
        old = len(cast.events)
        name, error = carried_out(rng, cast, 0.75)
        if error is not None:
            yield f"{name}: {error.kind} | {error.where} | {error} | {error.hint}"
            continue
        for event in cast.events[old:]:
            yield shown(event)
            again = from_json(event.type, json.loads(json.dumps(to_json(event))), event.ts)
            assert again is None or shown(again) == shown(event)
        prompt = cast.session.prompt
        if prompt is not None and prompt is not before:
            for part in prompt.parts:
                yield f"{part.name}: {part.note} {written(part.tells)}"
                yield from (f"{part.name}: {line}" for line in part.text.splitlines())
        before = prompt
        yield f"due {[written(one._replace(visit=None)) for one in pending(cast.rules, cast.session)]}"
        if (at := cast.state.at) is not None:
            facts = turn_facts(cast.rules, cast.rules.sockets[at.socket], cast.state, at)
            yield written(replace(facts, names={}, sockets=None, given={}))
    for socket in cast.rules.sockets:
        found, why = preview(cast.rules, cast.state, socket)
        yield (
            f"{socket}: {why}"
            if found is None
            else f"{socket}: {[part.name for part in found.parts]} {len(found.text)}"
        )
    session = cast.session
    yield written([one.text[:80] for one in session.said])
    yield written(
        [session.labels, session.labels_before, session.kept, session.pins, session.allowed, session.forks]
    )
    yield written([session.wish, session.spent, session.noted_before, session.mode, session.ending is None])
    yield written(
        [[len(one) for one in session.abandoned], [one.before == cast.state for one in session.edits]]
    )
    yield written([len(session.asking), len(session.calls), len(session.spoken), len(session.streams_left)])
    yield from (f"{one.what} {one.used} {one.most}" for one in limits_of(cast.rules, cast.state))
    yield written([edges_used(cast.rules, cast.state), used_up(cast.state), nearly_used_up(cast.state)])
    yield from (written(one) for one in remarks_of(cast.rules, cast.session))
    for step, there in every_step(cast.session):
        yield f"{there} {written(step.decision and step.decision._replace(at=None, said=None))}"
        yield written(step.decision and step.decision.said)
        yield f"{step} {step.title} {step.lane} {len(step.prompt.text) if step.prompt else 0} {len(step.spent)} {step.shown == step.output} {written(step.events)}"
        yield as_line(
            [
                step.at.socket,
                step.at.visit,
                len(step.turns),
                step.tries,
                step.left,
                step.plain,
                list(step.missing),
            ]
        )
    yield written(
        [dict(cast.session.turns), cast.state.status, cast.state.failure, cast.state.next, cast.state.cursors]
    )
    yield as_line(json.loads(json.dumps(cast.state.data, default=dict)))


def test_casts():
    def lines():
        for seed, document in enumerate(documents()):
            try:
                yield from played(document, seed)
            except LoadoutError:
                continue

    check_record("casts", lines())


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
    """Yield what agents are told of a cast with long texts, part by part: its length, how it begins and ends, what was cut."""
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
            yield f"{part.name}: {len(part.text)} {part.note} | {part.text[:150]} … {part.text[-60:]} {written(part.tells)}"
        cast.do(decide.answer, decide.Answer(answer if isinstance(answer, str) else json.dumps(answer)))


def test_prompts_of_a_cast_with_long_texts():
    def lines():
        for context in CONTEXTS:
            for form, most in (("md", 60_000), ("plain", 9_000), ("md", 4_000)):
                yield from told(context, form, most, 14)
            yield from told(context, "md", 60_000, 2)

    check_record("prompts", lines())


NAMED = (
    "request", "cursor.workItemIndex", "cursor", "itemJson", "item", "item.title", "lastOutput", "lastJson", "lastJson.context",
    "lastJson.a.b", "state", "stateJson", "state.workItems", "state.workItems.0", "state.context", "workItem.title",
    "state.workItem.context", "currentWorkItem", "plan.name", " ", "",
)  # fmt: skip


def test_what_a_prompt_of_ones_own_tells_is_not_told_again():
    def lines():
        rng = random.Random(13)
        pairs = [rng.sample(NAMED, 2) for _ in range(30)]
        for names in [*((one,) for one in NAMED), *pairs]:
            own = " and ".join(f"{{{{{name}}}}}" for name in names)
            document = retry_loop(2, materia={"P": agent(own)})
            cast = Folded(document).answers(
                items("a", "b", context="planned"), say(context="built", a={"b": 1})
            )
            cast.do(decide.edit_state, {**cast.state.data, "plan": {"name": "x"}}, {}).do(decide.enter)
            yield f"{own}: " + " | ".join(
                f"{part.name} {len(part.text)} {part.note} {written(part.tells)}"
                for part in cast.session.prompt.parts
            )

    check_record("own-prompts", lines())


def test_states_within_so_many_characters():
    states = (
        {"a": 1, "b": ["x", None, True], "c": {"d": {"e": "f" * 90}}, "g": {}},
        {"text": "w" * 2_500, "more": ["v" * 150] * 4},
        {"rows": [{"n": n, "why": ["é\n"] * n} for n in range(9)]},
        {"last": 5, "deep": [[[[[1, 2], 3], 4], "x" * 200], 6]},
    )

    def lines():
        for data in states:
            for most in (*range(20, 700, 17), 900, 2_000, 2_200, 12_000):
                text = state_json(data, most)
                assert len(text) <= most
                yield text
        for most in (*range(0, 330, 30), 7_999, 8_000, 8_001):
            yield f"{middle(LONG, most)!r:.400}"
            yield f"{bounded(LONG + LONG, most)!r:.400}"

    check_record("bounded", lines())


def drawn(rng):
    """A plan, a ring of sockets for each item with exits anywhere, and sockets behind it, one of them with a list of its own."""

    def edges(targets):
        whens = rng.sample(["satisfied", "not_satisfied", "failed"], rng.randint(0, 3)) + rng.choice(
            [["always"], []]
        )
        return [edge(rng.choice(targets), when, rng.choice([None, None, 1, 2])) for when in whens]

    members = [f"In{n}" for n in range(rng.randint(1, 3))]
    outside = [f"Out{n}" for n in range(rng.randint(1, 3))]
    everywhere = [*members, *outside, "Plan", "end"]
    sockets = {"Plan": asks(edge(members[0]), materia=rng.choice(["G", "G", "UG"]))}
    for name, following in zip(members, [*members[1:], members[0]], strict=True):
        extra = [one for one in edges([*members, *outside]) if one["when"] != "always"]
        sockets[name] = asks(*extra, edge(following, most=rng.choice([None, 2])), materia=rng.choice("PPUM"))
    for name in outside:
        sockets[name] = at(rng.choice("PPUTM"), *edges(everywhere), parse=rng.choice(["json", "text"]))
        if rng.random() < 0.4:
            sockets[name]["assign"] = {
                rng.choice(["a", "a.b", "rows"]): rng.choice(["state", "item", "$", "lastOutput"])
            }
    if rng.random() < 0.5:
        sockets[outside[0]]["foreach"] = {
            "items": "state.rows",
            "as": rng.choice(["item", "a.row", "workItem"]),
        }
        sockets[outside[0]]["advance"] = {"when": rng.choice(["always", "satisfied"])}
    ways = {(rng.choice(members), rng.choice(["satisfied", "not_satisfied", "always"])) for _ in range(3)}
    exits = [exit_route(source, when, rng.choice(everywhere)) for source, when in sorted(ways)]
    limits = {
        "maxEdgeTraversals": rng.choice([2, 4]),
        "maxNoAdvanceCycles": rng.randint(1, 2),
        "repairAttempts": rng.randint(0, 2),
    }
    budget = {"maxTokens": rng.randint(20, 90)} if rng.random() < 0.2 else {}
    return config(sockets, {"L": loop(*members, exits=exits)}, limits=limits, budget=budget)


def where(state):
    """Where a cast or a lane is."""
    at = state.at
    visit = "" if at is None else f"{at.socket}.{at.visit}{'' if at.item is None else f' {at.item.key}'}"
    return state.status if state.status == "complete" else f"{state.status} {visit}>{state.next or ''}"


def way(document, seed, count=40):
    """Yield where each command leads, with the length of what is asked there, then what the cast is at the end."""
    cast = Folded(document)
    rng = random.Random(f"{seed} {as_line(document)}")
    prompt, there = None, ""
    for _ in range(count):
        name, error = carried_out(rng, cast, 0.6)
        if error is not None:
            yield f"{name} ({error.kind})"
            continue
        before, there = (
            there,
            where(cast.state)
            + "".join(
                f" {lane.name}[{where(lane.session.state)}]"
                for lanes in cast.session.streams
                for lane in lanes.lanes.values()
            ),
        )
        asked = cast.session.prompt is not prompt and cast.session.prompt is not None
        prompt = cast.session.prompt
        yield f"{name}: {there if there != before else '='} {len(prompt.text) if asked else ''}".rstrip()
    yield written([cast.state.cursors, cast.state.usage, [len(turn.text) for turn in cast.session.said]])
    yield as_line(json.loads(json.dumps(cast.state.data, default=dict)))
    yield written(
        [(one.code, one.socket, one.step, one.item) for one in remarks_of(cast.rules, cast.session)]
    )


def test_ways_of_many_casts():
    def lines():
        own = [*protocols(), nested(), nested(1), turns(), reports(), retry_loop(1), streams_config()]
        rng = random.Random(12)
        for seed, document in enumerate([*(drawn(rng) for _ in range(90)), *10 * own]):
            try:
                yield f"{seed}: {' | '.join(way(document, seed))}"
            except LoadoutError:
                continue

    check_record("ways", lines())


SOME: dict[str, object] = {
    "str": "x",
    "int": 2,
    "float": 1.5,
    "bool": True,
    "JSON": [1],
    "Mapping[str, JSON]": {"a": 1},
    "tuple[str, ...]": ["a", "b"],
    "tuple[int | None, ...]": [0, None],
    "tuple[Mapping[str, JSON], ...]": [{"a": 1}],
    "ToolCall": CALLS[0].as_json(),
    "tuple[ToolCall, ...]": [call.as_json() for call in CALLS],
    "Usage": {"input": 1, "output": None, "cost": 0.5, "cached": 2},
    "Decided": "once",
    "LaneEnd": "accepted",
}
"""A value of each kind of field, as the journal has it."""
NONE_OF_THEM = (
    None,
    "",
    "y",
    0,
    1.5,
    float("inf"),
    False,
    [],
    [True],
    [[]],
    {},
    {"input": True, "cost": "x"},
    [{"id": 1}],
)


def camel(name):
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def test_events_as_the_journal_has_them():
    def lines():
        for kind, event in EVENTS.items():
            forms = {
                camel(name): form.removesuffix(" | None")
                for name, form in event.forms.items()
                if name not in _OWN
            }
            whole = {name: SOME[form] for name, form in forms.items()}
            yield f"{kind} {as_line(to_json(from_json(kind, whole, 3)))}"
            for name, form in forms.items():
                if form in seen and name in whole and (kind, name) != seen[form]:
                    continue  # each form is read in the same way in all events
                seen[form] = (kind, name)
                for value in NONE_OF_THEM:
                    for lenient in (False, True):
                        got = tried(kind, {**whole, name: value}, lenient)
                        yield f"{form} {value!r} {lenient}: {got}"

    seen: dict[str, tuple[str, str]] = {}
    check_record("events", lines())


_OWN = {"ts", "about", "transition"}


def tried(kind, data, lenient):
    try:
        return as_line(to_json(from_json(kind, data, lenient=lenient)))
    except MateriaError as error:
        return f"{error.kind} | {error} | {error.hint}"
