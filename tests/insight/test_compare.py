"""Test comparisons of two casts, steps or loadouts: the first difference and its cause."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cast_helpers import items, loop_agents, loop_config, start
from magics_helpers import line, run, text
from materia_nb import Workbench
from materia_nb.display.blocks import blocks_as_json
from materia_nb.errors import MateriaError
from materia_nb.insight.compare import Comparison, previous_visit
from materia_nb.insight.explore import Exploration, behaviour_changes
from materia_nb.loadout import build_graph, config_files
from materia_nb.loadout.config_files import write_config
from stream_helpers import stream_agents, streams_config


@pytest.fixture
def cast_of(bench):
    def make(*refuse, plan=("a", "b"), build="built"):
        agents = {
            "Plan": lambda: {"workItems": items(*plan)},
            "Build": lambda turn: f"{build} {turn.item_label}",
            "Eval": lambda turn: {"satisfied": turn.visit not in refuse, "context": "seen"},
        }
        cast = bench.cast("compare me", agents=agents)
        cast.run()
        return cast

    return make


def test_comparison_of_casts_with_equal_answers_shows_no_differences(bench, cast_of):
    d = bench.compare(cast_of(1), cast_of(1))
    assert not d
    assert d.first is None
    assert "do not differ" in repr(d)


def test_first_difference_is_the_verdict_with_its_edges(bench, cast_of):
    d = bench.compare(cast_of(), cast_of(1))
    assert d
    assert (d.first.step, d.first.a, d.first.b) == (3, "Socket-4", "Socket-2")
    assert "$.satisfied is true in A, false in B" in d.first.why
    assert "not_satisfied" in d.first.why


def test_different_text_on_the_same_route_counts_as_a_difference(bench, cast_of):
    d = bench.compare(cast_of(), cast_of(build="made"))
    assert (d.first.step, d.first.a, d.first.b) == (2, "Socket-3", "Socket-3")
    assert '"built a" in A, "made a" in B' in d.first.why


def test_steps_after_a_retry_are_aligned_again(bench, cast_of):
    d = bench.compare(cast_of(), cast_of(1))
    unmatched_steps = [(pair.side, pair.b.socket) for pair in d.pairs if pair.side != "both"]
    assert unmatched_steps == [("B", "Socket-2"), ("B", "Socket-3")]


def test_first_difference_of_a_fork_is_its_changed_answer(bench, cast_of):
    cast = cast_of()
    fork = bench.casts.make_current(cast.fork(2))
    fork.agents.set("Eval", lambda turn: {"satisfied": turn.visit != 1, "context": "seen"})
    fork.run()
    d = bench.compare(cast, fork)
    assert d.first.step == 3
    assert d.first.aspects[0] == "answer"


def test_unfinished_fork_is_reported_as_shorter(bench, cast_of):
    cast = cast_of()
    d = bench.compare(cast, cast.fork(2))
    assert d.first.step == 2
    assert "B is ready now, but A continued with Eval (a)" in d.first.why


def test_comparison_names_an_edit_as_the_cause_of_a_difference(bench, cast_of):
    cast = cast_of()
    fork = bench.casts.make_current(cast.fork(2))
    fork.edit.set("note", "by hand")
    fork.run()
    why = bench.compare(cast, fork).first.why
    assert 'A person changed the state before this step: state.note is (none) in A, "by hand" in B' in why


def test_comparison_ignores_time_cost_and_id(bench):
    a, b = (
        bench.cast("x", loadout="Ask", agents={"*": {"Answer": {"text": "so", "usage": {"input": n, "output": n}}}})
        for n in (1, 2)
    )
    a.run()
    b.run()
    d = bench.compare(a, b)
    assert not d
    assert [one.tokens for one in d.usage] == [2, 4]


def test_comparison_by_id_does_not_change_the_current_cast(bench, cast_of):
    a, b = cast_of(), cast_of(1)
    assert bench.compare(a.id, "-1").first.step == 3
    assert bench.compare(bench.casts()[1], b.run_dir).first.step == 3
    assert bench.current is b


def test_two_steps_are_compared_side_by_side(bench, cast_of):
    cast = cast_of(1)
    d = bench.compare(cast.steps.at(3), cast.steps.at(5))
    assert (d.first.a, d.first.b) == ("Socket-2", "Socket-4")
    assert [one.path for one in d.answer] == ["satisfied"]
    assert "reasons" in bench.compare(cast.steps.at(2), cast.steps.at(4)).prompt


def test_comparison_of_different_kinds_is_refused(bench, cast_of):
    with pytest.raises(MateriaError, match="a cast and a loadout cannot be compared"):
        bench.compare(cast_of(), "Ask")


def test_casts_of_two_loadouts_are_drawn_on_their_graphs(bench, cast_of):
    other = bench.cast("a page on rain", loadout="Hello-Utility")
    other.run()
    one, two = bench.compare(cast_of(), other).pictures
    assert (one.graph.name, two.graph.name) == ("Plan-Build-Eval", "Hello-Utility")
    assert "B: Hello-Utility" in bench.compare(cast_of(), other)._repr_mimebundle_()["text/html"]
    assert len(bench.compare(cast_of(), cast_of(1)).pictures) == 1


def test_comparison_tables_fit_the_width_and_are_escaped(bench, cast_of):
    d = bench.compare(cast_of(), cast_of(build="<script>alert(1)</script>" * 9))
    assert max(map(len, repr(d).splitlines()[2:])) <= 88
    html = d._repr_mimebundle_()["text/html"]
    assert "<script>" not in html
    assert "time" in html


def test_outputs_and_prompts_are_compared_word_by_word_and_the_state_as_a_tree(bench, cast_of):
    d = bench.compare(cast_of(build="It has four big walls"), cast_of(build="It has three big walls"))
    assert "It has [-four-]{+three+} big walls" in repr(d)
    assert '<del style="background:#d5404d26">four</del>' in d.as_html()
    folds = [one["title"] for one in blocks_as_json(d.detail_blocks()) if one["is"] == "fold"]
    assert "step 5, 5 in B: Build (b) differs in answer" in folds
    marked = [one["parts"] for one in blocks_as_json(d.detail_blocks()) if one["is"] == "words"]
    assert [part for part in marked[0] if part[0] != " "] == [["-", "four"], ["+", "three"]]


def test_two_visits_of_a_socket_can_be_compared(bench, cast_of):
    cast = cast_of(1)
    first, second = (step for step in cast.steps if step.socket == "Socket-2" and step.item_key == "WI-1")
    assert previous_visit(cast.steps, second.number) is first
    with pytest.raises(MateriaError, match="The socket of step 1 was not visited before"):
        previous_visit(cast.steps, 1)
    assert "{+" in repr(bench.compare(first, second))


def test_graph_marks_edges_taken_by_only_one_cast(bench, cast_of):
    d = bench.compare(cast_of(), cast_of(1))
    assert "only in B" in d.picture.text
    assert "max 3 · B<" in d.picture.svg
    assert (d.routes["Socket-3", 0], d.routes["Socket-3", 1]) == ("both", "B")


@settings(max_examples=20)
@given(a=st.lists(st.booleans(), max_size=5), b=st.lists(st.booleans(), max_size=5))
def test_comparison_is_reflexive_and_symmetric(tmp_path_factory, a, b):
    casts = []
    for verdicts in (a, b):
        refuse = [visit for visit, good in enumerate(verdicts, start=1) if not good]
        cast = start(tmp_path_factory.mktemp("c"), loop_config(), loop_agents(2, refuse))
        cast.run()
        casts.append(cast)
    one, other = (Comparison(x.now.compared_cast, y.now.compared_cast) for x, y in (casts, casts[::-1]))
    assert not Comparison(casts[0].now.compared_cast, casts[0].now.compared_cast)
    assert bool(one) == bool(other)
    assert [(p.a, p.b) for p in one.pairs] == [(p.b, p.a) for p in other.pairs]
    if one:
        assert (one.first.step, one.first.a, one.first.b) == (other.first.step, other.first.b, other.first.a)


@settings(max_examples=15)
@given(common_steps_count=st.integers(1, 5), reply_text=st.text("abc ", max_size=9))
def test_first_difference_is_the_changed_answer_at_any_step(tmp_path_factory, common_steps_count, reply_text):
    cast = start(tmp_path_factory.mktemp("f"), loop_config(), loop_agents(2))
    cast.run()
    with closing(cast.fork(common_steps_count)) as fork:
        fork.step(ask=False)
        fork.reply(_otherwise(fork, reply_text))
    assert Comparison(cast.now.compared_cast, fork.now.compared_cast).first.step == common_steps_count + 1


def _otherwise(fork, reply_text):
    """Give the waiting socket a different valid answer."""
    wants = {
        "Socket-1": {"workItems": items(f"x{reply_text}")},
        "Socket-3": {"satisfied": True, "context": f"x{reply_text}"},
    }
    return wants.get(fork.now.next_socket, f"x{reply_text}")


def test_loadouts_are_compared_by_sockets_edges_and_materia(bench):
    document = json.loads(json.dumps(dict(bench.loadouts.config.document)))
    sockets = document["loadouts"]["Plan-Build-Eval"]["sockets"]
    sockets["Socket-3"]["edges"].reverse()
    document["materia"]["Build"]["prompt"] += " Well."
    sockets["Socket-5"]["layout"] = {"x": 1, "y": 2}
    d = bench.compare("Plan-Build-Eval", build_graph(document, "Plan-Build-Eval"))
    assert d
    assert [(difference.of, difference.field) for difference in d.differences] == [
        ("Socket-3", "edge 1"),
        ("Socket-3", "edge 2"),
        ("materia Build", "prompt"),
    ]
    assert d.differences[0].b == "not_satisfied to Socket-2, at most 3 times"
    assert "only in B" in d.pictures[1].text


def test_comparison_of_a_loadout_with_itself_shows_no_differences(bench):
    d = bench.compare("Plan-Build-Eval", bench.loadouts.show("Plan-Build-Eval"))
    assert not d
    assert "the same loadout" in repr(d)


def test_sockets_in_only_one_loadout_are_marked(bench):
    d = bench.compare("Plan-Build-Eval", "Full-Auto")
    assert d.sockets["Socket-6"] == "B"
    assert "only B" in d.pictures[1].svg
    assert "only B" not in d.pictures[0].svg
    assert "differs" in d.pictures[0].svg


def test_long_text_is_shortened_around_the_difference(bench, cast_of):
    d = bench.compare(cast_of(build="x" * 300), cast_of(build="x" * 299 + "y"))
    assert "y a" in d.first.why
    assert len(max(d.first.lines, key=len)) < 250


def test_compare_verb_compares_casts_steps_and_loadouts(shell, bench):
    shell.user_ns["wb"] = bench
    for request in ("one", "two"):
        line(shell, f"cast {request}")
        run(shell, "%materia run")
    assert "do not differ" in text(run(shell, f"%materia compare {bench.casts()[1].id}"))
    assert "A took edge 2 to Build" in text(run(shell, "%materia compare --steps 3 5"))
    assert "edge 1" in text(run(shell, "%materia compare Plan-Build-Eval Full-Auto"))
    with pytest.raises(MateriaError, match="The socket of step 1 was not visited before"):
        run(shell, "%materia compare --visit 1")
    with pytest.raises(MateriaError, match="not the number of a step"):
        run(shell, "%materia compare --steps one two")


# -- the behaviour of loadouts -------------------------------------------------------------------


def edited(bench, **edges):
    """Define a copy of Plan-Build-Eval with other edges, and return its name."""
    definition = json.loads(json.dumps(bench.loadouts.config.document["loadouts"]["Plan-Build-Eval"]))
    for socket, rows in edges.items():
        definition["sockets"][socket.replace("_", "-")]["edges"] = rows
    bench.loadouts.define("Edited", definition)
    return "Edited"


def test_equal_loadouts_have_equal_behaviour(bench):
    """Swapped exclusive edges and an edge that never matches change fields, but not the behaviour."""
    satisfied, refused = {"when": "satisfied", "to": "Socket-4"}, {"when": "not_satisfied", "to": "Socket-2"}
    rows = [refused | {"maxTraversals": 3}, satisfied, {"when": "satisfied", "to": "Socket-1"}]
    name = edited(bench, Socket_3=rows)
    assert bench.compare("Plan-Build-Eval", name)
    d = bench.compare("Plan-Build-Eval", name, behaviour=True)
    assert not d
    assert d.changes == []
    assert repr(d) == "Every cast takes the same route in A and B."


def test_changed_behaviour_is_shown_with_the_shortest_cast_and_the_odds(bench):
    name = edited(bench, Socket_3=[{"when": "always", "to": "Socket-4"}])
    d = bench.compare("Plan-Build-Eval", name, behaviour=True, satisfied=0.5, items=1)
    assert d
    (change,) = d.changes
    assert (change.after, change.a, change.b) == (
        "Eval (only), satisfied false",
        "Build (only)",
        "Maintain (only)",
    )
    assert change.route == ("Socket-1", "Socket-2", "Socket-3")
    assert [odds.ends["complete"] for odds in d.odds] == [
        bench.odds(loadout, 0.5, 1).ends["complete"] for loadout in ("Plan-Build-Eval", name)
    ]
    assert "Plan → Build → Eval" in d.as_text(200)
    assert "A continues at" in d.as_html()


def test_cast_stops_at_a_failure_whose_edge_was_removed(tmp_path):
    def graph(*edges):
        sockets = {"Do": {"materia": "Do", "edges": [*edges, {"when": "always", "to": "end"}]}}
        loadouts = {"T": {"entry": "Do", "sockets": sockets}}
        return build_graph({"loadouts": loadouts, "materia": {"Do": {"tools": "none", "prompt": "Do it"}}}, "T")

    retried = graph({"when": "failed", "to": "Do", "maxTraversals": 1})
    d = Workbench(tmp_path).compare(retried, graph(), behaviour=True)
    assert [(change.after, change.a, change.b) for change in d.changes] == [("Do, a failure", "Do", "the cast stops")]


def test_explore_changes_command_shows_changed_behaviour(shell, bench):
    shell.user_ns["wb"] = bench
    edited(bench, Socket_3=[{"when": "always", "to": "Socket-4"}])
    output = text(run(shell, "%materia explore changes Plan-Build-Eval Edited --satisfied Eval=0.9,*=0.7 --items 2"))
    assert "A continues at" in output
    with pytest.raises(MateriaError, match="does not exist"):
        run(shell, "%materia explore changes Plan-Build-Eval Nobody")


def test_config_files_are_compared_by_their_active_loadouts(bench, tmp_path):
    document = json.loads(json.dumps(bench.loadouts.config.document))
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    write_config(before, {**document, "activeLoadout": "Plan-Build-Eval"})
    document["loadouts"]["Plan-Build-Eval"]["sockets"]["Socket-3"]["edges"] = [{"when": "always", "to": "Socket-4"}]
    write_config(after, {**document, "activeLoadout": "Plan-Build-Eval"})
    chosen = bench.loadouts.chosen
    assert bench.compare(before, str(after), behaviour=True, items=1)
    assert bench.compare(before, after).differences
    assert not bench.compare(before, "Plan-Build-Eval", behaviour=True, items=1)
    assert bench.loadouts.chosen == chosen, "the files are not loaded"
    with pytest.raises(MateriaError, match="does not exist"):
        bench.compare(before, tmp_path / "befor.json")


def test_config_file_that_selects_a_loadout_is_read_once(bench, tmp_path, monkeypatch):
    path, paths_read = tmp_path / "choice.json", []
    write_config(path, {"activeLoadout": "Full-Auto"})
    read_plain = config_files.read_plain
    monkeypatch.setattr(config_files, "read_plain", lambda p, *a, **k: paths_read.append(p) or read_plain(p, *a, **k))
    assert bench.loadouts.graph(path).name == "Full-Auto"
    assert paths_read.count(path) == 1


def test_config_file_without_a_loadout_is_refused(bench, tmp_path):
    path = tmp_path / "agents.json"
    write_config(path, {"materia": {"Own": {"prompt": "p", "tools": "none"}}, "loadouts": {"Mime": None}})
    with pytest.raises(MateriaError, match="The config file has no loadout") as error:
        bench.compare(path, "Plan-Build-Eval")
    assert (error.value.where, error.value.kind) == (str(path), "no_loadout")
    assert "activeLoadout" in error.value.hint


def test_behaviour_can_be_compared_only_if_both_loadouts_are_fully_explored(bench, cast_of, monkeypatch):
    cast = cast_of()
    with pytest.raises(MateriaError, match="Only loadouts have a behaviour"):
        bench.compare(cast, cast, behaviour=True)
    with pytest.raises(MateriaError, match=r"(?s)loadout 'Plan-Build' does not exist.*did you mean 'Plan-Build-Eval'"):
        bench.compare("Plan-Build-Eval", "Plan-Build", behaviour=True)
    with pytest.raises(MateriaError, match="not a valid list length"):
        bench.compare("Plan-Build-Eval", "Full-Auto", behaviour=True, items=-1)
    with pytest.raises(MateriaError, match="the search stopped after 3 states") as caught:
        behaviour_changes(Exploration(cast.graph, 3, 3), Exploration(cast.graph, 3))
    assert caught.value.kind == "not_explored"


# -- lanes -------------------------------------------------------------------------------------


def in_lanes(tmp_path, name, **agents):
    cast = start(tmp_path / name, streams_config(), stream_agents(**agents))
    cast.run()
    return cast


def test_first_difference_names_lane_and_item(tmp_path):
    def check(item, last):
        good = item["title"] != "Part 0"
        return json.dumps({"satisfied": True, "context": f"checked {last}" if good else "other"})

    one, same = in_lanes(tmp_path, "a"), in_lanes(tmp_path, "b")
    other = in_lanes(tmp_path, "c", Check=check)
    assert not Comparison(one.now.compared_cast, same.now.compared_cast)
    compared = Comparison(one.now.compared_cast, other.now.compared_cast)
    first = compared.first
    assert (first.lane, first.step, first.location) == ("ui", 6, "step 6 in lane ui")
    assert "Check (Part 0) answered differently" in first.why
    assert "by a person" not in first.why
    assert compared.differing_step.a.lane == "ui"
    assert len(compared.pairs) == 10
    assert [pair.a.number for pair in compared.pairs if pair.own_differences] == [6]


def test_unfinished_lane_does_not_hide_differences_of_other_lanes(tmp_path):
    complete_run = in_lanes(tmp_path, "a")
    unfinished_run = start(
        tmp_path / "b",
        streams_config(),
        stream_agents(Setup=lambda lane: "other" if lane == "api" else f"ready for {lane}"),
    )
    unfinished_run.step()
    assert Comparison(complete_run.now.compared_cast, unfinished_run.now.compared_cast).unfinished == "B"
    unfinished_run.step()
    compared = Comparison(complete_run.now.compared_cast, unfinished_run.now.compared_cast)
    assert (compared.first.lane, compared.first.aspects[:1]) == ("api", ("answer",))
    assert compared.unfinished is None


def test_replay_can_differ_in_a_lane(tmp_path):
    agents = {"Check": lambda visit: json.dumps({"satisfied": visit > 1, "context": "x"})}
    cast = in_lanes(tmp_path, "a", **agents)
    assert cast.replay(streams_config()).first is None
    config = streams_config()
    config["loadouts"]["T"]["sockets"]["Socket-4"]["edges"][1]["to"] = "Socket-4"
    first = cast.replay(config).first
    assert (first.lane, first.step) == ("ui", 4)
