"""Test that a changed materia definition enters a running cast as an event and is kept when the cast is resumed."""

from __future__ import annotations

import json
import signal
import sys

import pytest

from magics_helpers import cell, line, text
from materia_nb.errors import MateriaError
from materia_nb.store.journal import Journal

GOOD = [sys.executable, "-c", 'print(\'{"state": {"n": 3}}\')']
BAD = [sys.executable, "-c", "raise SystemExit(3)"]


def loadout(command, **fields):
    materia = {"Count": {"type": "utility", "command": command, "parse": "json", **fields}}
    return json.dumps({"entry": "Socket-1", "sockets": {"Socket-1": {"materia": "Count"}}, "materia": materia})


@pytest.fixture
def failed(shell):
    cell(shell, "define loadout L", loadout(BAD))
    cast = line(shell, "cast x")
    with pytest.raises(MateriaError):
        line(shell, "run"), cast.run()
    return cast


def test_hint_explains_that_a_failed_cast_uses_a_copy_of_the_config(shell, failed):
    assert "use `edit redefine` to apply the change to this cast" in failed.failure.hint


def test_retry_runs_the_corrected_command(shell, failed):
    cell(shell, "define loadout L", loadout(GOOD))
    line(shell, "edit redefine Count")
    assert "complete" in text(line(shell, "retry")) or failed.run() == "complete"
    assert failed.state["n"] == 3


def test_redefinition_is_journalled_and_survives_a_resume(shell, failed):
    cell(shell, "define loadout L", loadout(GOOD))
    line(shell, "edit redefine Count")
    event = json.loads((failed.run_dir / "events.jsonl").read_text().splitlines()[-1])
    assert (event["type"], event["data"]["definition"]["command"]) == ("materia_redefined", GOOD)
    assert event["data"]["previous"]["command"] == BAD
    failed.close()
    resumed = line(shell, f"resume {failed.id}")
    assert resumed is not failed
    resumed.retry()
    assert resumed.state["n"] == 3


@pytest.mark.parametrize(
    "changed, told",
    [
        ({}, "already has this definition of Count"),
        ({"parse": "text"}, "differs in parse, which earlier steps"),
        ({"timeoutMs": "soon"}, "timeoutMs"),
    ],
)
def test_invalid_redefinition_changes_nothing(shell, failed, changed, told):
    before = (
        (failed.run_dir / "config.resolved.json").read_text(),
        (failed.run_dir / "events.jsonl").read_text(),
    )
    with pytest.raises(MateriaError, match=told):
        failed.edit.redefine("Count", {"type": "utility", "command": BAD, "parse": "json", **changed})
    assert before == (
        (failed.run_dir / "config.resolved.json").read_text(),
        (failed.run_dir / "events.jsonl").read_text(),
    )


def test_unknown_materia_raises_an_error(shell, failed):
    with pytest.raises(MateriaError, match="'Cuont' does not exist") as caught:
        line(shell, "edit redefine Cuont")
    assert "Count" in caught.value.hint


def test_failed_cast_shows_the_number_of_attempts_after_a_retry(shell, failed):
    failed.retry()
    failed.retry()
    assert "tried 3 times" in repr(failed)
    failed.close()
    assert "tried 3 times" in repr(line(shell, f"resume {failed.id}"))
    assert not failed.now.at_limit


def test_interrupt_keeps_journal_and_config_copy_consistent(shell, failed, monkeypatch):
    append = Journal.append

    def interrupted(journal, lines):
        append(journal, lines)
        signal.raise_signal(signal.SIGINT)

    definition = json.loads(loadout(GOOD))["materia"]["Count"]
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            failed.edit.redefine("Count", definition)
    events = [json.loads(one)["type"] for one in (failed.run_dir / "events.jsonl").read_text().splitlines()]
    stored = json.loads((failed.run_dir / "config.resolved.json").read_text())
    assert (events[-1], stored["materia"]["Count"]["command"]) == ("materia_redefined", GOOD)
    failed.retry()
    assert failed.state["n"] == 3
