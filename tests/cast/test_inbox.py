"""The inbox: answer waiting casts from the list; the effect of a changed loadout on them."""

from __future__ import annotations

import pytest

from magics_helpers import ASK, line, new_shell
from materia_nb import Workbench
from materia_nb.cast.project_casts import Inbox
from materia_nb.errors import MateriaError


@pytest.fixture
def wb(project):
    made = Workbench(project)
    made.loadouts.define("Ask", ASK)
    yield made
    made.close()


def waiting_cast(wb, request="rain", **replies):
    cast = wb.cast(request, loadout="Ask", agents=replies or None)
    assert cast.run() == "person"
    return cast


def changed(wb, old, new):
    assert old in ASK
    wb.loadouts.define("Ask", ASK.replace(old, new))


def test_inbox_lists_only_waiting_casts(wb):
    waits = waiting_cast(wb)
    done = wb.cast("snow", loadout="Ask", agents={"*": lambda: {"satisfied": True}})
    done.step()
    done.abort()
    found = wb.inbox()
    assert isinstance(found, Inbox)
    assert [one.entry.id for one in found] == [waits.id]
    assert found[0].waits.startswith("Socket-1 (Judge) needs an answer")
    assert found[0].verdict == "unchanged"
    assert found.verdict == ""
    assert "rain" in repr(found)
    assert list(wb.inbox(loadout="Full-Auto")) == []
    assert repr(wb.inbox("Full-Auto")) == "no cast is waiting for a person"


def test_inbox_shows_the_effect_of_a_changed_loadout(wb):
    waiting_cast(wb, "at the first")
    waiting_cast(wb, "at the second", Judge=lambda: {"satisfied": True})
    changed(wb, "when: satisfied, to: Socket-2", "when: satisfied, to: end")
    second, first = wb.inbox()
    assert (first.verdict, first.why) == ("safe", "")
    assert second.verdict == "elsewhere"
    assert second.why.startswith("step 1: ")
    assert wb.inbox().verdict == (
        "2 casts with a loadout that was changed since: 1 safe to move, 1 would go elsewhere, 0 cannot move"
    )
    changed(wb, "to: Socket-2}, {when: always", "to: Nowhere}, {when: always")
    assert {one.verdict for one in wb.inbox()} == {"cannot"}
    assert all("Nowhere" in one.why for one in wb.inbox())


def test_waiting_cast_is_answered_by_number_in_another_kernel(wb, project):
    waiting_cast(wb, "one")
    waiting_cast(wb, "two")
    wb.close()
    shell = new_shell(Workbench(project))
    line(shell, 'inbox 2 {"satisfied": true}')
    wb = shell.user_ns["wb"]
    assert (wb.current.now.request, wb.current.status) == ("one", "ready")
    assert [one.entry.request for one in wb.inbox()] == ["two"]
    assert "needs an answer" in repr(line(shell, "inbox 1"))
    assert wb.current.now.request == "two"
    with pytest.raises(MateriaError, match="no cast number 3"):
        line(shell, "inbox 3")
    wb.close()


def test_unreadable_cast_does_not_hide_others(wb, monkeypatch):
    waiting_cast(wb, "one")
    broken = waiting_cast(wb, "two")
    wb.close()
    (broken.run_dir / "config.resolved.json").write_text("{")
    verdicts = {one.entry.request: one.verdict for one in Workbench(wb.project).inbox()}
    assert verdicts["two"] == "cannot"
    assert len(verdicts) == 2
