"""Test the causes of failed casts, in the list of casts, in ``wb.casts.why`` and in sweeps."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from magics_helpers import line, new_shell, text
from materia_nb import Workbench
from materia_nb.errors import MateriaError
from stream_helpers import stream_agents, streams_config

TITLES = ("Outline", "Text", "Pictures")


def worker(bad_title=None, reason="Too short."):
    """Return an agent that refuses one work item every time."""

    def answer(turn):
        if turn.materia_id == "Plan":
            return {"workItems": [{"title": title, "context": "x"} for title in TITLES]}
        if not turn.required_fields:
            return "done"
        is_refused = turn.item is not None and turn.item["title"] == bad_title
        return {"satisfied": False, "context": reason} if is_refused else {"satisfied": True}

    return answer


def offline(turn):
    raise RuntimeError("no network")


@pytest.fixture
def wb(project):
    bench = Workbench(project)
    bench.use("Plan-Build-Eval")
    yield bench
    bench.close()


def run_cast(wb, agent):
    cast = wb.cast("rain", agents={"*": agent})
    cast.run()
    return cast


def test_casts_that_fail_at_the_same_edge_are_grouped_under_one_cause(wb):
    refused = [run_cast(wb, worker(title)).id for title in ("Outline", "Text", "Text")]
    crashed = run_cast(wb, offline).id
    assert run_cast(wb, worker()).status == "complete"
    (limit, casts), (error, others) = wb.casts.why()
    assert (limit.kind, limit.loadout, limit.socket) == ("edge_traversals_exhausted", "Plan-Build-Eval", "Eval")
    assert (limit.edge, limit.item, limit.reason) == ("not_satisfied → Build", "", "")
    assert casts == tuple(reversed(refused))
    assert (error.kind, error.socket, others) == ("agent_error", "Plan", (crashed,))
    output = text(wb.casts.why())
    assert "Text" in output
    assert "Too short." in output
    assert "with RuntimeError: no network" in " ".join(output.split())
    assert "edge_traversals_exhausted</bdi>" in wb.casts.why().as_html()


def test_every_failed_cast_is_counted_under_exactly_one_cause(wb):
    rng, planted = Random(7), Counter()
    for _ in range(20):
        title, reason = rng.choice((None, *TITLES)), rng.choice(("Too short.", "No source."))
        run_cast(wb, worker(title, reason))
        planted.update([(title, reason)] if title else [])
    found = {(cause.item, cause.reason): len(casts) for cause, casts in wb.casts.why("item", "reason")}
    assert found == dict(planted)
    assert [len(casts) for _, casts in wb.casts.why("item")] == sorted(
        Counter(title for title, _ in planted.elements()).values(), reverse=True
    )


def test_cause_of_a_failure_in_a_lane_names_the_failed_socket(project):
    bench = Workbench(project, bundled=False)
    bench.load(streams_config())
    cast = bench.cast("rain", agents=stream_agents(Build=offline))
    cast.run()
    ((cause, casts),) = bench.casts.why("kind", "socket", "item")
    assert (cause.socket, casts) == ("Build", (cast.id,))
    assert cause.item
    bench.close()


def test_only_the_specified_casts_are_grouped_by_cause(wb):
    failed, complete = run_cast(wb, worker("Text")), run_cast(wb, worker())
    run_cast(wb, worker("Outline"))
    ((cause, casts),) = wb.casts.why("item", casts=[failed, complete, "no such cast"])
    assert (cause.item, casts) == ("Text", (failed.id,))
    assert "cannot be read" in repr(wb.casts.why(casts=["no such cast"]))
    assert repr(wb.casts.why(casts=[complete])) == "no failed casts"


def test_grouping_failures_by_an_unknown_field_is_refused(wb):
    with pytest.raises(MateriaError, match="cannot be grouped by 'sockt'"):
        wb.casts.why("sockt")


def test_cast_list_shows_the_reason_of_each_failure(wb):
    run_cast(wb, worker())
    assert "why" not in wb.casts().table.headers
    run_cast(wb, offline)
    assert wb.casts().table.headers[-1] == "why"
    assert "no network" in wb.casts().table.rows[0][-1]
    assert wb.casts().table.rows[1][-1] == ""


def test_list_failures_command_groups_failed_casts(wb, project):
    run_cast(wb, worker("Text")).labels.add(tag="wet")
    run_cast(wb, worker("Outline"))
    wb.close()
    shell = new_shell(Workbench(project))
    assert line(shell, "list failures").rows[0][0] == 2
    assert [row[0] for row in line(shell, "list failures item --tag wet").rows] == [1]
    assert text(line(shell, "list failures --loadout Full-Auto")) == "no failed casts"
    shell.user_ns["wb"].close()


def test_sweep_groups_failures_by_edge_instead_of_message(wb):
    agents = {title: worker(title) for title in TITLES} | {"offline": offline}
    sweep = wb.sweep("Plan-Build-Eval", ["rain", "sun"], agents)
    assert [(cause.socket, len(rows)) for cause, rows in sweep.why()] == [("Eval", 6), ("Plan", 2)]
    assert sweep.why()[0][1] == tuple(f"row {number}" for number in range(1, 7))
    assert {cause.item: len(rows) for cause, rows in sweep.why("item")} == {**dict.fromkeys(TITLES, 2), "": 2}
    again = wb.sweep("Plan-Build-Eval", ["rain", "sun"], agents)
    assert again.fresh == 0
    assert list(again.why("socket", "reason")) == list(sweep.why("socket", "reason"))
    assert "Outline (2), Text (2), Pictures (2)" in " ".join(again.as_text(400).split())
    with pytest.raises(MateriaError, match="cannot be grouped by 'row'"):
        sweep.why("row")
