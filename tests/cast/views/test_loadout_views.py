"""Test the views of a loadout before a cast: text, HTML, picture and verbs."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from builders import asks, at, config, edge, exit_route, retry_loop
from display_hostile import HOSTILE
from magics_helpers import line, text
from materia_nb.cast.views.loadout_views import ExploreView, SimulationView, report_view
from materia_nb.display.blocks import Table
from materia_nb.display.text import WIDTH, display_width
from materia_nb.errors import MateriaError
from materia_nb.insight.odds import simulate_casts
from materia_nb.loadout import build_graph
from materia_nb.loadout.report import Problem, Report


def test_workbench_computes_odds_and_explorations(wb):
    given = {"tokens": 100, "cost": {"*": 0.1}, "seconds": 10.0}
    odds = wb.odds("Parallel-Build", 0.9, 4, **given)
    assert repr(odds) == repr(wb.explore("Parallel-Build", 4).odds(0.9, 4, **given))
    assert odds.seconds == pytest.approx(10 * sum(odds.visits.values()))
    assert wb.odds("Parallel-Build", 0.9).seconds is None


def guarded_text():
    """Return a loadout with a guarded edge on a text output, which can never match."""
    return build_graph(config({"A": at("P", edge("B", "satisfied"), edge("C")), "B": at("P", edge("C")), "C": at("P")}))


def all_of(graph):
    explored = ExploreView(graph, (0, 2))
    return [explored, explored.odds(0.6, 2), SimulationView(**vars(simulate_casts(graph, 20, 0.6, 2)))]


def test_lines_of_loadout_views_fit_the_width_of_a_notebook(wb):
    for name in ("Plan-Build-Eval", "Blackbelt"):
        for view in all_of(wb.graph(name)):
            assert max(display_width(one) for one in repr(view).splitlines()) <= WIDTH <= 88


def test_each_loadout_view_has_text_html_and_a_picture(wb):
    for view in all_of(wb.graph("Plan-Build-Eval")):
        bundle = view._repr_mimebundle_()
        assert "<img " in bundle["text/html"]
        assert "<svg" not in bundle["text/html"]
        assert bundle["text/plain"] == repr(view)
        assert "Plan-Build-Eval" in repr(view)


def test_unreachable_edges_are_listed_and_marked_in_pictures():
    e = ExploreView(guarded_text())
    assert "edge 1 of A" in repr(e)
    assert "never visited: B" in repr(e)
    for drawn in (e.picture.text, e.picture.svg, e.picture.mermaid):
        assert "never taken" in drawn
        assert "never visited" in drawn


def test_exit_that_is_never_taken_is_marked():
    exits = [exit_route("Eval", "satisfied", "end"), exit_route("Build", "not_satisfied", "end")]
    e = ExploreView(build_graph(retry_loop(exits=exits)))
    assert e.marks.unused_routes == {("Build", "loop-exit:L:exit:Build:not_satisfied")}
    for drawn in (e.picture.text, e.picture.svg, e.picture.mermaid):
        assert drawn.count("never taken") == 1


def test_fully_reachable_loadout_is_reported():
    e = ExploreView(build_graph(retry_loop(exits=[exit_route("Eval", "satisfied", "end")])))
    assert "every edge and exit can be taken" in repr(e)
    assert "never visited: Tell" in repr(e)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_of_loadouts_and_exits_are_shown_as_text(name):
    exits = [
        exit_route("Eval", "satisfied", "end"),
        exit_route("Build", "not_satisfied", "end") | {"id": name.strip() or "exit"},
    ]
    graph = replace(build_graph(retry_loop(exits=exits)), name=name)
    assert ExploreView(graph).never == [name.strip() or "exit"]
    for view in all_of(graph):
        html = str(view.as_html())
        assert not any(tag in html for tag in ("<script", "<img"))
        assert "\x1b" not in repr(view)


def test_simulation_picture_shows_how_often_edges_were_taken():
    r = SimulationView(**vars(simulate_casts(build_graph(retry_loop(most=1)), 30, 1.0, 2)))
    assert r.marks.visits["Build"] == 60
    assert r.marks.traversals["Build->Eval"] == 60


def test_outcomes_of_other_protocols_are_listed():
    document = config({"A": asks(edge("end"), handoff="envelope")})
    output = repr(ExploreView(build_graph(document)))
    assert "P: the agent may ask for a detour. Detours are not explored." in output
    assert "on hold for a person" in output


# -- magics ---------------------------------------------------------------------------------


def test_explore_uses_the_chosen_loadout(shell):
    line(shell, "use Plan-Build-Eval")
    assert "failed: edge_traversals_exhausted" in text(line(shell, "explore"))
    assert line(shell, "explore Ask --items 0-2,5").items == (0, 1, 2, 5)


def test_odds_and_simulate_accept_probabilities(shell):
    o = line(shell, "explore odds Plan-Build-Eval --satisfied Socket-3=1,*=0.5 --items 2")
    assert (o.satisfied, o.items) == ({"Socket-3": 1, "Socket-4": 0.5}, 2)
    r = line(shell, "explore simulate Plan-Build-Eval --n 5 --satisfied 1 --items 1 --seed 3")
    assert (r.n, r.seed, r.ends) == (5, 3, {"complete": 5})


@pytest.mark.parametrize(
    "typed",
    ["explore Ask --items few", "explore odds Ask --satisfied often", "explore odds Ask --satisfied A=b"],
)
def test_invalid_number_raises_an_error(shell, typed):
    with pytest.raises(MateriaError, match=r"is not a|does not say"):
        line(shell, typed)


def test_ignored_fields_are_summarized_in_one_collapsed_line():
    found = [Problem("no-effect", f"Socket-{n}.parse", f"why {n}", "remove it") for n in range(1, 5)]
    lone = Problem("lone-guard", "Socket-1.edges", "is alone", "add one")
    view = report_view("T", Report((), (*found, lone)))
    assert [line for line in repr(view).splitlines() if "parse" in line] == [
        "4 fields have no effect: parse (4 times) (report.hints lists them all)"
    ]
    assert re.search(r"lone-guard +Socket-1.edges", repr(view))
    above, details = view._repr_mimebundle_()["text/html"].split("<details>")
    assert ("lone-guard" in above, "why 1" in above) == (True, False)
    assert "4 fields have no effect" in details.split("</summary>")[0]
    assert all(f"why {n}" in details for n in range(1, 5))


def test_probability_of_a_rare_end_is_not_rounded_to_zero():
    graph = build_graph(config({"A": asks(edge("A", "not_satisfied", maxTraversals=20))}))
    shown = ExploreView(graph, (0, 1)).odds(0.9, 1).as_text()
    assert "< 0.01%" in shown
    assert "> 99.99%" in shown
    sure = ExploreView(graph, (0, 1)).odds(1.0, 1).as_text()
    assert "100.00%" in sure
    assert "< 0.01%" not in sure


def test_bars_of_an_estimate_stack_the_tokens_in_and_out_of_each_socket(wb):
    view = wb.estimate("Plan-Build-Eval", items=2, satisfied=1.0, casts=3, answer={"Build": 5_000, "*": 10})
    (table,) = [block for block in view._blocks() if isinstance(block, Table)]
    bars = {row[0]: row[table.headers.index("in and out")] for row in table.rows}
    sums = {socket: row.input.mean + row.output.mean for socket, row in view.sockets.items()}
    for socket, row in view.sockets.items():
        bar = bars[view.graph.names[socket]]
        assert bar.end == pytest.approx(sums[socket] / max(sums.values()))
        assert bar.strong == (0, pytest.approx(row.input.mean / max(sums.values())))
        assert bar.text == f"{sums[socket]:,.0f}"
    assert max(bar.end for bar in bars.values()) == 1
