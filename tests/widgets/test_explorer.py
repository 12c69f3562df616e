"""Test the list of all casts by sending the messages of the page, without a browser or a kernel."""

from __future__ import annotations

import shutil

import pytest

from materia_nb import Workbench
from materia_nb.display.blocks import Heading, Line
from materia_nb.store.catalogue import cast_entry
from materia_nb.widgets.explorer import INITIAL_ROWS, CastExplorer, list_row, sort_entries, summarize_cast
from materia_nb.widgets.failure_panel import result_blocks
from panel_helpers import from_list

HOSTILE = "\x1b[31m<img src=x>"


@pytest.fixture
def wb(project):
    bench = Workbench(project)
    bench.use("Ask")
    bench.agent("Answer", lambda turn: f"answered {turn.request}")
    yield bench
    bench.close()


@pytest.fixture
def casts(wb):
    """Create three casts: a complete one, a stopped one and a failed one."""
    made = [wb.cast(request) for request in ("a guide to trains", "tidy the readme", f"notes {HOSTILE}")]
    made[0].run()
    made[2].agents.set("Answer", lambda: 1 / 0)
    assert made[2].run() == "failed"
    made[0].labels.add(name="breakfast", tag="good")
    for one in made:
        one.close()
    return made


@pytest.fixture
def panel(wb, casts):
    made = wb.casts.show()
    assert isinstance(made, CastExplorer)
    made.wait(30)
    made.refresh()
    yield made
    made.close()


def told(panel, *messages):
    """Return the data that the page receives after the specified messages."""
    for message in messages:
        panel.on_message(from_list(panel, **message))
    panel.wait(30)
    panel.refresh()
    return panel.front.casts


def requests(told):
    return [row[2] or row[3] for row in told["rows"]]


def test_explorer_shows_the_status_of_each_cast(panel):
    now = told(panel)
    rows = {row[2] or row[3]: row for row in now["rows"]}
    assert now["counts"] == {"all": 3, "waits": 0, "failed": 1, "tagged": 1}
    _, stands, name, request, tags, loadout, when, steps, _, cost, _ = rows["breakfast"]
    assert (stands[:2], name, request, tags, loadout) == (
        ["done", "complete"],
        "breakfast",
        "a guide to trains",
        ["good"],
        "Ask",
    )
    assert when[0].startswith("today ")
    assert steps == "1"
    assert cost == "", "nobody reported what a function cost: that is not zero"
    assert rows["tidy the readme"][1][1] == "paused"
    failed = next(row for words, row in rows.items() if words.startswith("notes"))
    assert failed[1][1] == "failed"
    assert "division by zero" in failed[8]
    assert "\x1b" not in str(now), "a terminal's codes are taken out of a request"


def test_casts_can_be_searched_filtered_and_sorted(panel):
    assert requests(told(panel, {"kind": "look", "text": "TRAINS tag:good"})) == ["breakfast"]
    assert told(panel, {"kind": "look", "text": "loadout:Other"})["total"] == 0
    assert told(panel, {"kind": "look", "only": "failed"})["total"] == 1
    up = requests(told(panel, {"kind": "look", "by": "request", "down": False}))
    assert up == sorted(up, key=str.casefold)
    assert requests(told(panel, {"kind": "look", "by": "request", "down": True})) == up[::-1]


def test_cast_can_be_opened_labelled_compared_and_deleted(panel, casts, wb):
    trains, readme, _ = (cast.id for cast in casts)
    now = told(panel, {"kind": "select", "cast": trains})
    assert now["picked"]["words"] == "breakfast"
    assert not now["picked"]["resumes"]
    now = told(panel, {"kind": "open", "cast": trains})
    assert now["below"] == trains
    assert wb.casts.last.id == trains
    now = told(panel, {"kind": "compare", "a": trains, "b": readme})
    assert "below" in now
    assert not now["below"]
    assert any("Up to that point, A and B do not differ" in str(block) for block in now["compared"])
    told(panel, {"kind": "label", "cast": readme, "text": "the readme #later #rain"})
    assert "the readme" in requests(told(panel))
    entry = next(one for one in wb.casts() if one.id == readme)
    assert (entry.name, entry.tags) == ("the readme", ("later", "rain"))
    told(panel, {"kind": "resume", "cast": readme})
    panel._reread(casts[1].run_dir)  # what a timer does
    told(panel)
    told(panel, {"kind": "delete", "cast": readme})
    assert not casts[1].run_dir.exists(), "what is shown below is closed before it is deleted"
    assert told(panel)["total"] == 2


@pytest.mark.parametrize("kind", ["open", "resume", "fork", "label", "delete", "compare"])
def test_action_on_a_cast_that_changed_since_it_was_listed_is_refused(panel, casts, wb, kind):
    failed, other = casts[2], casts[0]
    about = {"a": other.id, "b": failed.id} if kind == "compare" else {"cast": failed.id}
    message = from_list(panel, kind, **about, **({"text": "gone"} if kind == "label" else {}))
    with wb.casts.writing(failed.run_dir) as cast:
        cast.retry()
    count = len(wb.casts())
    panel.guarded(panel.on_message)(message)
    assert panel.front.casts["notice"]["words"].startswith("Nothing was done")
    after = told(panel)
    assert (len(wb.casts()), after["below"], after["compared"]) == (count, "", [])
    panel.on_message({**message, **from_list(panel, kind, **about)})  # as the list shows it now


def looked_at(panel, id_):
    """Select a cast and return the details shown below the list."""
    told(panel, {"kind": "select", "cast": id_})
    panel._read_selected()  # what a timer does where the selection rests
    assert panel.front.glance["id"] == id_
    return [str(side) for side in panel.front.glance["sides"]]


def test_latest_cast_is_selected_by_default(panel, casts):
    assert told(panel)["picked"]["id"] == casts[2].id
    assert told(panel, {"kind": "select", "cast": casts[0].id})["picked"]["id"] == casts[0].id


def test_end_of_the_selected_cast_is_shown_below_the_list(panel, casts):
    trains, readme, notes = (cast.id for cast in casts)
    said, steps = looked_at(panel, trains)
    assert "Complete, after 1 step" in said
    assert "answered a guide to trains" in said
    assert "'1', 'Answer', 'answered a guide to trains'" in steps
    assert "paused" in looked_at(panel, readme)[0]
    assert "Answer failed" in looked_at(panel, notes)[0]
    assert "no steps yet" in looked_at(panel, readme)[1]
    assert "\x1b" not in str(panel.front.glance)


def test_only_the_end_of_a_long_journal_is_read(panel, casts):
    trains = casts[0]
    journal = trains.run_dir / "events.jsonl"
    first, *others = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(first + b"no event" * 10_000 + b"\n" + b"".join(others))
    said, steps = looked_at(panel, trains.id)
    assert "answered a guide to trains" in said
    assert "'1', 'Answer', 'answered a guide to trains'" in steps


def test_discarded_steps_are_not_among_the_last_steps(panel, wb):
    cast = wb.cast("once more")
    cast.run()
    cast.back(0)
    assert "no steps yet" in str(summarize_cast(cast_entry(cast.run_dir)))


def test_unreadable_cast_is_explained_below_the_list(panel, casts):
    told(panel, {"kind": "select", "cast": casts[0].id})
    (casts[0].run_dir / "events.jsonl").unlink()
    panel._read_selected()
    assert "'tone': 'bad'" in str(panel.front.glance["sides"])


def test_cast_can_be_forked_from_its_current_state(panel, casts):
    now = told(panel, {"kind": "fork", "cast": casts[0].id})
    assert now["total"] == 4
    assert now["below"] not in [cast.id for cast in casts]
    assert now["picked"]["id"] == now["below"]


def test_page_receives_only_the_rows_that_it_displays(panel, monkeypatch):
    sent = []
    monkeypatch.setattr(panel.front, "send", sent.append)
    order = told(panel)["order"]
    panel.on_message({"kind": "rows", "token": "t", "order": order, "first": 1, "last": 99})
    assert [len(one["rows"]) for one in sent] == [2]
    panel.on_message({"kind": "rows", "token": "t", "order": order - 1, "first": 0, "last": 99})
    assert sent[-1]["rows"] == [], "an order that is over gives no rows: its places mean others by now"


def test_only_a_part_of_a_long_cast_list_is_sent_to_the_page(panel, casts, wb):
    one = casts[0].run_dir
    for number in range(2 * INITIAL_ROWS):
        shutil.copytree(one, one.with_name(f"2026-01-02T03-04-{number % 60:02}-{number:03}Z"))
    now = told(panel, {"kind": "refresh"})
    assert now["total"] == 2 * INITIAL_ROWS + 3
    assert len(now["rows"]) == INITIAL_ROWS
    assert len(str(now)) < 300 * INITIAL_ROWS


def test_sorting_of_casts_is_stable(wb, casts):
    entries = wb.casts()
    assert sort_entries(entries, "loadout", down=True) == list(entries)
    assert [entry.cost for entry in sort_entries(entries, "cost", down=True)][-1] is None, (
        "what is unknown stands behind 0"
    )


def test_cast_that_is_in_use_is_marked(wb, casts):
    (entry, *_) = wb.casts()
    assert list_row(entry, 0, "")[1][:2] == ["working", "running"]
    assert "open elsewhere: a kernel" in list_row(entry, 0, "a kernel")[1][2]


def test_deleted_cast_disappears_and_a_refusal_is_shown(panel, casts):
    panel.guarded(panel.on_message)(from_list(panel, "open", cast="2020-01-01"))
    assert told(panel)["notice"]["tone"] == "bad"
    assert "does not exist" in told(panel)["notice"]["words"]


def test_summary_of_a_finished_cast_counts_items_and_locates_warnings(wb):
    agents = {
        "Plan": lambda: {"workItems": [{"title": "Outline", "context": "Three headings."}]},
        "Build": lambda: "Wrote it.",
        "Eval": lambda turn: {"satisfied": turn.visit > 1},
        "Maintain": lambda: {"satisfied": True},
        "Narrate": lambda: "Done.",
    }
    cast = wb.cast("rain", loadout="Plan-Build-Eval", agents=agents)
    assert cast.run() == "complete"
    said = [result_block.text for result_block in result_blocks(cast.now) if isinstance(result_block, Heading | Line)]
    assert said[0] == "Complete, with warnings: 1 of 1 item done, after 7 steps"
    assert any(
        one.startswith("Build repeated an earlier output or reason for item Outline")
        and one.endswith("(step 4, same-again)")
        for one in said
    )
