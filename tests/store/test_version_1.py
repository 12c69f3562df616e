"""Casts that the version before wrote, whose outputs stand in files alone, are opened and gone on with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import cast_helpers as h
from materia_nb.agents.interface import Reply
from materia_nb.cast import Cast, open_cast, resume_cast
from materia_nb.store.catalogue import list_casts

DATA = Path(__file__).parents[1] / "data" / "version-1"
EXPECTED = json.loads((DATA / "expected.json").read_text())


@pytest.fixture
def copied(tmp_path):
    def copy(name):
        return shutil.copytree(DATA / name, tmp_path / "2026-01-01T00-00-00-000Z")

    return copy


@pytest.mark.parametrize("name", EXPECTED)
def test_it_opens_as_it_was_left(name, copied):
    path, wanted = copied(name), EXPECTED[name]
    cast = open_cast(path)
    assert cast.now.messages == []
    differ = [[one.recorded, one.ours] for one in cast.now.differences]
    assert differ == wanted.get("differences", []), "R46: the item being worked on comes first by now"
    assert (cast.status, dict(cast.state)) == (wanted["status"], wanted["state"])
    assert [list(visit) for visit in cast.route] == wanted["route"]
    assert [step.output for step in cast.steps] == wanted["outputs"]
    (entry,) = list_casts(path.parent)
    assert (entry.status, entry.steps) == (wanted["status"], len(wanted["route"]))


@pytest.mark.parametrize(
    "name, agents, go_on, end",
    [
        ("edited-and-taken-back", h.loop_agents(3), Cast.run, "complete"),
        ("draft-that-waits", lambda: '{"context": "final"}', Cast.finalize, "ready"),
        ("tool-that-asks", lambda: Reply("made"), lambda cast: cast.approvals.approve(), "ready"),
        ("repairs-used-up", lambda: '{"context": "mended"}', Cast.revive, "ready"),
        ("failed-utility", None, Cast.recast, "failed"),
    ],
)
def test_it_is_gone_on_with_and_opens_again(name, agents, go_on, end, copied):
    cast = resume_cast(copied(name), h.table(agents))
    go_on(cast)
    assert cast.status == end
    cast.close()
    h.assert_same(open_cast(cast.run_dir), cast)
    assert {line.get("v") for line in h.lines_of(cast)} == {None, 2}
