"""Test names, tags, notes and verdicts: they are stored in the journal, listed, and do not affect the cast otherwise."""

from __future__ import annotations

import json

import pytest

import cast_helpers as h
from magics_helpers import line, run, text
from materia_nb.cast import open_cast
from materia_nb.cast.views.status import status_view, steps_view
from materia_nb.engine.state import Label
from materia_nb.errors import MateriaError
from materia_nb.store.catalogue import find_cast, list_casts


@pytest.fixture
def done(tmp_path):
    cast = h.start(tmp_path, h.loop_config(), h.loop_agents(2, refuse=(1,)))
    cast.run()
    yield cast
    cast.close()


def test_label_is_shown_in_the_cast_list_and_in_a_resumed_cast(done):
    done.labels.add(name="first", tag="rain, short", verdict="good", note="Read it twice.")
    done.labels.add(tag=["long"], untag="short", by="Ana")
    wanted = Label("first", ("rain", "long"), "Read it twice.", "good", "Ana")
    assert done.labels.of() == wanted
    (entry,) = list_casts(done.run_dir.parent)
    assert (entry.name, entry.tags, entry.verdict, entry.note) == (
        "first",
        ("rain", "long"),
        "good",
        "Read it twice.",
    )
    assert open_cast(done.run_dir).labels.of() == wanted


def test_cast_list_shows_a_label_set_early_in_a_long_journal(tmp_path):
    cast = h.start(tmp_path, h.chain_config(30), lambda: "x" * 2_000)
    cast.labels.add(name="early")
    cast.run()
    (entry,) = list_casts(cast.run_dir.parent)
    assert (entry.name, entry.status) == ("early", "complete")
    cast.close()


def test_label_changes_can_be_undone_and_record_their_author(done):
    done.labels.add(name="one")
    done.labels.add(3, verdict="bad", by="Ana")
    done.labels.undo()
    assert done.labels.of(3) == Label()
    assert done.labels.of().name == "one"
    done.labels.undo()
    assert done.labels.of() == Label()
    with pytest.raises(MateriaError, match="No label"):
        done.labels.undo()
    events = [json.loads(one) for one in (done.run_dir / "events.jsonl").read_text().splitlines()]
    told = [(event["data"]["by"], event["data"]["undoes"]) for event in events if event["type"] == "labelled"]
    assert told == [("person", False), ("Ana", False), ("person", True), ("person", True)]


def test_label_does_not_change_the_rest_of_the_cast(done):
    before = done.runner.session
    done.labels.add(2, note="odd")
    done.labels.undo()
    assert done.runner.session == before
    assert list_casts(done.run_dir.parent)[0].status == "complete"


def test_note_is_not_shown_for_a_new_step_that_reuses_the_number_of_a_discarded_step(done):
    done.labels.add(3, note="of the first try")
    done.back(2)
    done.run(steps=1)
    assert done.labels.of(3) == Label()
    assert done.labels.of(done.now.abandoned[0][0]).note == "of the first try"


def test_label_is_shown_in_status_steps_and_why(done):
    done.labels.add(name="named-so")
    done.labels.add(3, verdict="bad", note="It should have asked.", by="Ana")
    assert "named named-so" in repr(status_view(done.now))
    assert steps_view(done.now).rows[2][-1] == "judged bad; note: It should have asked. (by Ana)"
    assert "judged bad; note: It should have asked. (by Ana)" in str(done.why(3))


def test_fork_keeps_step_notes_but_not_the_name_of_the_cast(done):
    done.labels.add(name="mine", tag="t")
    done.labels.add(1, note="of the plan")
    done.labels.undo()
    done.labels.add(2, note="of the work")
    fork = done.fork(3)
    assert (fork.labels.of(), fork.labels.of(2).note) == (Label(), "of the work")
    h.assert_same(open_cast(fork.run_dir), fork)
    assert find_cast(done.run_dir.parent, "mine") == done.run_dir.resolve()
    fork.close()


@pytest.mark.parametrize(
    "said",
    [
        {"name": "2026"},
        {"name": "-1"},
        {"name": "latest"},
        {"name": "a/b"},
        {"name": "x" * 65},
        {"tag": ["two words"]},
        {"verdict": "goood"},
        {"tag": [f"t{n}" for n in range(21)]},
        {"note": "x" * 10_001},
    ],
)
def test_invalid_label_is_refused(done, said):
    before = done.runner.session
    with pytest.raises(MateriaError) as caught:
        done.labels.add(**said)
    assert caught.value.kind == "bad_label"
    assert done.runner.session == before


def test_secrets_are_redacted_in_a_note(done, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-0001")
    assert done.labels.add(note="used sk-very-secret-0001").note == "used ***"


# -- finding and deleting ---------------------------------------------------------------------


@pytest.fixture
def three(bench):
    casts = [bench.cast(f"request {n}") for n in range(3)]
    casts[0].labels.add(name="my run", tag="rain", verdict="good")
    casts[1].labels.add(name="twin", tag="rain,long")
    casts[2].labels.add(name="twin")
    return casts


def test_cast_can_be_found_by_its_name(bench, three):
    assert bench.open("my run").id == three[0].id
    assert bench.resume("my run").now.writable
    assert bench.compare("my run", three[1].id).first is None
    with pytest.raises(MateriaError, match="2 casts are called 'twin'") as caught:
        bench.open("twin")
    assert three[1].id in caught.value.hint
    with pytest.raises(MateriaError, match="cast 'my ran' does not exist") as caught:
        bench.open("my ran")
    assert "'my run'" in caught.value.hint


def test_casts_are_filtered_by_label(bench, three):
    def ids(**wanted):
        return {cast.id for cast in bench.casts(**wanted)}

    assert ids(tag="rain") == {three[0].id, three[1].id}
    assert ids(tag=["rain", "long"]) == {three[1].id}
    assert ids(name="twin") == {three[1].id, three[2].id}
    assert ids(verdict="good") == {three[0].id}
    assert ids(loadout="Full-Auto") == set()
    assert len(bench.casts(status="ready")) == 3


def test_closed_cast_can_be_labelled(bench, three):
    three[0].close()
    bench.casts.label("my run", verdict="bad")
    assert bench.casts(verdict="bad")[0].id == three[0].id
    three[0].now.writable or bench.resume("my run").labels.add(note="and it can be resumed")


def test_unused_cast_is_deleted_after_confirmation(bench, three):
    with pytest.raises(MateriaError, match="would delete") as caught:
        bench.casts.delete("my run")
    assert (caught.value.kind, three[0].run_dir.exists()) == ("not_confirmed", True)
    with pytest.raises(MateriaError, match="being written") as caught:
        bench.casts.delete("my run", yes=True)
    assert (caught.value.kind, three[0].run_dir.exists()) == ("locked", True)
    three[0].close()
    assert bench.casts.delete("my run", yes=True) == three[0].id
    assert not three[0].run_dir.exists()
    assert [cast.id for cast in bench.casts()] == [three[2].id, three[1].id]


def test_only_casts_of_the_project_are_deleted(bench, three, tmp_path):
    elsewhere = h.start(tmp_path, h.chain_config(1), lambda: "x")
    elsewhere.close()
    link = three[0].run_dir.parent / "2026-01-01T00-00-00-000Z"
    link.symlink_to(elsewhere.run_dir)
    for reference in (elsewhere.run_dir, link.name, three[0].run_dir.parent):
        with pytest.raises(MateriaError):
            bench.casts.delete(reference, yes=True)
    assert (elsewhere.run_dir / "events.jsonl").exists()


def test_deleting_many_casts_asks_for_one_confirmation(bench, three):
    bench.agent("*", "person")
    three[0].step()
    found = bench.casts.ask("$.workItems[*].title", bench.casts(tag="rain"))
    assert [(id_, one.step, one.value) for id_, one in found] == [(three[0].id, 1, title) for title in "abc"]
    assert "my run" in repr(found)
    broken = three[2].run_dir.with_name("2026-01-01T00-00-00-000Z")
    broken.mkdir()
    (broken / "events.jsonl").write_text("no event\n")
    assert "cannot be searched" in repr(bench.casts.ask("$.x"))
    with pytest.raises(MateriaError, match="cannot be evaluated"):
        bench.casts.ask("$..a..b", [])


def test_label_verbs_change_labels(shell):
    line(shell, "use Plan-Build-Eval")
    line(shell, "cast a page")
    assert text(line(shell, "label my-run --tag a,b --verdict good")) == (
        "The cast: named my-run; judged good; tagged a, b."
    )
    assert "my-run" in text(line(shell, "list casts --tag a"))
    assert text(line(shell, "list casts --tag zzz")) == "no casts yet"
    assert "named my-run" in text(run(shell, "%materia resume my-run"))
    line(shell, "reply {'workItems': []}".replace("'", '"'))
    assert "Step 1: note: odd" in text(line(shell, 'label --step 1 --note "odd"'))
    assert "Step 1 has no labels" in text(line(shell, 'label --step 1 --note ""'))
    line(shell, "label --undo")
    assert shell.user_ns["wb"].current.labels.of(1).note == "odd"
    with pytest.raises(MateriaError, match="would delete"):
        line(shell, "delete my-run")
    shell.user_ns["wb"].current.close()
    assert "Deleted" in text(line(shell, "delete my-run --yes"))
    with pytest.raises(MateriaError, match="No cast has been started"):
        line(shell, "status")
