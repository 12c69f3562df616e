"""Test that the journal contains only complete lines, and that damage is reported or repaired."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
from collections import Counter

import pytest

import cast_helpers as h
from materia_nb import Workbench
from materia_nb.cast import open_cast, resume_cast
from materia_nb.cast.runner_factory import start_runner
from materia_nb.errors import MateriaError
from materia_nb.store import journal as journal_module
from materia_nb.store.files import DiskError
from materia_nb.store.journal import Journal, JournalLine, read_journal
from materia_nb.store.reader import read_session


def line(kind, data=None):
    return JournalLine(1, kind, data or {})


@pytest.fixture
def journal(tmp_path):
    made = Journal(tmp_path / "events.jsonl")
    made.append([line("one", {"n": 1})])
    yield made
    made.close()


def test_journal_line_has_time_type_and_data(journal):
    journal.append([JournalLine(5, "two", {"text": "ü\n\u2028", "n": None}, status="ready", steps=3), line("three")])
    raw = journal.path.read_bytes().splitlines()
    assert [{name: value for name, value in json.loads(one).items() if name != "link"} for one in raw[1:]] == [
        {
            "ts": 5,
            "type": "two",
            "v": 2,
            "status": "ready",
            "steps": 3,
            "data": {"text": "ü\n\u2028", "n": None},
        },
        {"ts": 1, "type": "three", "v": 2, "status": None, "steps": None, "data": {}},
    ]
    assert read_journal(journal.path).lines[1].steps == 3


def test_text_that_utf8_cannot_encode_is_stored_as_escapes(journal):
    journal.append([line("two", {"text": "a\ud800b"})])
    assert read_journal(journal.path).lines[1].data == {"text": "a\ud800b"}


class Disk:
    """A replacement for os.write that accepts ``room`` bytes in short writes and then fails."""

    def __init__(self, monkeypatch, room, error=errno.ENOSPC, piece=7):
        self.room, self.error, self.piece, self.real = room, error, piece, os.write
        monkeypatch.setattr(os, "write", self)

    def __call__(self, handle, block):
        if self.room <= 0:
            raise (
                self.error if isinstance(self.error, BaseException) else OSError(self.error, os.strerror(self.error))
            )
        size = min(len(block), self.piece, self.room)
        self.room -= size
        return self.real(handle, bytes(block[:size]))


@pytest.mark.parametrize("room", [0, 1, 20, 60])
def test_failed_append_leaves_no_partial_line(journal, monkeypatch, room):
    before = journal.path.read_bytes()
    disk = Disk(monkeypatch, room)
    with pytest.raises(DiskError, match="No space left on device") as caught:
        journal.append([line("two", {"text": "x" * 50}), line("three")])
    assert str(journal.path) == caught.value.where
    assert journal.path.read_bytes() == before
    disk.room = 10_000
    journal.append([line("four")])
    assert [line.type for line in read_journal(journal.path).lines] == ["one", "four"]


def test_interrupted_write_leaves_no_partial_line(journal, monkeypatch):
    before = journal.path.read_bytes()
    disk = Disk(monkeypatch, 10, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        journal.append([line("two")])
    assert journal.path.read_bytes() == before
    disk.room = 10_000
    journal.append([line("three")])
    assert [line.type for line in read_journal(journal.path).lines] == ["one", "three"]


def test_partial_line_is_removed_before_the_next_write(journal, monkeypatch):
    disk = Disk(monkeypatch, 10)
    real = os.ftruncate
    monkeypatch.setattr(os, "ftruncate", lambda *a: (_ for _ in ()).throw(OSError(errno.EROFS, "Read-only")))
    with pytest.raises(DiskError):
        journal.append([line("two")])
    assert read_journal(journal.path).incomplete_line
    disk.room = 10_000
    with pytest.raises(DiskError, match="Read-only"):
        journal.append([line("three")])
    monkeypatch.setattr(os, "ftruncate", real)
    journal.append([line("four")])
    assert [line.type for line in read_journal(journal.path).lines] == ["one", "four"]


@pytest.mark.parametrize("sync", [False, True])
def test_sync_setting_flushes_to_disk(tmp_path, monkeypatch, sync):
    """Each step is flushed, and synchronized to disk if the setting requests it (R29)."""
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    cast = h.start(tmp_path, h.chain_config(2), lambda: "x", sync=sync)
    synced.clear()
    cast.step()
    inodes = {path.stat().st_ino: str(path.relative_to(cast.run_dir)) for path in cast.run_dir.rglob("*")}
    inodes[cast.run_dir.stat().st_ino] = "."
    names = [inodes[inode] for inode in synced]
    if not sync:
        assert names == []
        return
    assert names.count("events.jsonl") == 2
    cast.run()
    names = [str(path.relative_to(cast.run_dir)) for path in cast.run_dir.rglob("*") if path.stat().st_ino in synced]
    assert "sockets/Socket-1/1.md" in names
    assert {"sockets", "sockets/Socket-1"} <= set(names)  # a new file is there only when its folder is


@pytest.fixture(scope="module")
def waiting_cast(tmp_path_factory):
    """Return a cast that waits before its fourth socket, and its earlier states."""
    root = tmp_path_factory.mktemp("torn")
    cast = h.WatchedCast(start_runner(h.plan(root, h.chain_config(4)), "é🜁", h.table(lambda visit: f"ü{visit}")))
    cast.run(steps=3)
    cast.close()
    return cast


def test_partial_last_line_is_moved_to_a_separate_file(waiting_cast, tmp_path):
    content = (waiting_cast.run_dir / "events.jsonl").read_bytes()
    ends = [0, *[n + 1 for n, byte in enumerate(content) if byte == 10]]
    seen = dict(waiting_cast.seen)
    around = {end + n for end in ends[-3:] for n in range(-3, 4)}
    inside = {n for n, byte in enumerate(content) if byte & 0xC0 == 0x80}  # a letter of several bytes is torn
    cuts = {*range(ends[-3], len(content), 7), *around, *inside}
    for cut in sorted(cut for cut in cuts if ends[-3] <= cut < len(content)):
        folder = tmp_path / "run"
        shutil.copytree(waiting_cast.run_dir, folder)
        (folder / "events.jsonl").write_bytes(content[:cut])
        (folder / "manifest.json").unlink()  # it tore after the last pause
        whole = max(n for n, end in enumerate(ends) if end <= cut or content[:cut] == content[: end - 1])
        torn = content[ends[whole] : cut] if cut > ends[whole] else b""
        opened = open_cast(folder)
        assert opened.runner.session == seen[whole]
        assert opened.now.messages == (["The last line of the journal is incomplete and was ignored."] if torn else [])
        cast = resume_cast(folder, h.table(lambda visit: f"ü{visit}"))
        asides = list(folder.glob("events.torn-*.txt"))
        assert [aside.read_bytes() for aside in asides] == ([torn] if torn else [])
        assert len(cast.now.messages) == bool(torn)
        assert all(asides[0].name in message for message in cast.now.messages)
        assert cast.runner.session == seen[whole]
        if cut % 3 == 0:
            assert cast.run() == "complete"
            assert [visit[:2] for visit in cast.route] == [(f"Socket-{n}", 1) for n in range(1, 5)]
        cast.close()
        assert not read_journal(folder / "events.jsonl").incomplete_line
        shutil.rmtree(folder)


def test_two_partial_lines_at_the_same_offset_are_both_preserved(tmp_path):
    path = tmp_path / "events.jsonl"
    for part in (b'{"ts":1', b'{"ts":2'):
        path.write_bytes(part)
        contents = read_journal(path)
        journal = Journal(path, contents=contents)
        aside = journal.repair_end(contents)
        journal.close()
        assert aside.read_bytes() == part
    assert len(list(tmp_path.glob("events.torn-*"))) == 2


@pytest.mark.parametrize("bad", [b"not json\n", b"[1]\n", b'{"type": 3}\n', b"\0\0\0\n", b'{"ts":1,"type":"x"\n'])
def test_error_names_a_damaged_line_in_the_middle_of_the_journal(waiting_cast, tmp_path, bad):
    folder = tmp_path / "run"
    shutil.copytree(waiting_cast.run_dir, folder)
    lines = (folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "events.jsonl").write_bytes(b"".join([*lines[:2], bad, *lines[2:]]))
    for read in (open_cast, resume_cast):
        with pytest.raises(MateriaError, match="damaged") as caught:
            read(folder)
        assert caught.value.kind == "damaged_journal"
        assert caught.value.where.endswith("events.jsonl:3")
        assert caught.value.hint
    with pytest.raises(MateriaError, match="damaged"):  # the refusal let go of the lock
        resume_cast(folder)


def test_blank_lines_and_other_line_endings_are_accepted(waiting_cast, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(waiting_cast.run_dir, folder)
    content = (folder / "events.jsonl").read_bytes()
    (folder / "events.jsonl").write_bytes(content.replace(b"\n", b"\r\n\r\n") + b"\n \n")
    h.assert_same(open_cast(folder), waiting_cast)
    cast = resume_cast(folder, h.table(lambda: "x"))
    assert cast.now.messages == []
    assert cast.run() == "complete"


@pytest.mark.parametrize("content", [b"", b'{"ts":1,"type":"cast_st'])
def test_cast_that_never_began_can_be_shown_but_not_resumed(waiting_cast, tmp_path, content):
    folder = tmp_path / "run"
    shutil.copytree(waiting_cast.run_dir, folder)
    (folder / "events.jsonl").write_bytes(content)
    cast = open_cast(folder)
    assert "lacks the event that starts the cast" in cast.now.messages[0]
    assert cast.steps == []
    with pytest.raises(MateriaError, match="This cast has no recorded start") as caught:
        resume_cast(folder)
    assert caught.value.kind == "not_begun"
    assert (folder / "events.jsonl").read_bytes() == content


def test_rebuilding_a_session_can_consume_the_list_of_lines(tmp_path):
    wb = Workbench(tmp_path, bundled=False)
    wb.load(h.chain_config(3))
    wb.agent("M", lambda turn: "said")
    cast = wb.cast("a request")
    cast.run()
    rules, run_dir = cast.runner.rules, cast.runner.run_dir
    lines = read_journal(run_dir.journal).lines
    kept = list(lines)
    whole = read_session(rules, lines, run_dir.read_text).session
    assert lines == kept
    assert read_session(rules, lines, run_dir.read_text, consume_lines=True).session == whole == cast.runner.session
    assert lines == []


def test_step_is_encoded_only_to_write_its_journal_lines_and_its_manifest_row(tmp_path):
    """A step must not be encoded again for any other purpose, because encoding is expensive."""
    items = h.items(*[f"Part {number}" for number in range(1, 51)])
    answers = {"A": lambda turn: {"workItems": items}, "B": lambda turn: h.YES, "C": lambda turn: "done"}
    document = h.config(
        {
            "Socket-1": h.at("A", ("always", "Socket-2"), parse="json"),
            "Socket-2": h.at("B", ("satisfied", "Socket-2"), parse="json"),
            "Socket-3": h.at("C"),
        },
        {"A": h.agent("A", generator=True), "B": h.agent("B {{item.title}}"), "C": h.agent("C")},
        {
            "L": {
                "sockets": ["Socket-2"],
                "consumes": {"from": "Socket-1", "output": "workItems"},
                "exits": [{"id": "e", "from": "Socket-2", "condition": "satisfied", "targetSocketId": "Socket-3"}],
            }
        },
    )
    cast = h.start(tmp_path, document, answers)
    encodings = []

    def count(frame, event, _):
        if event == "call" and frame.f_code is json.JSONEncoder.encode.__code__:
            encodings.append(frame.f_back.f_code.co_name)

    sys.setprofile(count)
    try:
        assert cast.run() == "complete"
    finally:
        sys.setprofile(None)
    lines = len(read_journal(cast.run_dir / "events.jsonl").lines)
    assert (len(cast.steps), lines) == (52, 106)
    assert len(encodings) <= lines + len(cast.steps) + 20, Counter(encodings).most_common(5)


@pytest.mark.parametrize("count", range(1, 7))
def test_interrupts_during_a_write_and_its_repair_leave_session_and_journal_consistent(count, tmp_path, monkeypatch):
    cast = h.start(tmp_path, h.chain_config(3), lambda: "x")
    cast.step()
    write, cut, interrupts = journal_module.write_all, Journal._truncate, iter([True] * count)

    def write_then_interrupt(handle, block):
        write(handle, block)
        if next(interrupts, False):
            raise KeyboardInterrupt

    def interrupt_or_cut(self):
        if next(interrupts, False):
            raise KeyboardInterrupt
        cut(self)

    monkeypatch.setattr(journal_module, "write_all", write_then_interrupt)
    monkeypatch.setattr(Journal, "_truncate", interrupt_or_cut)
    with pytest.raises(KeyboardInterrupt):
        cast.step()
    assert cast.run() == "complete"
    cast.close()
    assert [step.output for step in open_cast(cast.run_dir).steps] == [step.output for step in cast.steps] == ["x"] * 3
