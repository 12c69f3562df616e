"""Store all views of casts in every state and of loadouts; see ``shown_texts``."""

from __future__ import annotations

import json
import re
import shutil
from html import unescape
from pathlib import Path

import pytest

import cast_helpers as h
import shown_texts
from builders import asks, at, config, edge, exit_route, retry_loop
from materia_nb import Workbench
from materia_nb.agents.interface import AgentError, NeedsApproval, Reply, ToolCall, Usage
from materia_nb.cast import Cast, open_cast
from materia_nb.cast.formatting import record_view
from materia_nb.cast.runner_factory import start_runner
from materia_nb.cast.views.loadout_views import (
    ExploreView,
    SimulationView,
    agents_view,
    fields_view,
    materia_view,
    report_view,
)
from materia_nb.cast.views.status import (
    cast_view,
    overlay_of,
    status_lines,
    status_view,
    steps_view,
)
from materia_nb.cast.views.step_views import HandoffView, cast_page_html, lanes_blocks, prompt_view, step_view
from materia_nb.cast.views.tables import (
    SearchResultsView,
    allowed_view,
    breakpoints_view,
    budget_view,
    items_view,
    pins_view,
    quests_view,
)
from materia_nb.errors import MateriaError
from materia_nb.insight.odds import simulate_casts
from materia_nb.loadout import build_graph
from materia_nb.store.design_autosave import Quest
from protocol_helpers import envelope
from protocol_helpers import start as start_protocol
from stream_helpers import stream_agents, streams_config

RECORDED = Path(__file__).parents[2] / "data" / "recorded-casts"


@pytest.fixture
def clock(monkeypatch):
    """Replace the clock by one that agents advance, so that working times are reproducible."""
    now = [1_700_000_000_000]
    monkeypatch.setattr("materia_nb.cast.work.time.time_ns", lambda: now[0] * 1_000_000)

    def passes(seconds):
        now[0] += round(seconds * 1000)

    return passes


def page_words(cast):
    """Return the words on the page of a cast, one per line."""
    without = re.sub("<s(vg|tyle).*?</s(vg|tyle)>", "", cast_page_html(cast), flags=re.DOTALL)
    return "\n".join(line for line in re.sub("<[^>]*>", "\n", unescape(without)).splitlines() if line.strip())


def fields_of(value):
    """Return the fields of a dataclass, with the elements of sets sorted."""
    found = ((name, getattr(value, name)) for name in value.__dataclass_fields__)
    return [(name, sorted(one) if isinstance(one, frozenset) else one) for name, one in found]


def of_cast(cast):
    """Return all views of a cast in its current state."""
    now = cast.now
    yield "status", status_view(now)
    yield "in a run", status_lines(now, "until", cast.now.breakpoints_hit)
    yield "picture", cast_view(now)
    yield "marks", {name: str(one) for name, one in fields_of(overlay_of(now)) if one}
    yield "step", step_view(now, ["one", "two"])
    yield "steps", steps_view(now)
    yield "items", items_view(now, ["moved"])
    yield "budget", budget_view(now)
    yield "usage", cast.usage()
    yield "usage by materia and item", cast.usage("materia", "item")
    yield "lanes", lanes_blocks(now, 1_700_000_100_000)
    yield "files", cast.files
    yield "breakpoints", breakpoints_view(now.breakpoints, now.graph)
    yield "pins", pins_view(now.pins, {})
    yield "leave", allowed_view(now)
    yield "events", now.all_steps.events()
    yield "suggestions", [str(suggestion) for suggestion in now.suggestions]
    yield "item_statuses", list(now.item_statuses)
    for step in now.all_steps:
        yield f"step {step.title}", record_view(step)
        yield "handoff", HandoffView(now.snapshot_for(step), step)


# -- casts in each state ---------------------------------------------------------------------------


def in_a_loop(tmp_path, clock):
    """Return a cast with one refused visit and one unsatisfied verdict, in which the usage and time of one agent are
    known.
    """
    answers = iter(["no object", h.YES, h.NO, '{"satisfied": true, "event": [{"type": "seen", "message": "m"}]}'])

    def check(turn):
        clock(2.5)
        meta = {"model": "m-1", "attempt": {"number": 1, "of": 3, "agent": "first"}}
        return Reply(next(answers), Usage(1100, 70, 0.25, cached=100, reasoning=20), meta=meta)

    def build(visit, item):
        clock(1)
        return f"built {item['title']}, {visit}"

    agents = {**h.loop_agents(), "Check": check, "Build": build}
    return h.start(tmp_path, h.loop_config(budget={"maxTokens": 9000, "maxCostUsd": 2}), agents)


def test_views_of_a_new_cast_match_the_snapshot(tmp_path, clock):
    shown_texts.matches("not-begun", of_cast(in_a_loop(tmp_path, clock)))


def test_views_of_a_cast_in_a_loop_match_the_snapshot(tmp_path, clock):
    cast = in_a_loop(tmp_path, clock)
    cast.run(steps=3)
    cast.labels.add(name="good one", tag=["rain"], verdict="good", note="a note")
    cast.labels.add(2, verdict="bad", note="of the step")
    cast.edit.set("note", "by hand")
    cast.breakpoints.add("Socket-3")
    cast.breakpoints.add("Socket-2", "len(state.workItems) > 1")
    shown_texts.matches("in-a-loop", of_cast(cast))


def test_views_of_a_complete_cast_match_the_snapshot(tmp_path, clock):
    cast = in_a_loop(tmp_path, clock)
    cast.run()
    page = [("page", page_words(cast.now))]
    then = [
        ("then", status_view(cast.at(4))),
        ("prompt", prompt_view(cast.steps.at(4), cast.steps.at(4).prompt, cast.steps)),
    ]
    shown_texts.matches("at-its-end", [*of_cast(cast), *then, *page])


def test_views_of_a_failed_cast_match_the_snapshot(tmp_path, clock):
    cast = h.start(tmp_path, h.loop_config(), {**h.loop_agents(), "Check": lambda: "no object"})
    cast.run()
    shown_texts.matches("failed", of_cast(cast))


def test_views_of_an_edited_waiting_cast_match_the_snapshot(tmp_path, clock):
    agents = h.loop_agents(3)
    del agents["Check"]
    cast = h.start(tmp_path, h.loop_config(), agents)
    cast.run()
    pairs = cast.edit.items([h.item("New"), *cast.now.work_items[:2]])
    cast.pins.add("Build", "always this")
    cast.approvals.allow("bash")
    cast.edit.budget(max_tokens=0)
    shown_texts.matches("waits", [*of_cast(cast), ("said", pairs)])


def test_views_of_a_draft_match_the_snapshot(tmp_path, clock):
    document = h.one_config(h.agent("Write {{request}}", multiTurn=True))
    cast = h.start(tmp_path, document, h.Until("a first draft", "a second"))
    cast.run()
    cast.refine("shorter")
    shown_texts.matches("draft", of_cast(cast))


def test_views_of_a_tool_approval_match_the_snapshot(tmp_path, clock):
    make = ToolCall(id="2.1", tool="bash", args={"command": "make\nit"}, round=2)
    cast = h.start(
        tmp_path,
        h.chain_config(1),
        type("Asks", (), {"name": "asks", "answer": lambda *_: NeedsApproval((make,))})(),
    )
    cast.run()
    asked = list(of_cast(cast))
    cast.approvals.approve()
    shown_texts.matches("asks-before", [*asked, ("approved", status_view(cast.now))])


@pytest.mark.parametrize("ask, to", [("ESCALATE", "BLOCKED"), ("LOOP", "UNVERIFIED")])
def test_views_of_a_held_cast_match_the_snapshot(tmp_path, clock, ask, to):
    routing = {"recommendation": ask, "reason": f"because {ask}", "can_further_iteration_help": False}
    cast = start_protocol(tmp_path, "envelope", [json.dumps(envelope(status=to, routing=routing))])
    cast.run()
    shown_texts.matches(f"held-{ask.lower()}", of_cast(cast))


def test_views_of_lanes_match_the_snapshot(tmp_path, clock):
    def build(item, lane):
        clock(2)
        if item["title"] == "Part 1":
            raise AgentError("no room")
        return "built"

    agents = stream_agents(Build=build)
    del agents["Check"]
    cast = h.start(tmp_path, streams_config(1), agents)
    cast.run()
    shown_texts.matches("in-lanes", [*of_cast(cast), ("page", page_words(cast.now))])


@pytest.mark.parametrize("name", ["rework-context", "util-exit-nonzero"])
def test_views_of_a_recording_of_the_reference_engine_match_the_snapshot(tmp_path, name):
    cast = open_cast(shutil.copytree(RECORDED / name, tmp_path / "recorded-casts" / name))
    shown_texts.matches(f"recorded-{name}", of_cast(cast))


def test_views_of_file_snapshots_match_the_stored_views(tmp_path, clock):
    project = tmp_path / "project"
    project.mkdir()
    (project / "old.txt").write_text("".join(f"line {n}\n" for n in range(20)))
    (project / "gone.txt").write_text("gone\n")

    def agent(turn):
        if turn.socket_id == "Socket-1":
            (project / "old.txt").rename(project / "new.txt")
            (project / "gone.txt").unlink()
            (project / "bytes").write_bytes(b"\x00\xff")
            for n in range(8):
                (project / f"made-{n}").write_text(f"{n}\n")
        elif turn.socket_id == "Socket-2":
            (project / "new.txt").write_text("".join(f"line {n}\n" for n in range(500)))
        return "x"

    plan = h.plan(project, h.chain_config(3), files="not ignored")
    cast = Cast(start_runner(plan, "ship it", h.table(agent)))
    cast.run()
    shown_texts.matches("files", [("files", cast.files)])


def test_views_of_a_changed_materia_match_the_snapshot(tmp_path, clock):
    bench = Workbench(tmp_path / "project", bundled=False)
    bench.load(h.loop_config())
    cast = bench.cast("x", agents={**h.loop_agents(), "Check": lambda: "no object"})
    cast.run()
    cast.retry()
    shown = [("as it failed", status_view(cast.now))]
    bench.loadouts.define_materia("Check", {"prompt": "Check\nanother\nway", "tools": "readOnly", "model": "m"})
    shown.append(("changed since", status_view(cast.now)))
    bench.loadouts.define_materia("Check", {"tools": "none", "prompt": "Check {{lastOutput}}", "model": "a-model"})
    shown.append(("changed again", status_view(cast.now)))
    cast.edit.redefine("Check")
    shown.append(("taken", status_view(cast.now)))
    bench.close()
    shown_texts.matches("changed-since", shown)


# -- two beside one another ------------------------------------------------------------------------


def test_views_of_comparisons_replays_blame_and_attempts_match_the_snapshot(tmp_path, clock):
    bench = Workbench(tmp_path / "project", bundled=False)
    bench.load(h.loop_config())
    casts = []
    for refuse, long in (([], ""), ([1], " and more"), ([1, 2, 3, 4, 5], "")):
        cast = bench.cast("compare me", agents=h.loop_agents(2, refuse, long))
        cast.run()
        casts.append(cast)
    one, other, failed = casts
    fork = bench.casts.make_current(one.fork(3))
    changed = json.loads(json.dumps(h.loop_config()))
    changed["loadouts"]["T"]["sockets"]["Socket-3"]["edges"].reverse()
    changed["loadouts"]["T"]["sockets"]["Socket-5"] = at("Tell")
    changed["loadouts"]["T"]["sockets"]["Socket-4"]["edges"] = [edge("Socket-5")]
    changed["materia"]["Build"]["prompt"] = "Make {{item.title}}"
    graph = build_graph(changed)
    pairs = {
        "two casts": (one, other),
        "one that failed": (other, failed),
        "a cast and itself": (one, one),
        "a cast and its fork": (one, fork),
        "two steps": (one.steps.at(2), other.steps.at(2)),
        "two visits": (other.steps.at(2), other.steps.at(4)),
        "a step and itself": (one.steps.at(2), one.steps.at(2)),
        "two loadouts": (bench.graph(), graph),
        "a loadout and itself": (bench.graph(), bench.graph()),
    }
    shown = [(title, bench.compare(a, b)) for title, (a, b) in pairs.items()]
    for a, b in (("T", one), (one, one.steps.at(1)), (1, one.steps.at(1).prompt)):
        with pytest.raises(MateriaError) as refused:
            bench.compare(a, b)
        shown.append(("refused", str(refused.value)))
    onward = json.loads(json.dumps(h.loop_config()))
    onward["loadouts"]["T"]["sockets"]["Socket-3"]["edges"][1] = edge("Socket-1", "not_satisfied")
    for title, document in {"as it was": h.loop_config(), "another": changed, "onward": onward}.items():
        shown += [(f"replay: {title}", cast.replay(document)) for cast in (one, other)]
    shown.append(("replays", bench.casts.replay(build_graph(onward), [one, other, "nothing"])))
    for path in ("workItems.0.title", "context", "item", "nothing"):
        shown.append((f"blame {path}", other.blame(path)))
    replies = iter([Reply(h.YES, Usage(10, 1, 0.5)), Reply("no object", Usage(None, None)), Reply(h.NO)])
    trying = type("Trying", (), {"name": "trying", "answer": lambda *_: next(replies)})()
    at_check = bench.cast("try", agents=h.loop_agents(2))
    at_check.run(until="Socket-3")
    tried = at_check.attempt("Socket-3", n=3, agents=[trying])
    shown.append(("attempts", tried))
    shown.append(("taken", record_view(tried.take(1))))
    shown_texts.matches("beside", shown)
    bench.close()


# -- casts of a project, loadouts ------------------------------------------------------------------


def test_views_of_the_casts_of_a_project_match_the_snapshot(tmp_path, clock):
    bench = Workbench(tmp_path / "project", bundled=False)
    bench.load(h.loop_config())
    for name, agents in {"done": h.loop_agents(), "open": {"Plan": h.loop_agents()["Plan"]}}.items():
        cast = bench.cast(f"the {name}", agents=agents)
        cast.run()
        cast.labels.add(name=name, tag="t")
    plain = bench.cast("plain")
    expression = "$.workItems[*].title"
    quests = [
        Quest(id="Q-1", request="r"),
        Quest(id="Q-2", request="s", loadout="T", status="done", cast="c", note="n"),
    ]
    with pytest.raises(MateriaError) as unsure:
        bench.casts.delete("done")
    shown = [
        ("casts", bench.casts),
        ("of one name", bench.casts(name="done")),
        ("inbox", bench.inbox()),
        ("asked", bench.casts.ask(expression)),
        ("asked of some", bench.casts.ask(expression, ["done", plain, "nothing"])),
        ("steps asked", [str(one) for one in bench.casts.load("done").steps.ask(expression)]),
        ("not found", SearchResultsView([])),
        ("told by", bench.casts.initial_data_from("done")),
        ("verified", str(bench.casts.verify("done"))),
        ("delete", str(unsure.value)),
        ("quests", quests_view(quests)),
        ("no quests", quests_view([])),
        ("workbench", bench),
        ("repr", repr(bench.casts)),
    ]
    shown_texts.matches("project", shown)
    bench.close()


def test_views_of_loadouts_match_the_snapshot(tmp_path):
    bench = Workbench(tmp_path / "project", bundled=False)
    document = h.loop_config()
    document["materia"]["Tell"] = {
        **document["materia"]["Tell"],
        "group": "Ends",
        "description": "tells " * 30,
    }
    document["materia"]["Run"] = {"type": "utility", "command": ["no-such-program"], "parse": "json"}
    document["loadouts"]["Broken"] = {"entry": "Nowhere", "sockets": {"Socket-1": at("None", edge("Gone"))}}
    document["loadouts"]["Runs"] = {"entry": "Socket-1", "sockets": {"Socket-1": at("Run", unknown=1)}}
    bench.load(document)
    bench.agent("Build", lambda: "x")
    text_guard = build_graph(
        config({"A": at("P", edge("B", "satisfied"), edge("C")), "B": at("P", edge("C")), "C": at("P")})
    )
    exits = [exit_route("Eval", "satisfied", "end"), exit_route("Build", "not_satisfied", "end")]
    endless = config({"A": asks(edge("A", "not_satisfied"), edge("B", "satisfied")), "B": at("P")})
    shown = [
        ("loadouts", bench.loadouts),
        ("materia", materia_view(bench.loadouts.config, bench.agents)),
        ("agents", agents_view(bench.agents)),
        ("fields of a loadout", fields_view(bench.loadouts.config, "loadout", "T")),
        ("fields of a materia", fields_view(bench.loadouts.config, "materia", "Run")),
    ]
    for name in ("T", "Broken", "Runs"):
        shown += [
            (name, bench.loadouts.show(name)),
            ("check", bench.check(name)),
            ("report", report_view(name, bench.check(name))),
        ]
    for title, graph in {
        "text": text_guard,
        "exits": build_graph(retry_loop(exits=exits)),
        "endless": build_graph(endless),
        "loop": bench.graph(),
    }.items():
        explored = ExploreView(graph, (0, 2))
        shown += [
            (f"explore {title}", explored),
            (f"cut off {title}", ExploreView(graph, (0, 2), 3)),
            (f"odds {title}", explored.odds(0.6, 2, tokens=100, cost={"*": 0.1}, seconds=10.0)),
            (f"simulation {title}", SimulationView(**vars(simulate_casts(graph, 20, 0.6, 2)))),
        ]
    shown += [
        ("estimate", bench.estimate("T", casts=40)),
        ("priced", bench.estimate("T", model="openai:gpt-4o", casts=40)),
        ("prompts", bench.prompts("T")),
        ("explored", bench.explore("T")),
    ]
    shown_texts.matches("loadouts", shown)
    bench.close()
