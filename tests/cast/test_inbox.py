"""Test the inbox, which lists the casts that wait for a person and answers them by number."""

from __future__ import annotations

import pytest

from magics_helpers import ASK, line, new_shell
from materia_nb import Workbench
from materia_nb.cast.project_casts import Inbox
from materia_nb.errors import MateriaError


@pytest.fixture
def wb(project):
    bench = Workbench(project)
    bench.loadouts.define("Ask", ASK)
    yield bench
    bench.close()


def waiting_cast(wb, request="rain", **replies):
    cast = wb.cast(request, loadout="Ask", agents=replies or None)
    assert cast.run() == "person"
    return cast


def test_inbox_lists_only_waiting_casts(wb):
    waits = waiting_cast(wb)
    done = wb.cast("snow", loadout="Ask", agents={"*": lambda: {"satisfied": True}})
    done.step()
    done.abort()
    found = wb.inbox()
    assert isinstance(found, Inbox)
    assert [waiting.entry.id for waiting in found] == [waits.id]
    assert found[0].waits.startswith("Judge needs an answer")
    assert "rain" in repr(found)
    assert list(wb.inbox(loadout="Full-Auto")) == []
    assert repr(wb.inbox("Full-Auto")) == "no cast is waiting for a person"


def test_waiting_cast_is_answered_by_number_in_another_kernel(wb, project):
    waiting_cast(wb, "one")
    waiting_cast(wb, "two")
    wb.close()
    shell = new_shell(Workbench(project))
    line(shell, 'inbox 2 {"satisfied": true}')
    wb = shell.user_ns["wb"]
    assert (wb.current.now.request, wb.current.status) == ("one", "ready")
    assert [waiting.entry.request for waiting in wb.inbox()] == ["two"]
    assert "needs an answer" in repr(line(shell, "inbox 1"))
    assert wb.current.now.request == "two"
    with pytest.raises(MateriaError, match="no cast with the number 3"):
        line(shell, "inbox 3")
    wb.close()


def test_unreadable_cast_does_not_hide_other_waiting_casts(wb, monkeypatch):
    waiting_cast(wb, "one")
    broken = waiting_cast(wb, "two")
    wb.close()
    (broken.run_dir / "config.resolved.json").write_text("{")
    waits = {waiting.entry.request: waiting.waits for waiting in Workbench(wb.project).inbox()}
    assert waits["two"].startswith("unknown: ")
    assert len(waits) == 2
