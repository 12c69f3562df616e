"""Test the file of the quest board: stored fields, refused files and concurrent changes."""

from __future__ import annotations

import json

import pytest

from materia_nb.errors import MateriaError
from materia_nb.store.design_autosave import Board, Quest, change_board, read_board


@pytest.fixture
def path(tmp_path):
    return tmp_path / "quests.json"


def test_quest_numbers_are_not_reused_after_a_removal(path):
    assert read_board(path) == Board()
    for request in ("one", "two"):
        change_board(path, lambda board, request=request: board.with_quest(request, "T"))
    board = change_board(path, lambda board: board.with_quests(board.quests[:1]))
    board = change_board(path, lambda board: board.with_quest("three", None))
    assert [(quest.id, quest.request, quest.loadout) for quest in board.quests] == [
        ("Q-1", "one", "T"),
        ("Q-3", "three", None),
    ]
    assert read_board(path) == board
    assert (board.next, board.quests[0].status) == (4, "pending")
    assert Board(quests=(Quest(id="Q-7", request="x"),)).with_quest("y", None).quests[-1].id == "Q-8"


def test_board_fields_from_later_versions_are_kept(path):
    path.write_text('{"version": 1, "next": 2, "colour": "red", "quests": [{"id": "Q-1", "prompt": "r", "x": 1}]}')
    change_board(path, lambda board: board.with_quests((board.quests[0].with_fields(status="done"),)))
    stored = json.loads(path.read_text())
    assert (stored["colour"], stored["quests"][0]["x"], stored["quests"][0]["status"]) == ("red", 1, "succeeded")


@pytest.mark.parametrize(
    "content, why",
    [
        ("{", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ('{"version": 2}', "version"),
        ('{"next": 0}', "next"),
        ('{"quests": [{"id": "Q 0", "prompt": "r"}]}', r"quests\.0\.id"),
        ('{"quests": [{"id": "Q-1"}]}', r"quests\.0\.prompt"),
        ('{"quests": [{"id": "Q-1", "prompt": "a"}, {"id": "Q-1", "prompt": "b"}]}', "the same id"),
    ],
)
def test_file_that_is_not_a_quest_board_is_refused_and_not_overwritten(path, content, why):
    path.write_text(content)
    for act in (read_board, lambda path: change_board(path, lambda _: Board())):
        with pytest.raises(MateriaError, match=why) as caught:
            act(path)
        assert (caught.value.kind, caught.value.where) == ("bad_quests", str(path))
        assert caught.value.hint
    assert path.read_text() == content


def test_unchanged_quest_board_is_not_written(path):
    assert change_board(path, lambda board: board) == Board()
    assert not path.exists()


# -- a board that the reference engine writes too ------------------------------------------

STAMP = "2026-11-28T04:46:02.576Z"
THEIRS = {
    "version": 1,
    "createdAt": STAMP,
    "updatedAt": STAMP,
    "runner": {"enabled": False, "lastStoppedAt": STAMP},
    "quests": [
        {
            "id": f"quest-{status[:4]}",
            "title": f"A {status} quest",
            "prompt": f"do it ({status})",
            "status": status,
            "createdAt": STAMP,
            "updatedAt": STAMP,
            "attempts": 1,
            "lastCastId": "2026-11-28T04-00-00-000Z",
            "lastError": {"message": "no", "occurredAt": STAMP},
        }
        for status in ("pending", "succeeded", "failed", "blocked")
    ],
}


def test_board_of_the_reference_engine_is_read_and_kept(path):
    path.write_text(json.dumps(THEIRS))
    board = read_board(path)
    assert [(quest.request, quest.status, quest.cast, quest.note) for quest in board.quests] == [
        ("do it (pending)", "pending", None, None),
        ("do it (succeeded)", "done", None, None),
        ("do it (failed)", "failed", None, "no"),
        ("do it (blocked)", "failed", None, "no"),
    ]
    change_board(path, lambda board: board.with_quest("ours", "T"))
    written = json.loads(path.read_text())
    assert written["quests"][:4] == THEIRS["quests"]
    assert {name: written[name] for name in ("version", "createdAt", "runner")} == {
        name: THEIRS[name] for name in ("version", "createdAt", "runner")
    }


def valid_for_the_reference_engine(document):
    """Assert that the reference engine would accept a board."""
    assert document["version"] == 1
    assert isinstance(document["runner"]["enabled"], bool)
    assert all(isinstance(document[name], str) and document[name] for name in ("createdAt", "updatedAt"))
    quests = document["quests"]
    for quest in quests:
        texts = ("id", "title", "prompt", "createdAt", "updatedAt")
        assert all(isinstance(quest[name], str) and quest[name].strip() for name in texts)
        assert quest["status"] in ("pending", "running", "succeeded", "failed", "blocked")
        assert isinstance(quest["attempts"], int)
        assert ("currentCastId" in quest) == (quest["status"] == "running")
        optional = ("loadoutOverride", "currentCastId", "lastCastId")
        assert all(isinstance(quest[name], str) and quest[name] for name in optional if name in quest)
        assert "lastError" not in quest or all(quest["lastError"].values())
    assert sum(quest["status"] == "running" for quest in quests) <= 1
    return True


def test_every_status_is_written_as_in_the_reference_engine(path):
    cast = "2026-11-28T04-00-00-000Z"
    states = (
        {"status": "pending"},
        {"status": "running", "cast": cast},
        {"status": "running", "cast": cast},
        {"status": "waiting", "cast": cast, "note": "a person must answer"},
        {"status": "done", "cast": cast},
        {"status": "failed", "cast": cast, "note": "no"},
    )
    for _ in states:
        change_board(path, lambda board: board.with_quest(" two\nlines", None))
    board = change_board(
        path,
        lambda board: board.with_quests(
            tuple(quest.with_fields(**state) for quest, state in zip(board.quests, states, strict=True))
        ),
    )
    document = json.loads(path.read_text())
    assert valid_for_the_reference_engine(document)
    statuses = [quest["status"] for quest in document["quests"]]
    assert statuses == ["pending", "running", "blocked", "blocked", "succeeded", "failed"]
    read = read_board(path)
    assert read == board
    assert [quest.status for quest in read.quests] == [state["status"] for state in states]


def test_quest_that_the_reference_engine_changed_has_its_new_status(path):
    change_board(path, lambda board: board.with_quest("ours", None))
    waiting = {"status": "waiting", "cast": "2026-11-28T04-00-00-000Z"}
    change_board(path, lambda board: board.with_quests((board.quests[0].with_fields(**waiting),)))
    document = json.loads(path.read_text())
    document["quests"][0] |= {"status": "succeeded", "updatedAt": STAMP}
    path.write_text(json.dumps(document))
    quest = read_board(path).quests[0]
    assert (quest.status, quest.cast) == ("done", None)
