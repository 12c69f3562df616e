"""Store the page data of panel sessions: the initial data, and the changes after each message; see ``shown_texts``."""

from __future__ import annotations

import json
import time
from contextlib import closing

import pytest

import cast_helpers as h
import cast_scenes
import shown_texts
from display_graphs import hello
from materia_nb import Workbench
from materia_nb.cast import open_cast
from materia_nb.display.blocks import blocks_as_json
from materia_nb.store.catalogue import cast_entry
from materia_nb.store.design_autosave import autosave
from materia_nb.widgets import GraphPanel
from materia_nb.widgets.base import runs_of
from materia_nb.widgets.cast_panel import CastPanel
from materia_nb.widgets.design_session import DesignSession
from materia_nb.widgets.design_slices import design_slice
from materia_nb.widgets.explorer import list_row, summarize_cast
from materia_nb.widgets.failure_panel import result_blocks
from materia_nb.widgets.inspector_tabs import TABS as ALL_TABS
from panel_helpers import from_list, from_page


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Replace the clock by one that advances by one second when an agent requests it."""
    now = [1_700_049_600_000]
    monkeypatch.setattr("materia_nb.cast.work.time.time_ns", lambda: now[0] * 1_000_000)

    def ticks(seconds=1.0):
        now[0] += round(seconds * 1000)

    return ticks


def flat(told, prefix=""):
    """Return the parts of the data by path; objects are split at two levels."""
    for name, value in told.items():
        if isinstance(value, dict) and prefix.count(".") < 2:
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def changes(before, after):
    """Return the differences between two sets of page data, with one entry for each changed list element."""
    found = {}
    for name, value in after.items():
        known = before.get(name)
        if value == known or name.startswith("palette"):
            continue
        if isinstance(value, list) and isinstance(known, list):
            found |= {f"{name}[{n}]": one for n, one in enumerate(value) if n >= len(known) or one != known[n]}
            if len(value) < len(known):
                found[name] = f"{len(value)} of {len(known)} are left"
        else:
            found[name] = value
    return found


SLICES = ("surface", "bar", "inspector", "timeline", "items", "watch", "lanes", "events", "files", "compare")


def of_panel(panel, row_ids):
    """Return the parts of all page data; ``row_ids`` renumbers timeline rows, whose ids depend on the number of
    redraws.
    """
    state = panel.front.get_state()
    state["surface"] = {name: one for name, one in state["surface"].items() if name != "identity"}
    row_id = state["timeline"]["id"]
    state["timeline"] = {**state["timeline"], "id": f"rows {row_ids.setdefault(row_id, len(row_ids))}"}
    return dict(flat(blocks_as_json({name: state[name] for name in SLICES if name in state})))


def session(panel, *messages):
    """Yield the initial page data and the changes after each message."""
    answers, row_ids = [], {}
    panel.front.send = lambda content, buffers=None: answers.append(content)
    panel.refresh()
    before = of_panel(panel, row_ids)
    yield "at first", before
    for kind, values in messages:
        answers.clear()
        panel.guarded(panel.on_message)(from_page(panel, kind, **values))
        assert runs_of(panel.cast).wait(30)
        panel.refresh()
        after = of_panel(panel, row_ids)
        yield (
            f"{kind} {json.dumps(values)}",
            {**changes(before, after), **{f"answer {n}": one for n, one in enumerate(answers)}},
        )
        before = after


def m(kind, **values):
    return kind, values


def element(kind, id_):
    return m("select", element={"kind": kind, "id": id_})


ROWS = [["First", "about it", None], ["a", "about a", 0, True], ["", "", 2]]
TABS = [m("tab", tab=tab) for tab in (*ALL_TABS, "nothing")]
DOCKS = [
    m("dock", dock=dock) for dock in ("items", "watch", "lanes", "events", "files", "compare", "nothing", "timeline")
]
GOING = [
    m("rows", first=1, last=3, token="t"),
    m("step", first=[{"kind": "break", "breakpoint": {"kind": "after", "socket": "Socket-3"}}]),
    *TABS,
    m("edit_prompt", layers={"task": "another task"}),
    m("enter"),
    m("edit_prompt", layers={"task": "another task"}),
    m("tab", tab="prompt"),
    m("check", purpose="reply", text='{"satisfied": 1}', token="t"),
    m("check", purpose="value", text="{", token="t"),
    m("step"),
    m("run_to", socket="Socket-4"),
    m("break_where", breakpoint={"kind": "after", "socket": "Socket-3"}, text="2"),
    m("break_where", breakpoint={"kind": "before", "socket": "Socket-2"}, text="len(state.workItems) > 9"),
    m("break_where", breakpoint={"kind": "before", "socket": "Socket-2"}, text="import os"),
    m("watch", path="workItems"),
    m("clear_breaks"),
    m("follow", path="context"),
    m("run_item"),
    *DOCKS,
    *[element("socket", f"Socket-{n}") for n in range(1, 5)],
    element("loop", "items"),
    element("item", "1"),
    element("step", "3"),
    element("edge", "edge:0:Socket-3"),
    element("nothing", "x"),
    *TABS,
    m("select", element=None),
    m("look", step=2),
    *TABS[:4],
    m("row", row=1),
    m("row", row=0),
    m("now"),
    m("check_items", rows=ROWS, base="x", token="t"),
    m("check_items", rows=ROWS[:2], token="t", abandon=True),
    m("items", rows=ROWS[:2]),
    m("items", rows=ROWS),
    m("undo"),
    m("set_value", path="note", text="[1, 2]"),
    m("set_value", path="note.x", text="{"),
    m("set_value", path="other", text="text", as_text=True),
    m("value", path=["note"], token="t"),
    m("value", path=["none"], token="t"),
    m("diff", a=1, b=3, token="t"),
    m("remove_value", path="note"),
    m("pin", socket="Socket-2"),
    m("pin", socket="Socket-2"),
    m("pin", socket="Socket-9"),
    m("edit_output", text='{"satisfied": true}'),
    m("edit_output", text="no"),
    m("budget", budget="500"),
    m("budget", budget="a lot"),
    m("label", text="a name"),
    m("find", text="build", token="t"),
    m("compare", row=3),
    m("compare", row=2, other=4),
    m("compare", socket="Socket-3"),
    m("compare", socket="Socket-5"),
    m("compare", cast="nothing"),
    m("casts", token="t"),
    m("height", by=40),
    m("height", by=-4000),
    m("mode", mode="design"),
    m("pick", part="x"),
    m("mode", mode="cast"),
    m("page"),
    m("keep_test"),
    m("back", step=2, discard_edits=True),
    m("line", line=0),
    m("line", line=None),
    m("run"),
    m("end_of_nothing"),
    m("fork", step=2),
    m("show_cast", cast=0),
    m("again"),
    m("show_cast", cast=9),
    m("dismiss"),
    m("abort"),
]


def test_panel_session_matches_the_snapshot(bench, cast):
    shown = []
    with closing(CastPanel(cast, bench=bench)) as panel:
        shown = list(session(panel, *GOING))
    shown_texts.matches("panel-going", shown)


YES = m("verdict", satisfied=True, reason="well done")
NO = m("verdict", satisfied=False, reason="")
STOPPED = (
    (cast_scenes.in_a_mess, [m("check", purpose="by_hand", text="no", token="t"), m("by_hand", text="no"), m("retry"), m("retry_turn"), m("retry_limit"), m("ask_again"), m("apply_changes"), m("allow_folder"), m("skip", note=" "), m("skip", note="not today", item=True), m("step")]),
    (cast_scenes.out_of_turns, [m("retry_limit"), m("ask_again"), m("back", step=3)]),
    (cast_scenes.failing_utility, [*TABS, m("retry"), m("by_hand", text="mine"), m("run")]),
    (cast_scenes.by_a_person, [m("items_answer", rows=[["", "x"]], reason=""), m("items_answer", rows=[["A", "x"], ["B", "y"]], reason="so"), m("run"), YES, m("run"), NO, m("reply", text="no"), m("reply", text=h.YES)]),
    (cast_scenes.with_a_draft, [m("refine", text="shorter"), m("finalize"), m("reply", text="the end"), *TABS]),
    (cast_scenes.with_a_tool, [m("allow"), m("deny", reason="r"), m("disallow", tool="bash"), m("answer", text="x"), m("reply", text="mine")]),
    (cast_scenes.in_lanes, [m("dock", dock="lanes"), m("lane", lane="ui"), *TABS, m("lane", lane="none"), m("verdict", satisfied=True, reason="in a lane"), m("look", step=2, lane="ui"), m("row", row=3), m("now"), m("compare", row=3, other=4), m("run")]),
    (cast_scenes.come_to_its_end, [*TABS, m("dock", dock="items"), m("compare", socket="Socket-2"), m("step"), m("fork"), m("run")]),
)  # fmt: skip


@pytest.mark.parametrize("scene, messages", STOPPED, ids=[scene.__name__ for scene, _ in STOPPED])
def test_panel_session_of_a_stopped_cast_matches_the_snapshot(tmp_path, scene, messages):
    cast = scene(tmp_path)
    with closing(CastPanel(cast)) as panel:
        shown = list(session(panel, *messages))
        shown.append(("fallback", panel.fallback()[0]))
        shown.append(("end", result_blocks(cast.now)) if cast.status == "complete" else ("stands", cast.status))
    shown_texts.matches(f"panel-{scene.__name__}", shown)


def test_panel_session_of_a_read_only_cast_matches_the_snapshot(tmp_path):
    cast = cast_scenes.come_to_its_end(tmp_path)
    cast.close()
    with closing(CastPanel(open_cast(cast.run_dir))) as panel:
        shown_texts.matches("panel-opened", session(panel, m("step"), m("undo"), m("look", step=1), *TABS[:3]))


# -- designing -------------------------------------------------------------------------------------

SOCKETS = [f"Socket-{n}" for n in range(1, 6)]
DESIGNING = [
    *[m("pick", part=["socket", socket]) for socket in SOCKETS[:3]],
    m("pick", part=["edge", "edge:0:Socket-3"]),
    m("pick", part=["loop", "items"]),
    m("pick", part=["exit", "exit:0:items"]),
    m("pick", part=["nothing", "x"]),
    m("pick", part=None),
    m("pick", part=["socket", "Socket-2"], add=True),
    m("pick", part=["socket", "Socket-3"], add=True),
    m("copy"),
    m("paste"),
    m("undo"),
    m("redo"),
    m("undo"),
    m("mark", id="Socket-4"),
    m("mark", id="Nowhere"),
    m("marquee", ids=["Socket-4", "Socket-5"]),
    m("duplicate"),
    m("cut"),
    m("undo"),
    m("undo"),
    m("add", materia="Critique", x=3, y=2, positions={"Socket-1": [0, 0]}),
    m("add", materia="Buld"),
    m("answer", number=0),
    m("add", materia="Brand New"),
    m("answer", number=1),
    m("add", materia=" "),
    m("add", materia="Eval", source="Socket-1"),
    m("add", materia="Mine", make="utility"),
    m("add", materia="Mine", make="agent"),
    m("move", id="Socket-1", x=1.5, y=2),
    m("move", id="Socket-1", x="a", y=2),
    m("tidy"),
    m("tidy"),
    m("set_entry", id="Socket-2"),
    m("set", of=["socket", "Socket-3"], field="parse", value="text"),
    m("set", of=["socket", "Socket-3"], field="parse", value="xml"),
    m("set", of=["socket", "Socket-3"], field="id", value="Judge"),
    m("set", of=["socket", "Judge"], field="materia", value="Nobody"),
    m("set", of=["socket", "Judge"], field="materia", value=None),
    m("set", of=["edge", "edge:0:Judge"], field="maxTraversals", value="2"),
    m("set", of=["edge", "edge:0:Judge"], field="when", value=None),
    m("set", of=["exit", "exit:0:items"], field="targetSocketId", value="end"),
    m("set", of=["exit", "exit:0:items"], field="condition", value="always"),
    m("set", of=["loop", "items"], field="consumes.as", value="row"),
    m("set", of=["loop", "items"], field="id", value="rows"),
    m("set", of=["loadout", ""], field="entry", value="Socket-1"),
    m("set", of=["loadout", ""], field="description", value="what it does"),
    m("set", of=["materia", "Build"], field="prompt", value="Build {{item.title}}"),
    m("set", of=["materia", "Build"], field="prompt", value=" "),
    m("set", of=["materia", "Build"], field="tools", value="all"),
    m("forget", of=["materia", "Build"], field="prompt"),
    m("pick", part=["socket", "Socket-2"]),
    m("connect", **{"from": "Socket-5", "to": "Socket-2"}),
    m("connect", **{"from": "Socket-5", "to": "end", "when": "satisfied", "max_traversals": 2}),
    m("connect", **{"from": "Nowhere", "to": "end"}),
    m("when", of=["edge", "edge:0:Socket-5"], when="not_satisfied"),
    m("reorder", of=["edge", "edge:0:Socket-5"], offset=1),
    m("reorder", of=["edge", "edge:0:Socket-5"], offset=2),
    m("reorder", of=["socket", "Socket-5"], offset=1),
    m("turn", of=["exit", "exit:0:rows"]),
    m("turn", of=["edge", "edge:0:Socket-1"]),
    m("exit", loop="rows", **{"from": "Judge", "when": "satisfied", "to": "Socket-4"}),
    m("members", loop="rows", ids=["Socket-2"]),
    m("source", loop="rows", source="iterator"),
    m("source", loop="rows", source=""),
    m("source", loop="rows", source="other"),
    m("source", loop="rows", source="consumes"),
    m("loop", ids=["Socket-4", "Socket-5"]),
    m("answer", number=0),
    m("fix", code="no", source="x"),
    m("explore"),
    m("witness", outcome="complete"),
    m("witness", outcome="nothing"),
    m("estimate"),
    m("delete", of=["edge", "edge:0:Socket-5"]),
    m("delete", of=["exit", "exit:0:rows"]),
    m("delete", of=["loop", "rows"]),
    m("delete", of=["socket", "Socket-5"]),
    m("pick", part=None),
    m("delete"),
    m("save", to="nowhere/else.xyz"),
    m("save", to="this notebook"),
    m("reload"),
    m("news"),
    m("draft", file="x"),
    m("answer", number=7),
    m("nothing"),
    m("remove_socket", id="Socket-4"),
    m("set_source"),
]


def told_of_design(session):
    told = dict(flat(blocks_as_json(design_slice(session))))
    for identity in ("bar.question.number", "bar.identity"):
        told.pop(identity, None)
    return told


def designed(session, *messages):
    before = told_of_design(session)
    yield "at first", before
    for kind, values in messages:
        session.on_message(kind, values)
        after = told_of_design(session)
        marks = {"note": session.note, "selected": session.selected, "marked": session.marked}
        yield f"{kind} {json.dumps(values)}", {**changes(before, after), **marks}
        before = after


@pytest.fixture
def wb(wb):
    wb.use("Plan-Build-Eval")
    return wb


def test_every_designer_message_has_an_effect_or_returns_a_reason(wb):
    quiet = {
        "tidy",
        "move",
        "pick",
        "mark",
        "marquee",
        "when",
        "reorder",
        "news",
        "witness",
        "estimate",
        "explore",
    }
    for number, (title, shown) in enumerate(designed(DesignSession(wb, wb.design()), *DESIGNING)):
        changed = {name for name in shown if name not in ("note", "selected", "marked")}
        assert number == 0 or changed or shown["note"] or title.split()[0] in quiet, title


def test_problems_of_a_design_are_fixed_one_by_one(wb):
    new_session = DesignSession(wb, wb.design())
    broken = [
        m("set", of=["socket", "Socket-3"], field="parse", value="text"),
        m("delete", of=["socket", "Socket-1"]),
        m("explore"),
    ]
    shown = list(designed(new_session, *broken))
    for _ in range(12):
        report = new_session.design.report
        findings = (*report.problems, *report.hints)
        if not findings:
            break
        one = findings[0]
        shown += list(designed(new_session, m("fix", code=one.code, source=one.source)))[1:]
    shown_texts.matches("fixing", shown)


def test_review_of_the_steps_of_an_agent_matches_the_snapshot(wb):
    draft = autosave(wb.design(), wb.loadouts.casts_root, "an agent")
    draft.add_socket("Build")
    draft.add_edge("Socket-5", "Socket-6", "always")
    draft.set_materia("Build", "prompt", "Build it")
    draft = None
    new_session = DesignSession(wb, wb.design())
    shown_texts.matches("draft-taken-up", designed(new_session, m("news"), m("answer", number=0), m("undo")))


# -- the canvas ------------------------------------------------------------------------------------


def drawn(panel):
    scene = panel.front.scene
    found = {one["id"]: one for one in (*scene["nodes"], *scene["edges"])}
    found |= {name: one for name, one in scene.items() if name not in ("nodes", "edges")}
    return {
        **found,
        **{f"look {name}": one for name, one in panel.front.look.items()},
        "flags": panel.front.flags,
    }


@pytest.mark.parametrize("made", [hello], ids=lambda made: made.__name__)
def test_canvas_data_matches_the_snapshot(made):
    shown = []
    with closing(GraphPanel(made())) as panel:
        before = drawn(panel)
        shown.append(("at first", before))
        elements = [one["id"] for one in (*panel.front.scene["nodes"], *panel.front.scene["edges"])]
        messages = [{"kind": "pick", "element": one} for one in elements]
        messages += [
            {"kind": "turn"},
            {"kind": "fold", "element": next((one for one in elements if one.startswith("l:")), "")},
        ]
        messages += [{"kind": "room", "w": 300.0, "h": 200.0}, {"kind": "pick", "element": "none"}]
        for message in messages:
            panel.guarded(panel.on_message)(message)
            panel.refresh()
            after = drawn(panel)
            shown.append((json.dumps(message), {**changes(before, after), "selected": panel.selected}))
            before = after
    shown_texts.matches(f"canvas-{made.__name__}", shown)


def test_canvas_data_of_a_cast_matches_the_snapshot(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(2, refuse=[1]))
    shown = []
    with closing(GraphPanel(cast)) as panel:
        before = drawn(panel)
        while cast.status == "ready":
            cast.step()
            panel.refresh()
            after = drawn(panel)
            shown.append((f"after {len(cast.steps)}", changes(before, after)))
            before = after
    shown_texts.matches("canvas-cast", shown)


# -- all casts, a question -------------------------------------------------------------------------


def test_explorer_session_matches_the_snapshot(tmp_path, project):
    bench = Workbench(project, bundled=False)
    bench.load(h.loop_config(artifactDir="casts"))
    agents = h.loop_agents(2, refuse=[1])
    fails = {**agents, "Check": lambda: "no object"}
    asks = {name: agents[name] for name in ("Plan", "Build")}
    known = {
        name: bench.cast(f"the {name} one", agents=given)
        for name, given in {"done": agents, "failed": fails, "open": asks, "fresh": {}}.items()
    }
    for cast in known.values():
        if cast.now.request != "the fresh one":
            cast.run()
    known["done"].labels.add(name="breakfast", tag="good")
    known["open"].agents.set("*", "person")
    shown = []
    for name, cast in known.items():
        cast.close()
        entry = cast_entry(cast.run_dir)
        sides = summarize_cast(entry)
        shown += [
            (f"row of {name}", list_row(entry, time.time())),
            *((f"side of {name}", list(side)) for side in sides),
        ]
    with closing(bench.casts.show()) as panel:
        panel.wait(30)
        panel.refresh()
        ids = {name: cast.id for name, cast in known.items()}
        before = dict(panel.front.casts)
        shown.append(("at first", before))
        orders = [
            m("look", text=words, only=only, by=by, down=down)
            for words, only, by, down in (
                ("one", "all", "state", True),
                ("", "waits", "request", False),
                ("breakfast", "tagged", "steps", True),
                ("", "failed", "cost", False),
                ("", "all", "loadout", True),
                ("", "all", "steps", False),
            )
        ]
        messages = [
            *orders,
            m("select", cast=ids["failed"]),
            m("compare", a=ids["done"], b=ids["failed"]),
            m("close_selected"),
            m("open", cast=ids["done"]),
            m("label", cast=ids["done"], text="another name #tag #"),
            m("resume", cast=ids["open"]),
            m("fork", cast=ids["done"]),
            m("delete", cast=ids["failed"]),
            m("dismiss"),
            m("open", cast="nothing"),
            m("look", by="nothing"),
        ]
        for kind, values in messages:
            panel.guarded(panel.on_message)(from_list(panel, kind, **values))
            panel.wait(30)
            panel.refresh()
            after = dict(panel.front.casts)
            shown.append((f"{kind} {json.dumps(values)}", changes(before, after)))
            before = after
        shown.append(("fallback", panel.fallback()[0]))
    bench.close()
    shown_texts.matches("explorer", shown)
