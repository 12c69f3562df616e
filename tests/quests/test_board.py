"""Test the quest board: its file, the order of quests, and running their casts one after another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from magics_helpers import new_shell
from materia_nb import Workbench
from materia_nb.errors import MateriaError
from materia_nb.magics.magic import next_words
from materia_nb.store.design_autosave import Board, read_board
from materia_nb.store.files import DiskError


@pytest.fixture
def wb(project):
    bench = Workbench(project)
    bench.use("Ask")
    bench.agent("Answer", lambda turn: f"answered {turn.request}")
    yield bench
    bench.close()


@pytest.fixture
def board(wb):
    return wb.quests


def add(board, *requests):
    return [board.add(request).id for request in requests]


def requests(board):
    return [quest.request for quest in board.quests]


def statuses(board):
    return [quest.status for quest in board.quests]


# -- the board ----------------------------------------------------------------------------------


def test_quests_keep_their_order_in_the_file(board, project):
    assert board.quests == ()
    assert not board.path.exists()
    assert add(board, "a", " b ", "c") == ["Q-1", "Q-2", "Q-3"]
    assert board.path == project / ".pi" / "pi-materia" / "quest-board.json"
    assert requests(Workbench(project).quests) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "which, to, order",
    [
        (3, "top", "cabd"),
        ("Q-3", "up", "acbd"),
        ("q-1", "up", "abcd"),
        (1, "down", "bacd"),
        (4, "down", "abcd"),
        (1, "bottom", "bcda"),
        (4, 2, "adbc"),
        (1, "99", "bcda"),
    ],
)
def test_quests_can_be_moved(board, which, to, order):
    add(board, *"abcd")
    board.move(which, to)
    assert "".join(requests(board)) == order


def test_quest_numbers_are_not_reused(board):
    add(board, "a", "b")
    board.remove(2)
    assert add(board, "c") == ["Q-3"]
    board.remove(1)
    board.remove(3)
    assert add(board, "d") == ["Q-4"]


@pytest.mark.parametrize(
    "act, kind",
    [
        (lambda b: b.add("  "), "bad_quest"),
        (lambda b: b.add(None), "bad_quest"),
        (lambda b: b.add("x", loadout="Aks"), "unknown_loadout"),
        (lambda b: b.remove(7), "unknown_quest"),
        (lambda b: b.move(1, "sideways"), "bad_place"),
        (lambda b: b.move(1, 0), "bad_place"),
        (lambda b: b.requeue(""), "unknown_quest"),
    ],
)
def test_invalid_quest_action_raises_one_clear_error(board, act, kind):
    add(board, "a")
    before = board.path.read_bytes()
    with pytest.raises(MateriaError) as caught:
        act(board)
    assert caught.value.kind == kind
    assert caught.value.hint
    assert board.path.read_bytes() == before


# -- the file -----------------------------------------------------------------------------------

QUEST = {"id": "Q-1", "prompt": "a"}
OUTSIDE = {
    "status": "succeeded",
    "materiaNb": {"sharedStatus": "succeeded", "status": "done", "cast": "../../etc"},
}


@pytest.mark.parametrize(
    "content, messages",
    [
        (b'{"version": 1, "quests": [', "not JSON"),
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "valid dictionary"),
        (json.dumps({"version": 2}), "version"),
        (json.dumps({"quests": [{"id": "Q-1"}]}), "quests.0.prompt"),
        (json.dumps({"quests": [{**QUEST, "status": "lost"}]}), "quests.0.status"),
        (json.dumps({"quests": [{**QUEST, "id": "two words"}]}), "quests.0.id"),
        (json.dumps({"quests": [QUEST, QUEST]}), "same id"),
        (json.dumps({"quests": [{**QUEST, **OUTSIDE}]}), "quests.0.cast"),
        (json.dumps({"next": "4"}), "next"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_damaged_board_raises_one_clear_error_and_is_not_overwritten(board, content, messages):
    board.path.parent.mkdir(parents=True)
    content = content if isinstance(content, bytes) else content.encode()
    board.path.write_bytes(content)
    for act in (
        lambda: board.quests,
        lambda: board.add("x"),
        board.run,
        lambda: board.move(1, "top"),
    ):
        with pytest.raises(MateriaError) as caught:
            act()
        assert caught.value.kind == "bad_quests"
        assert messages in caught.value.what
        assert caught.value.where == str(board.path)
    assert board.path.read_bytes() == content


def test_unknown_fields_of_the_quest_board_are_preserved(board):
    board.path.parent.mkdir(parents=True)
    other = {"id": "Q-5", "prompt": "old", "labels": ["x"], "owner": {"name": "é"}}
    board.path.write_text(json.dumps({"quests": [other], "theme": "dark"}))
    assert board.add("new").id == "Q-6"
    board.move(6, "top")
    board.run()
    stored = json.loads(board.path.read_text())
    assert stored["theme"] == "dark"
    assert stored["quests"][1]["labels"] == ["x"]
    assert stored["quests"][1]["owner"] == {"name": "é"}
    assert stored["quests"][1]["status"] == "succeeded"


def test_failed_write_keeps_the_old_board(board, monkeypatch):
    add(board, "a")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("materia_nb.store.design_autosave.replace_file", full)
    with pytest.raises(DiskError):
        board.add("b")
    assert requests(board) == ["a"]


ADD = """
import sys
from materia_nb import Workbench
board = Workbench(sys.argv[1]).quests
print("ready", flush=True)
sys.stdin.readline()
for number in range(25):
    board.add(f"{sys.argv[2]} {number}")
"""


def process(code, *words, project):
    return subprocess.Popen(
        [sys.executable, "-c", code, str(project), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_quests_added_by_parallel_processes_are_all_stored(board, project):
    both = [process(ADD, name, project=project) for name in ("one", "two")]
    for one in both:
        assert one.stdout.readline() == "ready\n"
    for one in both:
        one.stdin.write("\n")
        one.stdin.flush()
    for one in both:
        assert one.wait(60) == 0
        one.stdin.close()
        one.stdout.close()
    found = requests(board)
    assert len(found) == len({quest.id for quest in board.quests}) == 50
    for name in ("one", "two"):
        assert [one for one in found if one.startswith(name)] == [f"{name} {n}" for n in range(25)]


# -- running ------------------------------------------------------------------------------------


def test_quests_are_cast_one_after_another(wb, board):
    add(board, "a", "b")
    board.add("c", loadout="Hello-Utility")
    assert board.run() == "empty"
    assert statuses(board) == ["done"] * 3
    casts = [wb.open(quest.cast) for quest in board.quests]
    assert [cast.now.engine.request for cast in casts] == ["a", "b", "c"]
    assert [cast.graph.name for cast in casts] == ["Ask", "Ask", "Hello-Utility"]
    assert casts[0].now.engine.last_output == "answered a"
    assert sorted(cast.id for cast in casts) == [cast.id for cast in casts]
    assert [cast.now.writable for cast in casts] == [False, False, False]
    assert board.run() == "empty"


def test_quest_run_casts_the_given_number_of_quests(board):
    add(board, "a", "b")
    assert board.run(1) == "count"
    assert statuses(board) == ["done", "pending"]


def test_quest_run_waits_for_a_person_and_continues(wb, board):
    add(board, "a", "b")
    wb.agent("Answer", "person")
    assert board.run() == "person"
    assert statuses(board) == ["waiting", "pending"]
    assert board.quests[0].note == "Answer is waiting for an answer"
    first = board.quests[0].cast
    assert wb.current.id == first
    assert board.run() == "person", "nobody has answered"
    assert board.quests[0].cast == first
    wb.current.reply("here you are")
    wb.agent("Answer", lambda: "done")
    assert board.run() == "empty"
    assert statuses(board) == ["done", "done"]
    assert board.quests[0].cast == first


def test_failed_quest_stops_the_quest_run_and_the_next_run_continues(wb, board):
    wb.agent("Answer", lambda turn: 1 / 0 if turn.request == "a" else "fine")
    add(board, "a", "b")
    assert board.run() == "failed"
    assert statuses(board) == ["failed", "pending"]
    assert "division" in board.quests[0].note
    failed = wb.current
    assert board.run() == "empty"
    assert statuses(board) == ["failed", "done"]
    wb.agent("Answer", lambda: "better")
    failed.retry()
    failed.run()
    assert statuses(board) == ["done", "done"], "what was mended by hand is found"


def test_quest_can_be_requeued(wb, board):
    wb.agent("Answer", lambda: 1 / 0)
    add(board, "a")
    board.run()
    first = board.quests[0].cast
    again = board.requeue(1)
    assert (again.status, again.cast, again.note) == ("pending", None, None)
    wb.agent("Answer", lambda: "better")
    board.run()
    assert board.quests[0].status == "done"
    assert board.quests[0].cast != first
    assert wb.open(first).status == "failed"


def test_quest_remains_pending_if_its_cast_cannot_be_started(wb, board):
    board.add("a", loadout="Hello-Utility")
    stored = json.loads(board.path.read_text())
    stored["quests"][0]["loadoutOverride"] = "Gone"
    board.path.write_text(json.dumps(stored))
    with pytest.raises(MateriaError, match="The loadout 'Gone' does not exist"):
        board.run()
    assert statuses(board) == ["pending"]


def test_board_cannot_be_run_twice_at_the_same_time(wb, board):
    seen = []

    def nosy():
        for act in (board.run, lambda: board.remove(1), lambda: board.requeue(1)):
            with pytest.raises(MateriaError) as caught:
                act()
            seen.append(caught.value.kind)
        board.move(1, "bottom")
        seen.append(statuses(board))
        return "ok"

    wb.agent("Answer", nosy)
    add(board, "a", "b")
    board.run(1)
    assert seen == ["busy", "quest_running", "quest_running", ["pending", "running"]]


def test_quest_run_can_be_stopped(wb, board):
    add(board, "a", "b")

    def stop():
        board.stop()
        return "last words"

    wb.agent("Answer", stop)
    assert board.run() == "stopped"
    assert statuses(board) == ["waiting", "pending"]
    wb.agent("Answer", lambda: "the second")
    assert board.run() == "empty"
    assert [wb.open(quest.cast).now.engine.last_output for quest in board.quests] == [
        "last words",
        "the second",
    ]


def test_quest_fails_if_its_cast_is_missing(board):
    add(board, "a")
    stored = json.loads(board.path.read_text())
    stored["quests"][0]["materiaNb"] |= {"status": "running", "cast": "2020-01-01T00-00-00-000Z"}
    board.path.write_text(json.dumps(stored))
    assert statuses(board) == ["failed"]
    assert "cannot be read" in board.quests[0].note
    assert read_board(board.path).quests[0].status == "failed", "it is written down"


RUN = """
import sys
from materia_nb import Workbench
bench = Workbench(sys.argv[1])
bench.use("Teach-Rework")
bench.agent("Draft", lambda: "a draft")
def critique():
    print("critique", flush=True)
    sys.stdin.read()
bench.agent("Critique", critique)
bench.quests.run()
"""


def test_quest_run_of_a_killed_kernel_is_recovered(wb, board, project):
    add(board, "a", "b")
    other = process(RUN, project=project)
    assert other.stdout.readline() == "critique\n"
    assert statuses(board) == ["running", "pending"], "it is being written there"
    with pytest.raises(MateriaError):
        board.requeue(1)
    other.send_signal(signal.SIGKILL)
    other.wait(60)
    other.stdin.close()
    other.stdout.close()
    assert statuses(board) == ["waiting", "pending"]
    assert "kernel stopped" in board.quests[0].note
    cast = board.quests[0].cast
    wb.agent("Critique", lambda: {"satisfied": True})
    assert board.run() == "empty"
    assert statuses(board) == ["done", "done"]
    assert board.quests[0].cast == cast
    assert [step.socket for step in wb.open(cast).steps] == ["Socket-1", "Socket-2"]


# -- the verb -----------------------------------------------------------------------------------


@pytest.fixture
def shell(wb):
    return new_shell(wb)


def line(shell, text):
    return shell.run_line_magic("materia", text)


def test_quest_magic_shows_and_changes_the_board(shell, board):
    assert "No quest has been added" in repr(line(shell, "quest"))
    line(shell, "quest add first things -- first")
    shell.run_cell_magic("materia", "quest add --loadout Hello-Utility", "say\nhello")
    output = repr(line(shell, "quest add third"))
    assert "Q-3" in output
    assert requests(board) == ["first things -- first", "say\nhello", "third"]
    line(shell, "quest move 3 top")
    line(shell, "quest remove Q-1")
    assert requests(board) == ["third", "say\nhello"]
    assert "pending" in repr(line(shell, "quest run 1"))
    assert statuses(board) == ["done", "pending"]
    line(shell, "quest requeue 3")
    assert "No quest is left" in repr(line(shell, "quest run"))
    assert statuses(board) == ["done", "done"]


@pytest.mark.parametrize(
    "text, messages",
    [
        ("quest ad x", "did you mean 'add'"),
        ("quest run many", "whole number"),
        ("quest move", "QUEST is missing"),
        ("quest move 1", "TO is missing"),
        ("quest move 1 x", "cannot be moved"),
        ("quest requeue", "QUEST is missing"),
        ("quest add", "request is missing"),
    ],
)
def test_invalid_quest_command_shows_its_usage(shell, board, text, messages):
    add(board, "a")
    with pytest.raises(MateriaError) as caught:
        line(shell, text)
    assert messages in str(caught.value)


def test_completion_offers_quest_actions(wb):
    assert next_words(lambda: wb, ["quest"]) == ["add", "run", "move", "remove", "requeue"]
    assert "Ask" in next_words(lambda: wb, ["quest", "add", "--loadout"])


def test_quest_board_is_empty_by_default():
    assert Board().quests == ()
