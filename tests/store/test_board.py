"""The file of the quest board: what is stored, what is refused, and that nothing is lost."""

from __future__ import annotations

import json

import pytest

from materia_nb.errors import MateriaError
from materia_nb.store.design_autosave import Board, Quest, change_board, read_board


@pytest.fixture
def path(tmp_path):
    return tmp_path / "quests.json"


def test_quests_are_added_under_numbers_that_are_not_used_again(path):
    assert read_board(path) == Board()
    for request in ("one", "two"):
        change_board(path, lambda board, request=request: board.adding(request, "T"))
    board = change_board(path, lambda board: board.having(board.quests[:1]))
    board = change_board(path, lambda board: board.adding("three", None))
    assert [(one.id, one.number, one.request, one.loadout) for one in board.quests] == [
        ("Q-1", 1, "one", "T"),
        ("Q-3", 3, "three", None),
    ]
    assert read_board(path) == board
    assert (board.next, board.quests[0].status) == (4, "pending")
    assert Board(quests=(Quest(id="Q-7", request="x"),)).adding("y", None).quests[-1].id == "Q-8"


def test_fields_of_later_versions_are_kept(path):
    path.write_text('{"version": 1, "next": 2, "colour": "red", "quests": [{"id": "Q-1", "request": "r", "x": 1}]}')
    change_board(path, lambda board: board.having((board.quests[0].having(status="complete"),)))
    kept = json.loads(path.read_text())
    assert (kept["colour"], kept["quests"][0]["x"], kept["quests"][0]["status"]) == ("red", 1, "complete")


@pytest.mark.parametrize(
    "content, why",
    [
        ("{", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ('{"version": 2}', "version"),
        ('{"next": 0}', "next"),
        ('{"quests": [{"id": "Q-0", "request": "r"}]}', r"quests\.0\.id"),
        ('{"quests": [{"id": "Q-1"}]}', r"quests\.0\.request"),
        ('{"quests": [{"id": "Q-1", "request": "a"}, {"id": "Q-1", "request": "b"}]}', "the same id"),
    ],
)
def test_non_board_is_refused_and_not_overwritten(path, content, why):
    path.write_text(content)
    for act in (read_board, lambda path: change_board(path, lambda _: Board())):
        with pytest.raises(MateriaError, match=why) as caught:
            act(path)
        assert (caught.value.kind, caught.value.where) == ("bad_quests", str(path))
        assert caught.value.hint
    assert path.read_text() == content


def test_unchanged_board_is_not_written(path):
    assert change_board(path, lambda board: board) == Board()
    assert not path.exists()
