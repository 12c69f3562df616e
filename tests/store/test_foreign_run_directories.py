"""Test that run directories from untrusted sources cannot write elsewhere, block, or grant approvals."""

from __future__ import annotations

import json
import os
import shutil
import threading

import pytest

import cast_helpers as h
from materia_nb.agents.interface import NeedsApproval, ToolCall
from materia_nb.cast import open_cast, resume_cast
from materia_nb.errors import MateriaError

BASH = ToolCall(id="1", tool="bash", args={"command": "make all"})


def edit_journal(path, change):
    lines = [change(line) or line for line in h.lines_of(path)]
    (path / "events.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture
def waiting_run(tmp_path):
    """Return the run directory of a cast that waits at its first item."""
    cast = h.start(tmp_path, h.loop_config(), {"Plan": h.loop_agents(long="x" * 70_000)["Plan"]})
    cast.run()
    cast.close()
    assert cast.now.waiting_at.item.key == "WI-1"
    return cast.run_dir


def everything_in(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("key", ["../../../escaped", "/tmp/escaped", "a/../b", "..", "", 7, "x" * 300])
def test_item_key_that_is_a_path_is_refused(waiting_run, key):
    def change(line):
        if "itemKey" in line["data"]:
            line["data"]["itemKey"] = key

    edit_journal(waiting_run, change)
    with pytest.raises(MateriaError) as caught:
        resume_cast(waiting_run)
    assert caught.value.kind == "damaged_journal"
    assert open_cast(waiting_run).steps, "it can be looked at"


@pytest.mark.parametrize("name", ["sockets", "sockets/Socket-2"])
def test_no_file_is_written_through_a_link(tmp_path, waiting_run, name):
    outside = tmp_path / "outside"
    shutil.rmtree(waiting_run / name, ignore_errors=True)
    if name == "sockets":
        shutil.copytree(waiting_run / name, outside) if (waiting_run / name).exists() else outside.mkdir()
        (outside / "Socket-1").mkdir()
        (outside / "Socket-1" / "1.md").write_text(h.loop_agents(long="x" * 70_000)["Plan"]())
    else:
        outside.mkdir()
    (waiting_run / name).symlink_to(outside)
    before = everything_in(outside)
    with pytest.raises(MateriaError, match=r"through a link|outside the run directory"):
        resume_cast(waiting_run).reply("built")
    assert everything_in(outside) == before


def test_symlinked_artifact_is_replaced_without_changing_its_target(tmp_path, waiting_run):
    target = tmp_path / "precious"
    target.write_text("precious")
    folder = waiting_run / "sockets" / "Socket-2"
    folder.mkdir()
    (folder / "1-WI-1.md").symlink_to(target)
    resume_cast(waiting_run).reply("built")
    assert target.read_text() == "precious"
    assert not (folder / "1-WI-1.md").is_symlink(), "it was replaced"


@pytest.mark.parametrize("name", ["cast.lock", "events.jsonl"])
def test_lock_or_journal_is_not_written_through_a_link(tmp_path, waiting_run, name):
    target = tmp_path / "precious"
    (waiting_run / name).rename(target)
    (waiting_run / name).symlink_to(target)
    before = target.read_bytes()
    with pytest.raises(MateriaError, match="it is a link"):
        resume_cast(waiting_run)
    assert target.read_bytes() == before


@pytest.mark.parametrize("name", ["events.jsonl", "config.resolved.json", "cast.lock", "sockets/Socket-1/1.md"])
@pytest.mark.parametrize("kind", ["pipe", "endless"])
def test_pipes_and_devices_do_not_block(waiting_run, name, kind):
    (waiting_run / name).unlink()
    if kind == "pipe":
        os.mkfifo(waiting_run / name)
    else:
        (waiting_run / name).symlink_to("/dev/zero")
    done = []

    def resume():
        with pytest.raises(MateriaError):
            resume_cast(waiting_run)
        done.append(True)

    thread = threading.Thread(target=resume, daemon=True)
    thread.start()
    thread.join(30)
    assert done


def test_recording_that_is_a_pipe_does_not_block(tmp_path, bench):
    os.mkfifo(tmp_path / "r.json")
    with pytest.raises(MateriaError, match="cannot be read"):
        bench.agents.recorded(tmp_path / "r.json")


@pytest.mark.parametrize("reference", ["~nobody/x", "a" * 5_000, "\ud800", "a\0b", "~nobody/r.json", "\ud800.json"])
def test_reference_with_an_impossible_path_raises_an_error(bench, reference):
    for find in (bench.open, bench.agents.recorded, bench.resume):
        with pytest.raises(MateriaError):
            find(reference)


def test_cast_with_a_lone_surrogate_can_be_forked(tmp_path):
    cast = h.start(tmp_path, h.one_config(), lambda: "done", request="half \ud800 of it")
    cast.run()
    assert cast.fork().now.request == cast.now.request


def test_fork_contains_no_links_or_pipes(tmp_path):
    cast = h.start(tmp_path, h.chain_config(2), lambda: "done")
    cast.step()
    cast.export.derived_files()
    (cast.run_dir / "sockets" / "passwd").symlink_to("/etc/passwd")
    os.mkfifo(cast.run_dir / "sockets" / "pipe")
    made = cast.fork()
    assert sorted(path.name for path in (made.run_dir / "sockets").iterdir()) == ["Socket-1"]


# -- consent ------------------------------------------------------------------------------


class CommandRequester:
    """An agent that asks for approval to run a command, and records the decision."""

    name = "runs"

    def __init__(self):
        self.allowed = []

    def answer(self, turn):
        self.allowed += [call for call in turn.calls if call.decided]
        if not turn.calls:
            return NeedsApproval((BASH,))
        raise KeyboardInterrupt  # before the command has run


@pytest.fixture
def approved_cast(tmp_path):
    """Return a cast with an approved command that has not run, and a tool that is approved permanently."""
    cast = h.start(tmp_path, h.one_config(h.agent(tools="coding")), CommandRequester())
    cast.run()
    with pytest.raises(KeyboardInterrupt):
        cast.approvals.approve(always=True)
    cast.close()
    return cast.run_dir


def test_approval_survives_a_resume_in_the_same_directory(approved_cast):
    cast = resume_cast(approved_cast)
    assert cast.approvals.allowed == {"bash"}
    assert [call.decided for call in cast.approvals.due] == ["always"]


@pytest.mark.parametrize(
    "change",
    [{"directory": "/elsewhere"}, {"host": "another"}, {"user": 4711}, None],
    ids=["directory", "host", "user", "not said"],
)
def test_approval_from_another_directory_is_requested_again(approved_cast, change):
    def foreign(line):
        if line["type"] == "cast_start":
            line["data"]["place"] = change and {**line["data"]["place"], **change}

    edit_journal(approved_cast, foreign)
    cast = resume_cast(approved_cast, h.table(CommandRequester()))
    assert cast.approvals.allowed == frozenset()
    assert [call.decided for call in cast.approvals.asking] == [None]
    assert "they need approval again" in cast.now.messages[-1]
    assert open_cast(approved_cast).approvals.asking == cast.approvals.asking, "the journal says so too"
    with pytest.raises(KeyboardInterrupt):
        cast.approvals.approve()
    assert [call.decided for call in cast.approvals.due] == ["once"]
